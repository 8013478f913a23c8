#include "import/flagperf/case_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "config/schema.h"
#include "import/flagperf/entry_import.h"
#include "import/flagperf/target_import.h"
#include "import/flagperf/yaml_writer.h"
#include "vendor/environment_file.h"

namespace assay {

namespace {

constexpr char kVendorKey[] = "vendor";
constexpr char kDataKey[] = "data_dir";  // our data.path

// A name that means something else in our files; a number called `target` is our target.value.
bool is_reserved(const PythonName& name) {
  if (name.name == "target") return name.known && !name.value.is_number();
  return is_head_key(name.name) || name.name == "config" || name.name == "_base_" || name.name == "_inherited_";
}

bool all_numbers(const Value& value) {
  return value.is_list() && !value.items().empty() &&
         std::all_of(value.items().begin(), value.items().end(), [](const Value& v) { return v.is_number(); });
}

Value as_real(const Value& value) { return value.is_int() ? Value::real(value.as_double(), value.origin()) : value; }

bool has_real(const Value& value) {
  return value.is_double() || (value.is_list() && std::any_of(value.items().begin(), value.items().end(), has_real));
}

// What check_layer will refuse, in a few words; "" when it fits.
std::string type_clash(const Value& base, const Value& value) {
  if (base.is_null() || value.is_null()) return "";
  if (base.is_double() && value.is_int()) return "";
  if (base.type() != value.type()) {
    return fmt::format("{} where the case has {}", type_text(value.type()), type_text(base.type()));
  }
  if (base.is_list() && !base.items().empty()) {
    for (const Value& item : value.items()) {
      const Value& first = base.items()[0];
      if (item.type() != first.type() && !(first.is_double() && item.is_int())) {
        return fmt::format("{} in a list where the case has {}", type_text(item.type()), type_text(first.type()));
      }
    }
  }
  if (base.is_map()) {
    for (const Value::Entry& entry : value.entries()) {
      const Value* twin = base.child(entry.key);
      if (!twin) return fmt::format("the key '{}', which the case does not have in it", entry.key);
      if (const std::string inner = type_clash(*twin, entry.value); !inner.empty()) return inner;
    }
  }
  return "";
}

}  // namespace

bool same_python_value(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return left.as_double() == right.as_double();
  if (left.is_list() && right.is_list()) {
    return std::equal(left.items().begin(), left.items().end(), right.items().begin(), right.items().end(),
                      same_python_value);
  }
  return left.same_as(right);
}

Value with_types_of(Value value, const Value& other) {
  const bool is_flag = value.is_int() && (value.as_int() == 0 || value.as_int() == 1);
  if (other.is_bool() && is_flag) return Value::boolean(value.as_int() == 1, value.origin());
  if (value.is_int() && other.is_double()) return as_real(value);
  // A list of numbers has one type: that with fractions as soon as one of them has any.
  if (all_numbers(value) && (has_real(value) || (other.is_list() && has_real(other)))) {
    for (Value& item : value.items()) item = as_real(item);
  }
  return value;
}

namespace {

class CaseImport {
 public:
  CaseImport(const FlagperfTree& tree, size_t index, FlagperfImport& out)
      : tree_(tree), case_(tree.cases[index]), index_(index), out_(out) {}

  void run() {
    read_mutable();
    read_base();
    std::vector<std::pair<std::string, std::string>> files;
    for (const FlagperfAdaption& adaption : tree_.adaptions) {
      if (adaption.case_index != index_) continue;
      for (const FlagperfAdaption::Config& config : adaption.configs) {
        if (!config.file->failed) add_config(adaption, config);
      }
      add_environment(adaption);
    }
    if (!case_.base && vendor_files_.empty()) return;  // nothing of it is configuration
    if (!case_.base) {
      note(tree_.shown(case_.folder), 0,
           "the case has no config/_base.py: FlagPerf holds vendors' files against nothing");
    }
    write_case();
    for (const VendorFile& file : vendor_files_) write_config(file);
    out_.cases.push_back(case_.name);
  }

 private:
  // A key of the case: its value, or why that is not known.
  struct Key {
    Value value;  // null when not known
    bool known = true;
    std::string why;
    Origin origin;
    bool added = false;   // only vendors have it
    Value original = {};  // before whole numbers got a fraction
  };
  struct VendorFile {
    const FlagperfAdaption* adaption;
    const FlagperfAdaption::Config* config;
    std::vector<std::pair<std::string, Value>> values;
    std::map<std::string, std::string> remarks;
  };

  void note(const std::string& file, int line, const std::string& what, std::vector<std::string> sets = {}) {
    out_.notes.push_back({file, line, what, std::move(sets), false});
  }
  void not_read(const std::string& file, int line, const std::string& what, std::vector<std::string> sets = {}) {
    out_.not_read.push_back({file, line, what, std::move(sets), true});
  }

  void read_mutable() {
    if (!case_.mutable_file || case_.mutable_file->failed) {
      if (case_.base) note(tree_.shown(case_.folder), 0, "there is no list of mutable names: only vendor is mutable");
      return;
    }
    const PythonFile& file = *case_.mutable_file;
    const Value* list = file.value("mutable_params");
    if (!list || !list->is_list()) {
      const PythonName* name = file.find("mutable_params");
      return not_read(file.file, name ? name->origin.line : 0,
                      "mutable_params is not a list that can be read: only vendor counts as mutable",
                      {"mutable_params"});
    }
    for (const Value& item : list->items()) {
      if (item.is_string()) {
        mutable_.insert(item.as_string());
        mutable_origin_[item.as_string()] = item.origin();
      } else {
        not_read(file.file, item.origin().line, fmt::format("{} is no name", item.text()));
      }
    }
  }

  void read_base() {
    keys_order_.push_back(kVendorKey);
    keys_[kVendorKey] = {};
    if (!case_.base) return;
    for (const PythonName& name : case_.base->names) {
      if (!name.may_be_value || name.name.starts_with("__")) continue;
      if (is_reserved(name)) {
        if (name.known && name.value.is_null()) continue;  // it says nothing
        not_read(case_.base->file, name.origin.line,
                 fmt::format("'{}' means something else in assay's files and was left out", name.name), {name.name});
        continue;
      }
      Key key{name.known ? name.value : Value(), name.known, name.why, name.origin};
      key.original = key.value;
      if (name.annotation == "float") key.value = as_real(key.value);
      key.value = with_types_of(key.value, Value());
      if (!keys_.contains(name.name)) keys_order_.push_back(name.name);
      keys_[name.name] = std::move(key);
    }
    for (const std::string& name : mutable_) {
      if (keys_.contains(name)) continue;
      const Origin& origin = mutable_origin_[name];
      note(origin.file, origin.line, fmt::format("'{}' is in no list of parameters of the case", name), {name});
    }
    for (const std::string& name : keys_order_) {
      if (!is_target_name(name) || !mutable_.contains(name) || !keys_[name].value.is_number()) continue;
      mutable_.erase(name);
      const Origin& origin = mutable_origin_[name];
      note(origin.file, origin.line,
           fmt::format("'{}' is the target, which says what a result means: it is not mutable here", name), {name});
    }
  }

  bool is_mutable(const std::string& name) const {
    return name == kVendorKey || name == kDataKey || mutable_.contains(name);
  }

  void add_config(const FlagperfAdaption& adaption, const FlagperfAdaption::Config& config) {
    VendorFile file{&adaption, &config, {}, {}};
    for (const PythonName& name : config.file->names) {
      if (name.may_be_value && !name.name.starts_with("__")) add_value(file, name);
    }
    vendor_files_.push_back(std::move(file));
  }

  void add_value(VendorFile& file, const PythonName& name) {
    const std::string& key = name.name;
    const Origin& place = name.origin;
    if (key == kVendorKey) {
      if (name.known && name.value.is_string() && name.value.as_string() != file.adaption->vendor) {
        note(place.file, place.line,
             fmt::format("vendor is {} in the folder of '{}'; that of the folder is written", name.value.text(),
                         file.adaption->vendor));
      }
      return;
    }
    if (is_reserved(name)) {
      if (name.known && name.value.is_null()) return;
      return not_read(place.file, place.line,
                      fmt::format("'{}' means something else in assay's files and was left out", key), {key});
    }
    auto found = keys_.find(key);
    if (found == keys_.end()) {
      // FlagPerf takes no None from vendors; what was not read the reader has named.
      if (!name.known || name.value.is_null()) return;
      const bool open = case_.base && !case_.base->open_imports.empty();
      if (!open) mutable_.insert(key);
      found = keys_.emplace(key, Key{Value(), !open, "", place, true, {}}).first;
      if (open) found->second.why = "not known: the case imports names from elsewhere";
      keys_order_.push_back(key);
    }
    Key& base = found->second;
    if (name.known && name.value.is_null()) {
      if (!base.value.is_null()) {
        note(place.file, place.line, fmt::format("{} = None is without effect in FlagPerf and was left out", key),
             {key});
      }
      return;
    }
    const bool differs =
        !name.known || !base.known || !same_python_value(base.value, with_types_of(name.value, base.value));
    if (!is_mutable(key) && differs) add_override(file, name, base);
    if (!name.known) return;  // the reader's issues say so
    base.value = with_types_of(base.value, name.value);
    Value value = with_types_of(name.value, base.value);
    value.set_standalone(value.is_map());
    if (const std::string clash = base.added ? "" : type_clash(base.value, value); !clash.empty()) {
      not_read(place.file, place.line, fmt::format("{} is {}: written, but assay refuses the file", key, clash), {key});
    }
    file.values.emplace_back(key, std::move(value));
  }

  static std::string our_key(const std::string& name) { return name == "target" ? "target.value" : name; }

  void add_override(VendorFile& file, const PythonName& name, const Key& base) {
    FlagperfOverride change;
    change.vendor = file.adaption->vendor;
    change.case_name = case_.name;
    change.config = file.config->name.text();
    change.key = our_key(name.name);
    change.file = name.origin.file;
    change.line = name.origin.line;
    change.base = base.known ? base.value.text() : base.added ? base.why : "not read: " + base.why;
    change.value = name.known ? name.value.text() : "not read: " + name.why;
    change.base_value = base.known ? base.value.to_json() : Json();
    change.vendor_value = name.known ? name.value.to_json() : Json();
    if (!base.added) change.base_place = base.origin.text();
    file.remarks[name.name] = fmt::format("immutable: {} in the case; the closed division refuses this", change.base);
    out_.overrides.push_back(std::move(change));
  }

  void add_environment(const FlagperfAdaption& adaption) {
    const std::string folder = fmt::format("vendors/{}/{}/", adaption.vendor, case_.name);
    const std::string shown = tree_.shown(adaption.folder / "config/environment_variables.sh");
    std::string text = "# Imported from FlagPerf: " + shown + "\n";
    for (const auto& [name, variable] : adaption.environment.variables) {
      const std::string line = name + "=" + variable.value + "\n";
      bool same = false;
      try {
        same = parse_environment(line, "").variables[name] == variable.value;
      } catch (const std::runtime_error&) {
      }
      if (same) {
        text += line;
      } else {
        not_read(shown, variable.line, fmt::format("the value of {} cannot stand in a file of KEY=VALUE lines", name),
                 {name});
      }
    }
    if (!adaption.environment.variables.empty()) out_.files[folder + "environment"] = text;
    if (adaption.requirements.empty()) return;
    out_.files[folder + "requirements.txt"] = join(adaption.requirements, "\n") + "\n";
    note(tree_.shown(adaption.folder / "config/requirements.txt"), 0,
         "packages are written beside the configuration, but assay installs nothing: let the vendor's setup do that");
  }

  std::string case_file() const {
    return fmt::format("cases/{}/{}.yaml", case_.model, case_.name == case_.model ? "case" : case_.framework);
  }

  void write_case() {
    YamlWriter yaml;
    const std::string from = tree_.shown(case_.folder);
    yaml.comment(fmt::format("Imported from FlagPerf: {}", from));
    yaml.entry("model", Value::string(case_.model));
    yaml.entry("framework", Value::string(case_.framework));
    yaml.entry("source", Value::string("FlagPerf, " + from));
    const FlagperfEntry entry = flagperf_entry(tree_, case_, base_values());
    if (!entry.missing.empty()) not_read(from, 0, entry.missing);
    Value command = Value::list();
    for (const std::string& argument : entry.argv) command.items().push_back(Value::string(argument));
    yaml.entry("entry", command);
    write_data(yaml);
    write_target(yaml);
    write_mutable(yaml);
    yaml.blank();
    yaml.section("config");
    for (const std::string& name : keys_order_) write_key(yaml, name);
    out_.files[case_file()] = yaml.text();
    for (const auto& [name, text] : entry.files) {
      out_.files[(fs::path(case_file()).parent_path() / name).generic_string()] = text;
    }
  }

  // What the case itself has, as its program knows it.
  Json base_values() const {
    Json values = Json::object();
    for (const std::string& name : keys_order_) {
      const Key& key = keys_.at(name);
      if (key.known && !key.added && !key.value.is_null()) values[name] = key.original.to_json();
    }
    return values;
  }

  void write_data(YamlWriter& yaml) {
    const auto data = keys_.find(kDataKey);
    if (data == keys_.end() || !data->second.value.is_string() || data->second.value.as_string().empty()) return;
    yaml.blank();
    yaml.section("data");
    yaml.entry("path", data->second.value, 1, "data_dir");
  }

  void write_target(YamlWriter& yaml) {
    yaml.blank();
    yaml.section("target");
    const std::string* found = nullptr;
    for (const std::string& name : keys_order_) {
      const Key& key = keys_[name];
      if (!is_target_name(name) || !key.known || key.added || !key.value.is_number()) continue;
      if (!found) {
        found = &name;
      } else {
        note(key.origin.file, key.origin.line,
             fmt::format("the case has two targets; that of the results is {}", *found), {name});
      }
    }
    if (!found) {
      note(tree_.shown(case_.folder), 0, "the case has no target that could be read: its results meet none");
      yaml.entry("metric", Value::string("none"), 1, "FlagPerf's case names no target");
      yaml.entry("value", Value::real(0), 1);
      return;
    }
    const std::string metric = target_metric(*found);
    yaml.entry("metric", Value::string(metric), 1);
    yaml.entry("value", keys_[*found].value, 1);
    yaml.entry("goal", Value::string(is_minimized(metric) ? "minimize" : "maximize"), 1);
  }

  void write_mutable(YamlWriter& yaml) {
    yaml.blank();
    yaml.section("mutable");
    for (const bool added : {false, true}) {
      for (const std::string& name : keys_order_) {
        if (keys_[name].added != added || !is_mutable(name) || name == kDataKey || name == "target") continue;
        yaml.item(Value::string(name), 1, added ? "only vendors' files have it" : "");
      }
    }
  }

  void write_key(YamlWriter& yaml, const std::string& name) {
    if (name == kDataKey || name == "target") return;
    const Key& key = keys_[name];
    std::string remark;
    if (!key.known && !key.added) remark = fmt::format("not read, line {}: {}", key.origin.line, key.why);
    if (key.added) remark = "only vendors' files have it";
    yaml.entry(name, key.value, 1, remark);
  }

  void write_config(const VendorFile& file) {
    YamlWriter yaml;
    yaml.comment(fmt::format("Imported from FlagPerf: {}", file.config->file->file));
    yaml.entry(kVendorKey, Value::string(file.adaption->vendor));
    for (const auto& [name, value] : file.values) {
      const auto remark = file.remarks.find(name);
      const std::string text = remark == file.remarks.end() ? "" : remark->second;
      if (name == "target") {
        yaml.section("target");
        yaml.entry("value", value, 1, text);
      } else if (name == kDataKey) {
        yaml.section("data");
        yaml.entry("path", value, 1);
      } else {
        yaml.entry(name, value, 0, text);
      }
    }
    out_.files[fmt::format("vendors/{}/{}/{}.yaml", file.adaption->vendor, case_.name, file.config->name.text())] =
        yaml.text();
  }

  const FlagperfTree& tree_;
  const FlagperfCase& case_;
  size_t index_;
  FlagperfImport& out_;
  std::set<std::string> mutable_;
  std::map<std::string, Origin> mutable_origin_;
  std::vector<std::string> keys_order_;
  std::map<std::string, Key> keys_;
  std::vector<VendorFile> vendor_files_;
};

}  // namespace

void import_case(const FlagperfTree& tree, size_t case_index, FlagperfImport& out) {
  CaseImport(tree, case_index, out).run();
}

}  // namespace assay
