#include "plan/campaign/campaign.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "config/merge.h"
#include "config/reader.h"
#include "config/yaml.h"

namespace assay {

namespace {

constexpr std::array<std::string_view, 3> kLaunchers = {"local", "ssh", "slurm"};
constexpr int kMaxRepeats = 1000;
constexpr int kMaxDevices = 4096;

[[noreturn]] void wrong(const Value& value, const std::string& what) {
  throw ConfigError(fmt::format("{}: {}", value.origin().text(), what));
}

LauncherKind launcher_kind(std::string_view name) {
  for (size_t i = 0; i < kLaunchers.size(); ++i) {
    if (kLaunchers[i] == name) return static_cast<LauncherKind>(i);
  }
  throw DataError(fmt::format("'{}' is not a launcher", name));
}

void check_keys(const Value& map, const std::vector<std::string>& known, const std::string& what) {
  for (const Value::Entry& entry : map.entries()) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    wrong(entry.value, fmt::format("{} has no '{}'{}; it has {}", what, entry.key, did_you_mean(entry.key, known),
                                   join(known, ", ")));
  }
}

// The value as text: a name that YAML takes for a number is meant as it stands.
std::string text_of(const Value& value, const std::string& what) {
  if (value.is_string()) return value.as_string();
  if (value.is_number() || value.is_bool()) return to_line(value.to_json());
  wrong(value, fmt::format("{} is a text, found {}", what, value.text()));
}

double positive(const Value& value, const std::string& what) {
  if (!value.is_number() || !(value.as_double() > 0)) {
    wrong(value, fmt::format("{} is a number of seconds above 0, found {}", what, value.text()));
  }
  return value.as_double();
}

Json to_json(const SshSettings& ssh) {
  return {{"user", ssh.user},
          {"port", ssh.port},
          {"identity_file", ssh.identity_file},
          {"known_hosts", ssh.known_hosts},
          {"work_dir", ssh.work_dir},
          {"program", ssh.program}};
}

SshSettings ssh_of(const Json& ssh) {
  return {ssh.at("user").get<std::string>(),          ssh.at("port").get<int>(),
          ssh.at("identity_file").get<std::string>(), ssh.at("known_hosts").get<std::string>(),
          ssh.at("work_dir").get<std::string>(),      ssh.at("program").get<std::string>()};
}

class CampaignReader {
 public:
  explicit CampaignReader(const std::filesystem::path& path)
      : path_(std::filesystem::absolute(path)), root_(load_yaml(path, kLayerPlan)) {}

  Campaign read() {
    static const std::vector<std::string> kKeys = {
        "campaign", "vendor",      "division",    "launcher",    "hosts", "ssh",          "slurm",
        "cases",    "time_limit",  "stall_limit", "retries",     "lease", "monitor",      "max_failures",
        "collect",  "concurrency", "environment", "master_port", "set",   "clear_caches", "devices"};
    check_keys(root_, kKeys, "a campaign");
    read_scalars();
    read_hosts();
    read_environment();
    read_cases();
    check_places();
    return std::move(campaign_);
  }

 private:
  void read_scalars() {
    Json plain = root_.to_json();
    for (const char* other : {"cases", "hosts", "environment", "set", "devices"}) plain.erase(other);
    auto origins = std::make_shared<Origins>();
    for (const Leaf& leaf : leaves_of(root_)) (*origins)[leaf.path] = leaf.value->origin().text();
    Reader top(plain, "", origins);
    campaign_.title = top.get_string("campaign", path_.stem().string());
    CampaignSite& site = campaign_.site;
    site.vendor = top.get_string("vendor");
    site.division = division_of(top.get_choice("division", {"closed", "open"}, "closed"));
    site.launcher = launcher_kind(top.get_choice("launcher", {"local", "ssh", "slurm"}, "local"));
    campaign_.time_limit_s = top.get_optional_double("time_limit");
    if (top.has("stall_limit")) campaign_.stall_limit_s = top.get_double("stall_limit");
    top.ignore("stall_limit");
    campaign_.retries = count(top, "retries", 1, 0, 100);
    site.max_failures = count(top, "max_failures", 0, 0, 1000000);
    site.concurrency = count(top, "concurrency", 1, 1, 4096);
    site.master_port = count(top, "master_port", 0, 0, 65535);
    site.lease_s = top.get_double("lease", site.lease_s);
    site.clear_caches = top.get_bool("clear_caches", false);
    campaign_.collect = top.get_strings("collect");
    Reader monitor = top.section("monitor");
    site.monitor_interval_s = monitor.get_double("interval", site.monitor_interval_s);
    monitor.finish();
    read_ssh(top.section("ssh"), ssh_);
    Reader slurm = top.section("slurm");
    site.slurm = {slurm.get_string("partition", ""), slurm.get_string("account", ""), slurm.get_strings("options")};
    slurm.finish();
    top.finish();
    for (const char* key : {"time_limit", "stall_limit", "lease"}) {
      const Value* value = root_.child(key);
      if (value && !value->is_null()) positive(*value, key);
    }
    if (site.monitor_interval_s < 0) wrong(*root_.find("monitor.interval"), "interval is below 0");
  }

  int count(Reader& reader, const char* key, int fallback, int low, int high) const {
    const int64_t value = reader.get_int(key, fallback);
    if (value < low || value > high) {
      wrong(*root_.child(key), fmt::format("{} is from {} to {}, found {}", key, low, high, value));
    }
    return static_cast<int>(value);
  }

  // What is given replaces what `ssh` has.
  void read_ssh(Reader reader, SshSettings& ssh) const {
    ssh.user = reader.get_string("user", ssh.user);
    const int64_t port = reader.get_int("port", ssh.port);
    if (port < 0 || port > 65535) throw ConfigError(fmt::format("{}: port {} is not a port", path_.string(), port));
    ssh.port = static_cast<int>(port);
    if (reader.has("identity_file")) ssh.identity_file = located(reader.get_string("identity_file"));
    if (reader.has("known_hosts")) ssh.known_hosts = located(reader.get_string("known_hosts"));
    ssh.work_dir = reader.get_string("work_dir", ssh.work_dir);
    ssh.program = reader.get_string("program", ssh.program);
    reader.finish();
  }

  std::string located(const std::string& name) const {
    if (name.empty()) return name;
    return (path_.parent_path() / name).lexically_normal().string();  // an absolute name stays
  }

  void read_hosts() {
    if (const Value* devices = root_.child("devices")) {
      if (campaign_.site.launcher != LauncherKind::Local) wrong(*devices, "devices stands with each host");
      campaign_.site.devices = read_devices(*devices);
    }
    const Value* list = root_.child("hosts");
    if (!list || list->is_null()) return;
    if (!list->is_list()) wrong(*list, "hosts is a list");
    std::set<std::string> names;
    for (const Value& item : list->items()) {
      CampaignHost host;
      host.ssh = ssh_;
      if (item.is_map()) {
        check_keys(item,
                   {"name", "address", "slots", "devices", "user", "port", "identity_file", "known_hosts", "work_dir",
                    "program"},
                   "a host");
        if (!item.child("name")) wrong(item, "a host needs a name");
        host.name = text_of(*item.child("name"), "name");
        if (const Value* address = item.child("address")) host.address = text_of(*address, "address");
        if (const Value* slots = item.child("slots")) {
          if (!slots->is_int() || slots->as_int() < 1 || slots->as_int() > kMaxDevices) {
            wrong(*slots, fmt::format("slots is how many devices the host has, found {}", slots->text()));
          }
          host.slots = static_cast<int>(slots->as_int());
        }
        if (const Value* devices = item.child("devices")) {
          host.devices = read_devices(*devices);
          if (host.slots > 0) wrong(item, "a host has slots or devices, not both");
          host.slots = static_cast<int>(host.devices.size());
        }
        Json plain = item.to_json();
        for (const char* other : {"name", "address", "slots", "devices"}) plain.erase(other);
        try {
          read_ssh(Reader(plain), host.ssh);
        } catch (const ConfigError& error) {
          wrong(item, error.what());
        }
      } else {
        host.name = text_of(item, "a host");
      }
      // A name that begins with '-' would be an option of ssh.
      for (const std::string& word : {host.name, host.address}) {
        if (word.starts_with('-') || word.find_first_of(" \t\n/@'\"\\") != std::string::npos) {
          wrong(item, fmt::format("'{}' is not the name or address of a host", word));
        }
      }
      if (host.name.empty()) wrong(item, "a host needs a name");
      if (!names.insert(host.name).second) wrong(item, fmt::format("host '{}' is there twice", host.name));
      campaign_.site.hosts.push_back(std::move(host));
    }
  }

  static std::vector<int> read_devices(const Value& list) {
    std::vector<int> devices;
    if (!list.is_list() || list.items().empty())
      wrong(list, "devices is a list of the numbers of devices, such as [4, 5]");
    for (const Value& item : list.items()) {
      const bool is_number = item.is_int() && item.as_int() >= 0 && item.as_int() < kMaxDevices;
      if (!is_number) wrong(item, fmt::format("{} is not the number of a device", item.text()));
      const int device = static_cast<int>(item.as_int());
      if (std::find(devices.begin(), devices.end(), device) != devices.end()) {
        wrong(item, fmt::format("device {} is there twice", device));
      }
      devices.push_back(device);
    }
    return devices;
  }

  void read_environment() {
    const Value* map = root_.child("environment");
    if (!map || map->is_null()) return;
    if (!map->is_map()) wrong(*map, "environment is a map of variables");
    for (const Value::Entry& entry : map->entries()) {
      if (entry.key.empty() || entry.key.find_first_of("= \t\n") != std::string::npos) {
        wrong(entry.value, fmt::format("'{}' is not the name of a variable", entry.key));
      }
      campaign_.environment[entry.key] = text_of(entry.value, entry.key);
    }
  }

  void read_cases() {
    const Value* map = root_.child("cases");
    if (!map || !map->is_map() || map->entries().empty()) {
      wrong(map ? *map : root_, "cases: at least one, as model:framework:hardware:nnodes:nproc:repeat: data folder");
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
      wrong(entry.value,
            fmt::format("'{}' is not whole: write {}:{}:HARDWARE:1:1:1, with hosts, ranks a host and rounds", entry.key,
                        one.key.model, one.key.framework));
    }
    if (one.key.repeat > kMaxRepeats)
      wrong(entry.value, fmt::format("{} rounds, at most {}", one.key.repeat, kMaxRepeats));
    one.time_limit_s = campaign_.time_limit_s;
    one.stall_limit_s = campaign_.stall_limit_s;
    one.settings = Value::map(entry.value.origin());
    if (const Value* all = root_.child("set"); all && !all->is_null()) take_settings(*all, one.settings);
    if (!entry.value.is_map()) {
      if (!entry.value.is_null()) one.data = located(text_of(entry.value, "the data folder"));
      return one;
    }
    check_keys(entry.value, {"data", "stage", "set", "time_limit", "stall_limit"}, "a case");
    if (const Value* stage = entry.value.child("stage")) {
      if (!stage->is_bool()) wrong(*stage, "stage: must be true or false");
      one.stage = stage->as_bool();
    }
    if (const Value* data = entry.value.child("data")) one.data = located(text_of(*data, "data"));
    if (const Value* own = entry.value.child("set")) take_settings(*own, one.settings);
    if (const Value* limit = entry.value.child("time_limit")) one.time_limit_s = positive(*limit, "time_limit");
    if (const Value* limit = entry.value.child("stall_limit")) one.stall_limit_s = positive(*limit, "stall_limit");
    return one;
  }

  // "Engine.max_steps: 20", or nested as in a case.
  static void take_settings(const Value& map, Value& settings) {
    if (!map.is_map()) wrong(map, "set is a map of keys of the case's configuration");
    for (const Value::Entry& entry : map.entries()) {
      Value layer = Value::map(entry.value.origin());
      layer.set_path(entry.key, entry.value);
      merge_onto(settings, layer);
    }
  }

  void check_places() const {
    const CampaignSite& site = campaign_.site;
    const bool is_ssh = site.launcher == LauncherKind::Ssh;
    if (is_ssh && site.hosts.empty()) wrong(root_, "launcher ssh needs hosts");
    if (!is_ssh && !site.hosts.empty()) {
      wrong(*root_.child("hosts"),
            fmt::format("hosts are those of launcher ssh; this is {}", launcher_name(site.launcher)));
    }
    std::set<std::string> seen;
    for (const CampaignCase& one : campaign_.cases) {
      const auto limit = is_ssh ? site.hosts.size() : site.launcher == LauncherKind::Local ? 1 : SIZE_MAX;
      if (static_cast<size_t>(one.key.nnodes) > limit) {
        throw ConfigError(fmt::format("{}: {} needs {} hosts, the campaign has {}", one.place, one.key.text(),
                                      one.key.nnodes, limit));
      }
      if (!site.devices.empty() && static_cast<size_t>(one.key.nproc) > site.devices.size()) {
        throw ConfigError(fmt::format("{}: {} needs {} devices, and devices names {}", one.place, one.key.text(),
                                      one.key.nproc, site.devices.size()));
      }
      size_t large_enough = 0;
      for (const CampaignHost& host : site.hosts) large_enough += host.slots == 0 || host.slots >= one.key.nproc;
      if (is_ssh && large_enough < static_cast<size_t>(one.key.nnodes)) {
        throw ConfigError(fmt::format("{}: {} needs {} hosts with {} slots, there are {}", one.place, one.key.text(),
                                      one.key.nnodes, one.key.nproc, large_enough));
      }
      if (!seen.insert(one.key.text()).second) {
        throw ConfigError(fmt::format("{}: {} is there twice; the last part of the key is the number of rounds",
                                      one.place, one.key.text()));
      }
    }
  }

  std::filesystem::path path_;
  Value root_;
  SshSettings ssh_;  // of every host that does not say otherwise
  Campaign campaign_;
};

}  // namespace

std::string_view launcher_name(LauncherKind kind) { return kLaunchers[static_cast<size_t>(kind)]; }

std::string staged_folder(const std::string& hash) { return "../data/" + hash; }

Json to_json(const CampaignSite& site) {
  Json hosts = Json::array();
  for (const CampaignHost& host : site.hosts) {
    hosts.push_back({{"name", host.name},
                     {"address", host.address},
                     {"slots", host.slots},
                     {"devices", host.devices},
                     {"ssh", to_json(host.ssh)}});
  }
  Json staged = Json::array();
  for (const auto& [path, hash] : site.staged) staged.push_back({{"path", path.string()}, {"hash", hash}});
  return {{"launcher", launcher_name(site.launcher)},
          {"vendor", site.vendor},
          {"division", division_name(site.division)},
          {"hosts", hosts},
          {"devices", site.devices},
          {"slurm",
           {{"partition", site.slurm.partition}, {"account", site.slurm.account}, {"options", site.slurm.options}}},
          {"visible_devices", site.visible_devices},
          {"monitor_command", site.monitor_command},
          {"device_command", site.device_command},
          {"device_count", site.device_count},
          {"staged", staged},
          {"setup", site.setup},
          {"setup_environment", site.setup_environment},
          {"peak_flops", site.peak_flops},
          {"concurrency", site.concurrency},
          {"max_failures", site.max_failures},
          {"lease_s", site.lease_s},
          {"monitor_interval_s", site.monitor_interval_s},
          {"master_port", site.master_port},
          {"clear_caches", site.clear_caches}};
}

CampaignSite site_of(const Json& json, const std::string& where) {
  try {
    CampaignSite site;
    site.launcher = launcher_kind(json.at("launcher").get<std::string>());
    json.at("vendor").get_to(site.vendor);
    site.division = division_of(json.at("division").get<std::string>());
    for (const Json& host : json.at("hosts")) {
      site.hosts.push_back({host.at("name").get<std::string>(), host.at("address").get<std::string>(),
                            host.at("slots").get<int>(), host.at("devices").get<std::vector<int>>(),
                            ssh_of(host.at("ssh"))});
    }
    json.at("devices").get_to(site.devices);
    const Json& slurm = json.at("slurm");
    site.slurm = {slurm.at("partition").get<std::string>(), slurm.at("account").get<std::string>(),
                  slurm.at("options").get<std::vector<std::string>>()};
    json.at("visible_devices").get_to(site.visible_devices);
    json.at("monitor_command").get_to(site.monitor_command);
    json.at("device_command").get_to(site.device_command);
    json.at("device_count").get_to(site.device_count);
    if (json.contains("peak_flops")) json.at("peak_flops").get_to(site.peak_flops);  // older runs lack some of these
    site.setup = json.value("setup", site.setup);
    site.setup_environment = json.value("setup_environment", site.setup_environment);
    for (const Json& one : json.value("staged", Json::array())) {
      site.staged.push_back({one.at("path").get<std::string>(), one.at("hash").get<std::string>()});
    }
    json.at("concurrency").get_to(site.concurrency);
    json.at("max_failures").get_to(site.max_failures);
    json.at("lease_s").get_to(site.lease_s);
    json.at("monitor_interval_s").get_to(site.monitor_interval_s);
    json.at("master_port").get_to(site.master_port);
    json.at("clear_caches").get_to(site.clear_caches);
    return site;
  } catch (const Json::exception&) {
    throw DataError(fmt::format("{}: the campaign lacks a field, or one has the wrong type", where));
  }
}

Campaign read_campaign(const std::filesystem::path& path) { return CampaignReader(path).read(); }

}  // namespace assay
