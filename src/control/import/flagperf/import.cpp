#include "import/flagperf/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "config/case_key.h"
#include "import/flagperf/case_import.h"
#include "import/flagperf/yaml_writer.h"
#include "vendor/environment_file.h"

namespace assay {

Json to_json(const FlagperfOverride& change) {
  return {{"vendor", change.vendor},
          {"case", change.case_name},
          {"config", change.config},
          {"key", change.key},
          {"file", change.file},
          {"line", change.line},
          {"base", change.base},
          {"value", change.value},
          {"base_value", change.base_value},
          {"vendor_value", change.vendor_value},
          {"base_place", change.base_place}};
}

Json to_json(const PythonIssue& issue) {
  return {{"file", issue.file}, {"line", issue.line}, {"what", issue.what}, {"sets", issue.sets}};
}

namespace {

class TreeImport {
 public:
  explicit TreeImport(const FlagperfTree& tree) : tree_(tree) {}

  FlagperfImport run() {
    for (const auto* issues : {&tree_.reader->issues(), &tree_.issues}) {
      for (const PythonIssue& issue : *issues) (issue.lost ? out_.not_read : out_.notes).push_back(issue);
    }
    for (size_t i = 0; i < tree_.cases.size(); ++i) import_case(tree_, i, out_);
    write_vendors();
    write_campaign();
    const auto order = [](const PythonIssue& a, const PythonIssue& b) {
      return std::tie(a.file, a.line) < std::tie(b.file, b.line);
    };
    std::stable_sort(out_.not_read.begin(), out_.not_read.end(), order);
    std::stable_sort(out_.notes.begin(), out_.notes.end(), order);
    return std::move(out_);
  }

 private:
  void not_read(const PythonFile& file, int line, const std::string& what, std::vector<std::string> sets = {}) {
    out_.not_read.push_back({file.file, line, what, std::move(sets), true});
  }

  const Value* setting(const PythonFile* file, const char* name) const { return file ? file->value(name) : nullptr; }
  std::string text_setting(const PythonFile* file, const char* name) const {
    const Value* value = setting(file, name);
    return value && value->is_string() ? value->as_string() : "";
  }

  void write_vendors() {
    std::map<std::string, std::set<std::string>> hardware;
    for (const FlagperfAdaption& adaption : tree_.adaptions) {
      for (const FlagperfAdaption::Config& config : adaption.configs) {
        if (!config.file->failed) hardware[adaption.vendor].insert(config.name.hardware);
      }
    }
    const std::string current = text_setting(tree_.test_conf, "VENDOR");
    const std::string variable = text_setting(tree_.test_conf, "ACCE_VISIBLE_DEVICE_ENV_NAME");
    for (const auto& [vendor, names] : hardware) {
      YamlWriter yaml;
      yaml.comment(fmt::format("Imported from FlagPerf: training/{}", vendor));
      yaml.comment("Complete devices, monitor and peak_flops: FlagPerf has them in programs only.");
      yaml.entry("name", Value::string(vendor));
      yaml.section("hardware");
      for (const std::string& name : names) {
        const bool known = vendor == current && is_variable_name(variable);
        yaml.section(name, 1);
        yaml.entry("visible_devices", known ? Value::string(variable) : Value(), 2,
                   known ? "" : "FlagPerf names it in test_conf.py, for one vendor at a time");
      }
      out_.files[fmt::format("vendors/{}/vendor.yaml", vendor)] = yaml.text();
      out_.vendors.push_back(vendor);
    }
  }

  void write_campaign() {
    if (!tree_.test_conf) {
      out_.notes.push_back(
          {"training/run_benchmarks/config/test_conf.py", 0, "is not there: no campaign.yaml was written", {}, false});
      return;
    }
    if (tree_.test_conf->failed) return;
    const PythonFile& conf = *tree_.test_conf;
    const std::string vendor = text_setting(&conf, "VENDOR");
    if (!is_plain_name(vendor)) {
      const PythonName* name = conf.find("VENDOR");
      return not_read(conf, name ? name->origin.line : 0,
                      "VENDOR is not the name of a vendor: no campaign.yaml written", {"VENDOR"});
    }
    YamlWriter yaml;
    yaml.comment("Imported from FlagPerf: " + conf.file);
    yaml.entry("campaign", Value::string("flagperf"));
    yaml.entry("vendor", Value::string(vendor));
    yaml.entry("division", Value::string("closed"));
    write_hosts(yaml);
    const Value* caches = setting(&conf, "CLEAR_CACHES");
    if (caches && caches->is_bool()) yaml.entry("clear_caches", *caches);
    yaml.blank();
    write_cases(yaml, conf, vendor);
    out_.files["campaign.yaml"] = yaml.text();
    note_settings_left_out(conf);
  }

  // Settings of a run that have no place in a campaign: told, so that nobody believes they still count.
  void note_settings_left_out(const PythonFile& conf) {
    static const std::set<std::string> kTaken = {"VENDOR", "CASES", "CLEAR_CACHES", "ACCE_VISIBLE_DEVICE_ENV_NAME"};
    static const std::map<std::string, std::string> kReasons = {
        {"ACCE_CONTAINER_OPT", "cases run without containers"},
        {"SHM_SIZE", "cases run without containers, with the shared memory that the host has"},
        {"FLAGPERF_PATH", "the code is copied into every run folder"},
        {"FLAGPERF_LOG_PATH", "logs lie in the run folder"},
        {"FLAGPERF_LOG_LEVEL", "everything that ranks print is kept"}};
    for (const PythonName& name : conf.names) {
      if (!name.may_be_value || kTaken.contains(name.name)) continue;
      const auto reason = kReasons.find(name.name);
      out_.notes.push_back({conf.file,
                            name.origin.line,
                            fmt::format("{} was not taken over: {}", name.name,
                                        reason == kReasons.end() ? "a campaign has no such setting" : reason->second),
                            {name.name},
                            false});
    }
  }

  void write_hosts(YamlWriter& yaml) {
    const PythonFile* conf = tree_.cluster_conf;
    const Value* hosts = setting(conf, "HOSTS");
    const bool usable = hosts && hosts->is_list() && !hosts->items().empty() &&
                        std::all_of(hosts->items().begin(), hosts->items().end(),
                                    [](const Value& host) { return host.is_string() && !host.as_string().empty(); });
    if (conf && !conf->failed && !usable) {
      const PythonName* name = conf->find("HOSTS");
      out_.notes.push_back({conf->file,
                            name ? name->origin.line : 0,
                            "HOSTS is no list of hosts: the campaign is one of this machine",
                            {"HOSTS"},
                            false});
    }
    yaml.entry("launcher", Value::string(usable ? "ssh" : "local"));
    if (!usable) return;
    yaml.entry("hosts", *hosts);
    const Value* port = setting(conf, "SSH_PORT");
    const auto number = !port               ? std::nullopt
                        : port->is_int()    ? std::optional<long long>(port->as_int())
                        : port->is_string() ? parse_int(port->as_string())
                                            : std::nullopt;
    if (number && *number > 0 && *number < 65536) {
      yaml.section("ssh");
      yaml.entry("port", Value::integer(*number), 1);
    } else if (port) {
      not_read(*conf, port->origin().line, fmt::format("SSH_PORT is {}, no port", port->text()), {"SSH_PORT"});
    }
    if (const Value* master = setting(conf, "MASTER_PORT")) {
      yaml.comment(fmt::format("MASTER_PORT was {}: assay takes ports that are free.", master->text()));
    }
  }

  void write_cases(YamlWriter& yaml, const PythonFile& conf, const std::string& vendor) {
    const Value* cases = conf.value("CASES");
    const PythonName* name = conf.find("CASES");
    yaml.section("cases");
    size_t written = 0;
    if (!cases || !cases->is_map()) {
      not_read(conf, name ? name->origin.line : 0, "CASES is not a dict that can be read", {"CASES"});
    } else {
      for (const Value::Entry& entry : cases->entries()) written += write_campaign_case(yaml, conf, vendor, entry);
    }
    if (written == 0) {
      yaml.comment("none: write `model:framework:hardware:nnodes:nproc:repeat: data folder`");
      out_.notes.push_back({conf.file, name ? name->origin.line : 0, "the campaign has no cases", {}, false});
    }
  }

  bool write_campaign_case(YamlWriter& yaml, const PythonFile& conf, const std::string& vendor,
                           const Value::Entry& entry) {
    const int line = entry.value.origin().line;
    try {
      CaseKey key = CaseKey::parse(entry.key);
      if (key.hardware.empty()) throw UsageError(fmt::format("case key '{}' has no hardware", entry.key));
      if (!entry.value.is_string()) throw UsageError(fmt::format("the data folder is {}", entry.value.text()));
      const auto found = std::find_if(tree_.cases.begin(), tree_.cases.end(), [&](const FlagperfCase& c) {
        return c.model == key.model && (c.framework == key.framework || c.framework == key.framework_name());
      });
      if (found == tree_.cases.end()) {
        throw UsageError(fmt::format("training/benchmarks/{}/{} is not there", key.model, key.framework_name()));
      }
      key.model = found->name;
      const std::string config = ConfigName{key.hardware, key.nnodes, key.nproc}.text();
      if (!out_.files.contains(fmt::format("vendors/{}/{}/{}.yaml", vendor, found->name, config))) {
        throw UsageError(fmt::format("training/{}/{}-{}/config/{}.py is not there or was not read", vendor,
                                     found->model, found->framework, config));
      }
      const bool refused = std::any_of(out_.overrides.begin(), out_.overrides.end(), [&](const FlagperfOverride& o) {
        return o.vendor == vendor && o.case_name == found->name && o.config == config;
      });
      yaml.entry(key.text(), entry.value, 1, refused ? "changes what is immutable: needs division: open" : "");
      return true;
    } catch (const UsageError& error) {
      not_read(conf, line, fmt::format("{}: {}; not in campaign.yaml", entry.key, error.what()));
      return false;
    }
  }

  const FlagperfTree& tree_;
  FlagperfImport out_;
};

}  // namespace

FlagperfImport import_flagperf(const FlagperfTree& tree) { return TreeImport(tree).run(); }

}  // namespace assay
