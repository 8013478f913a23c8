#include "monitor/devices.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/process.h"
#include "base/text.h"

namespace assay {

namespace {

constexpr size_t kMaxDevices = 1024;  // nobody has more; a command gone wild has
constexpr size_t kMaxFields = 64;
constexpr size_t kMaxOutput = 1 << 20;

struct KnownFigure {
  const char* vendor_name;  // as nvidia-smi titles it, without the unit
  const char* name;
};
constexpr KnownFigure kKnownFigures[] = {
    {"utilization.gpu", "utilization"}, {"memory.used", "memory_used_bytes"}, {"memory.total", "memory_total_bytes"},
    {"power.draw", "power_w"},          {"temperature.gpu", "temperature_c"},
};

double unit_factor(std::string_view unit) {
  static const std::map<std::string, double, std::less<>> kFactors = {
      {"%", 0.01}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"mW", 1e-3}, {"kW", 1e3}};
  const auto found = kFactors.find(unit);
  return found == kFactors.end() ? 1 : found->second;
}

// "35 %", "1024 MiB", "P0", "[N/A]"; the unit may stand in the title instead.
Json csv_value(std::string_view text, std::string_view title_unit) {
  text = trim(text);
  const std::string low = lower(text);
  if (text.empty() || low == "n/a" || low == "[n/a]" || low.rfind("[not ", 0) == 0 || low == "[unknown error]") {
    return nullptr;
  }
  const size_t blank = text.find(' ');
  const auto number = parse_double(text.substr(0, blank));
  if (!number || !std::isfinite(*number)) return valid_utf8(text);
  const std::string_view unit = blank == std::string_view::npos ? title_unit : trim(text.substr(blank + 1));
  return *number * unit_factor(unit);
}

struct Column {
  std::string name;
  std::string unit;
};

Column column_of(std::string_view title) {
  title = trim(title);
  Column out;
  const size_t bracket = title.find('[');
  out.name = valid_utf8(trim(title.substr(0, bracket)));
  if (bracket != std::string_view::npos) {
    const size_t end = title.find(']', bracket);
    if (end != std::string_view::npos) out.unit = title.substr(bracket + 1, end - bracket - 1);
  }
  for (const KnownFigure& known : kKnownFigures) {
    if (out.name == known.vendor_name) out.name = known.name;
  }
  return out;
}

Json json_device(std::string_view line) {
  Json value = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!value.is_object() || value.empty() || value.size() > kMaxFields) return nullptr;
  Json out = Json::object();
  for (auto& [name, figure] : value.items()) {
    if (!figure.is_structured()) out[name] = figure;
  }
  return out.empty() ? Json(nullptr) : out;
}

}  // namespace

Json parse_devices(std::string_view text) {
  Json out = Json::array();
  std::vector<Column> columns;
  for (const std::string& raw : split(text.substr(0, kMaxOutput), '\n')) {
    const std::string_view line = trim(raw);
    if (line.empty() || out.size() >= kMaxDevices) continue;
    if (line.front() == '{') {
      if (Json device = json_device(line); !device.is_null()) out.push_back(std::move(device));
      continue;
    }
    const auto cells = split(line, ',');
    if (columns.empty()) {
      if (cells.size() < 2 || cells.size() > kMaxFields) continue;  // a warning before the titles
      for (const std::string& cell : cells) columns.push_back(column_of(cell));
    } else if (cells.size() == columns.size()) {
      Json device = Json::object();
      for (size_t i = 0; i < cells.size(); ++i) device[columns[i].name] = csv_value(cells[i], columns[i].unit);
      out.push_back(std::move(device));
    }
  }
  return out.empty() ? Json(nullptr) : out;
}

Json ask_devices(const std::vector<std::string>& argv, double time_limit_s, int wake_fd) {
  if (argv.empty()) return nullptr;
  try {
    const TempFolder folder("assay-devices");
    const fs::path output = folder.path() / "output";
    Process process = Process::start({.argv = argv, .output_file = output});
    const auto status = process.wait_for(time_limit_s, wake_fd);
    if (!status || !status->ok() || fs::file_size(output) > kMaxOutput) return nullptr;  // ~Process ends a slow one
    return parse_devices(read_file(output));
  } catch (const std::exception&) {  // no such program, no room for its output: unknown, and the monitor goes on
    return nullptr;
  }
}

}  // namespace assay
