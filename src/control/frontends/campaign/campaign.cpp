#include "frontends/campaign/campaign.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "base/text.h"
#include "config/merge.h"
#include "config/reader.h"
#include "config/yaml.h"
#include "launch/launchers.h"

namespace assay {

namespace {

constexpr double kMonitorSeconds = 1;
constexpr int kMaxRepeats = 1000;
double positive(const Value& value, const std::string& what) {
  if (!value.is_number() || !(value.as_double() > 0)) {
    fail_at(value, fmt::format("{} is a number of seconds above 0, found {}", what, value.text()));
  }
  return value.as_double();
}

class CampaignReader {
 public:
  explicit CampaignReader(const std::filesystem::path& path)
      : path_(std::filesystem::absolute(path)), root_(load_yaml(path, kLayerPlan)), file_(path_, root_) {}

  Campaign read() {
    std::vector<std::string> known = {"campaign",     "vendor",      "division",    "launcher",    "cases",
                                      "time_limit",   "stall_limit", "retries",     "lease",       "monitor",
                                      "max_failures", "collect",     "concurrency", "environment", "master_port",
                                      "set",          "clear_caches"};
    for (const LauncherKind* kind : launchers()) {
      for (const std::string& key : kind->keys()) known.push_back(key);
    }
    check_keys(root_, known, "a campaign");
    read_scalars();
    for (const LauncherKind* kind : launchers()) kind->read(file_, campaign_.site);
    read_environment();
    read_cases();
    check_cases();
    return std::move(campaign_);
  }

 private:
  void read_scalars() {
    Json plain = root_.to_json();
    for (const char* other : {"cases", "environment", "set"}) plain.erase(other);
    for (const LauncherKind* kind : launchers()) {
      for (const std::string& key : kind->keys()) plain.erase(key);
    }
    auto origins = std::make_shared<Origins>();
    for (const Leaf& leaf : leaves_of(root_)) (*origins)[leaf.path] = leaf.value->origin().text();
    Reader top(plain, "", origins);
    campaign_.title = top.get_string("campaign", path_.stem().string());
    Site& site = campaign_.site;
    SiteSettings& settings = site.settings;
    site.vendor = top.get_string("vendor");
    site.division = top.get_choice("division", {"closed", "open"}, "closed");
    site.launcher = top.get_choice("launcher", launcher_names(), site.launcher);
    campaign_.time_limit_s = top.get_optional_double("time_limit");
    if (top.has("stall_limit")) campaign_.stall_limit_s = top.get_double("stall_limit");
    top.ignore("stall_limit");
    campaign_.retries = count(top, "retries", 1, 0, 100);
    site.max_failures = count(top, "max_failures", 0, 0, 1000000);
    site.concurrency = count(top, "concurrency", 1, 1, 4096);
    site.master_port = count(top, "master_port", 0, 0, 65535);
    settings.lease_s = top.get_double("lease", settings.lease_s);
    settings.clear_caches = top.get_bool("clear_caches", false);
    campaign_.collect = top.get_strings("collect");
    Reader monitor = top.section("monitor");
    settings.monitor_interval_s = monitor.get_double("interval", kMonitorSeconds);
    monitor.finish();
    top.finish();
    for (const char* key : {"time_limit", "stall_limit", "lease"}) {
      const Value* value = root_.child(key);
      if (value && !value->is_null()) positive(*value, key);
    }
    if (settings.monitor_interval_s < 0) fail_at(*root_.find("monitor.interval"), "interval is below 0");
  }

  int count(Reader& reader, const char* key, int fallback, int low, int high) const {
    const int64_t value = reader.get_int(key, fallback);
    if (value < low || value > high) {
      fail_at(*root_.child(key), fmt::format("{} is from {} to {}, found {}", key, low, high, value));
    }
    return static_cast<int>(value);
  }

  void read_environment() {
    const Value* map = root_.child("environment");
    if (!map || map->is_null()) return;
    if (!map->is_map()) fail_at(*map, "environment is a map of variables");
    for (const Value::Entry& entry : map->entries()) {
      if (entry.key.empty() || entry.key.find_first_of("= \t\n") != std::string::npos) {
        fail_at(entry.value, fmt::format("'{}' is not the name of a variable", entry.key));
      }
      campaign_.environment[entry.key] = text_of(entry.value, entry.key);
    }
  }

  void read_cases() {
    const Value* map = root_.child("cases");
    if (!map || !map->is_map() || map->entries().empty()) {
      fail_at(map ? *map : root_, "cases: at least one, as model:framework:hardware:nnodes:nproc:repeat: data folder");
    }
    for (const Value::Entry& entry : map->entries()) campaign_.cases.push_back(read_case(entry));
  }

  CampaignCase read_case(const Value::Entry& entry) {
    CampaignCase one;
    one.place = entry.value.origin().text();
    try {
      one.key = CaseKey::parse(entry.key);
    } catch (const UsageError& error) {
      throw ConfigError(fmt::format("{}: {}", one.place, error.what()));
    }
    if (one.key.hardware.empty()) {
      fail_at(entry.value,
              fmt::format("'{}' is not whole: write {}:{}:HARDWARE:1:1:1, with hosts, ranks a host and rounds",
                          entry.key, one.key.model, one.key.framework));
    }
    if (one.key.repeat > kMaxRepeats)
      fail_at(entry.value, fmt::format("{} rounds, at most {}", one.key.repeat, kMaxRepeats));
    one.time_limit_s = campaign_.time_limit_s;
    one.stall_limit_s = campaign_.stall_limit_s;
    one.settings = Value::map(entry.value.origin());
    if (const Value* all = root_.child("set"); all && !all->is_null()) take_settings(*all, one.settings);
    if (!entry.value.is_map()) {
      if (!entry.value.is_null()) one.data = file_.located(text_of(entry.value, "the data folder"));
      return one;
    }
    check_keys(entry.value, {"data", "stage", "set", "time_limit", "stall_limit"}, "a case");
    if (const Value* stage = entry.value.child("stage")) {
      if (!stage->is_bool()) fail_at(*stage, "stage: must be true or false");
      one.stage = stage->as_bool();
    }
    if (const Value* data = entry.value.child("data")) one.data = file_.located(text_of(*data, "data"));
    if (const Value* own = entry.value.child("set")) take_settings(*own, one.settings);
    if (const Value* limit = entry.value.child("time_limit")) one.time_limit_s = positive(*limit, "time_limit");
    if (const Value* limit = entry.value.child("stall_limit")) one.stall_limit_s = positive(*limit, "stall_limit");
    return one;
  }

  // "Engine.max_steps: 20", or nested as in a case.
  static void take_settings(const Value& map, Value& settings) {
    if (!map.is_map()) fail_at(map, "set is a map of keys of the case's configuration");
    for (const Value::Entry& entry : map.entries()) {
      Value layer = Value::map(entry.value.origin());
      layer.set_path(entry.key, entry.value);
      merge_onto(settings, layer);
    }
  }

  // Every case must fit the hosts.
  void check_cases() const {
    const Site& site = campaign_.site;
    std::set<std::string> seen;
    for (const CampaignCase& one : campaign_.cases) {
      if (!launcher_named(site.launcher).chooses_hosts()) check_fits(one);
      if (!seen.insert(one.key.text()).second) {
        throw ConfigError(fmt::format("{}: {} is there twice; the last part of the key is the number of rounds",
                                      one.place, one.key.text()));
      }
    }
  }

  void check_fits(const CampaignCase& one) const {
    const Site& site = campaign_.site;
    const auto nnodes = static_cast<size_t>(one.key.nnodes);
    if (nnodes > site.hosts.size()) {
      throw ConfigError(fmt::format("{}: {} needs {} hosts, the campaign has {}", one.place, one.key.text(), nnodes,
                                    site.hosts.size()));
    }
    if (!site.devices.empty() && static_cast<size_t>(one.key.nproc) > site.devices.size()) {
      throw ConfigError(fmt::format("{}: {} needs {} devices, and devices names {}", one.place, one.key.text(),
                                    one.key.nproc, site.devices.size()));
    }
    size_t large_enough = 0;
    for (const Host& host : site.hosts) large_enough += host.slots == 0 || host.slots >= one.key.nproc;
    if (large_enough < nnodes) {
      throw ConfigError(fmt::format("{}: {} needs {} hosts with {} slots, there are {}", one.place, one.key.text(),
                                    nnodes, one.key.nproc, large_enough));
    }
  }

  const std::filesystem::path path_;
  const Value root_;
  const SiteFile file_;
  Campaign campaign_;
};

}  // namespace

Campaign read_campaign(const std::filesystem::path& path) { return CampaignReader(path).read(); }

}  // namespace assay
