#include "site/site.h"

#include <fmt/format.h>

#include <numeric>
#include <set>

#include "base/error.h"

namespace assay {

namespace {

Json to_json(const Host& host) {
  const Json ssh = {{"user", host.user},
                    {"port", host.port},
                    {"identity_file", host.identity_file.string()},
                    {"known_hosts", host.known_hosts.string()},
                    {"work_dir", host.work_dir.string()},
                    {"program", host.program.string()}};
  return {
      {"name", host.name}, {"address", host.address}, {"slots", host.slots}, {"devices", host.devices}, {"ssh", ssh}};
}

Host host_of(const Json& json) {
  const Json& ssh = json.at("ssh");
  return {.name = json.at("name").get<std::string>(),
          .address = json.at("address").get<std::string>(),
          .slots = json.at("slots").get<int>(),
          .devices = json.at("devices").get<std::vector<int>>(),
          .user = ssh.at("user").get<std::string>(),
          .port = ssh.at("port").get<int>(),
          .identity_file = ssh.at("identity_file").get<std::string>(),
          .known_hosts = ssh.at("known_hosts").get<std::string>(),
          .work_dir = ssh.at("work_dir").get<std::string>(),
          .program = ssh.at("program").get<std::string>()};
}

// Reads fields that earlier versions may not have written, and knows which are left.
class SiteFields {
 public:
  explicit SiteFields(const Json& json) : json_(json) {}

  template <typename T>
  void read(const char* key, T& value) {
    known_.insert(key);
    if (json_.contains(key)) json_.at(key).get_to(value);
  }
  // What is left belongs to launchers.
  std::map<std::string, Json> sections() const {
    std::map<std::string, Json> out;
    for (const auto& [key, value] : json_.items()) {
      if (!known_.contains(key)) out[key] = value;
    }
    return out;
  }

 private:
  const Json& json_;
  std::set<std::string> known_;
};

std::vector<std::string> keys_of(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

}  // namespace

std::vector<int> Host::usable_devices() const {
  if (!devices.empty()) return devices;
  std::vector<int> all(static_cast<size_t>(std::max(slots, 0)));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::string staged_folder(const std::string& hash) { return "../data/" + hash; }

Json to_json(const Site& site) {
  Json hosts = Json::array();
  for (const Host& host : site.hosts) hosts.push_back(to_json(host));
  Json staged = Json::array();
  for (const auto& [path, hash] : site.staged) staged.push_back({{"path", path.string()}, {"hash", hash}});
  const SiteSettings& settings = site.settings;
  Json out = {{"launcher", site.launcher},
              {"vendor", site.vendor},
              {"division", site.division},
              {"hosts", hosts},
              {"devices", site.devices}};
  for (const auto& [launcher, section] : site.sections) out[launcher] = section;
  out.update({{"visible_devices", settings.visible_devices},
              {"monitor_command", settings.monitor_command},
              {"device_command", site.device_command},
              {"device_count", site.device_count},
              {"staged", staged},
              {"setup", settings.setup},
              {"setup_environment", settings.setup_env},
              {"peak_flops", site.peak_flops},
              {"concurrency", site.concurrency},
              {"max_failures", site.max_failures},
              {"lease_s", settings.lease_s},
              {"monitor_interval_s", settings.monitor_interval_s},
              {"master_port", site.master_port},
              {"clear_caches", settings.clear_caches}});
  if (site.fields.empty()) return out;
  Json as_read = Json::object();
  for (const std::string& key : site.fields) as_read[key] = out.at(key);
  return as_read;
}

Site site_of(const Json& json, const std::string& where) {
  try {
    Site site;
    json.at("launcher").get_to(site.launcher);
    SiteFields fields(json);
    Json hosts = Json::array(), staged = Json::array();
    fields.read("launcher", site.launcher);
    fields.read("vendor", site.vendor);
    fields.read("division", site.division);
    fields.read("hosts", hosts);
    fields.read("devices", site.devices);
    fields.read("visible_devices", site.settings.visible_devices);
    fields.read("monitor_command", site.settings.monitor_command);
    fields.read("device_command", site.device_command);
    fields.read("device_count", site.device_count);
    fields.read("staged", staged);
    fields.read("setup", site.settings.setup);
    fields.read("setup_environment", site.settings.setup_env);
    fields.read("peak_flops", site.peak_flops);
    fields.read("concurrency", site.concurrency);
    fields.read("max_failures", site.max_failures);
    fields.read("lease_s", site.settings.lease_s);
    fields.read("monitor_interval_s", site.settings.monitor_interval_s);
    fields.read("master_port", site.master_port);
    fields.read("clear_caches", site.settings.clear_caches);
    for (const Json& host : hosts) site.hosts.push_back(host_of(host));
    for (const Json& item : staged) {
      site.staged.push_back({item.at("path").get<std::string>(), item.at("hash").get<std::string>()});
    }
    site.sections = fields.sections();
    if (keys_of(to_json(site)) != keys_of(json)) site.fields = keys_of(json);
    return site;
  } catch (const Json::exception&) {
    throw DataError(fmt::format("{}: the campaign lacks a field, or one has the wrong type", where));
  }
}

}  // namespace assay
