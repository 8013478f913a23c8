#include "results/thresholds.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "config/case_key.h"
#include "config/yaml.h"

namespace assay {

namespace {

constexpr char kDefaultSection[] = "default";

std::vector<std::string> judged_figures() {
  std::vector<std::string> out;
  for (const FigureSpec& spec : figure_specs()) {
    if (spec.better != FigureSpec::Better::Neither) out.emplace_back(spec.key);
  }
  return out;
}

std::map<std::string, double> section_of(const std::string& name, const Value& section) {
  if (!section.is_map()) {
    throw ConfigError(fmt::format("{}: {} must be a map of figure -> percent, found {}", section.origin().text(), name,
                                  section.text()));
  }
  const std::vector<std::string> known = judged_figures();
  std::map<std::string, double> out;
  for (const Value::Entry& entry : section.entries()) {
    const std::string place = fmt::format("{}: {}.{}", entry.value.origin().text(), name, entry.key);
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      throw ConfigError(fmt::format("{}: is no figure that can get worse{}; there are {}", place,
                                    did_you_mean(entry.key, known), join(known, ", ")));
    }
    const bool good = entry.value.is_number() && std::isfinite(entry.value.as_double()) && entry.value.as_double() >= 0;
    if (!good) {
      throw ConfigError(fmt::format("{}: must be a number of percent, 0 or more, found {}", place, entry.value.text()));
    }
    out[entry.key] = entry.value.as_double();
  }
  return out;
}

std::string hardware_of(const std::string& case_key) {
  try {
    return CaseKey::parse(case_key).hardware;
  } catch (const UsageError&) {
    return "";
  }
}

}  // namespace

Thresholds Thresholds::read(const std::filesystem::path& file) {
  const Value tree = load_yaml(file, "thresholds");
  Thresholds out;
  out.from_file_ = true;
  for (const Value::Entry& entry : tree.entries()) out.sections_[entry.key] = section_of(entry.key, entry.value);
  if (out.sections_.empty()) {
    throw ConfigError(
        fmt::format("{}: no thresholds in it; write system: {{figure: percent}}, or default: ...", file.string()));
  }
  return out;
}

std::optional<double> Thresholds::percent(const Result& row, const std::string& figure) const {
  if (!from_file_) return kDefaultThresholdPercent;
  std::vector<std::string> names = {row.system};
  names.insert(names.end(), row.hosts.begin(), row.hosts.end());
  names.push_back(hardware_of(row.case_key));
  names.push_back(row.vendor);
  names.emplace_back(kDefaultSection);
  for (const std::string& name : names) {
    const auto section = name.empty() ? sections_.end() : sections_.find(name);
    if (section == sections_.end()) continue;
    const auto found = section->second.find(figure);
    if (found != section->second.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace assay
