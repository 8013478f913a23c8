#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "base/text.h"
#include "config/yaml.h"
#include "frontends/campaign/campaign_front_end.h"
#include "frontends/front_end.h"
#include "frontends/native/native_front_end.h"

namespace assay {

namespace {

constexpr size_t kBytesLookedAt = 64 << 10;

std::string beginning_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kBytesLookedAt, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

std::vector<std::string> keys_at_the_margin(const std::string& text) {
  std::vector<std::string> keys;
  for (const std::string& line : split(text, '\n')) {
    const size_t end = line.find(':');
    const bool is_key = end != std::string::npos && end > 0 && line.find_first_of(" \t#\"'{[-") >= end;
    if (is_key) keys.push_back(line.substr(0, end));
  }
  return keys;
}

}  // namespace

const std::vector<FrontEnd>& front_ends() {
  static const std::vector<FrontEnd> kFrontEnds = {
      native_front_end(),
      campaign_front_end(),
  };
  return kFrontEnds;
}

const FrontEnd& front_end_for(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) throw UsageError(fmt::format("{}: there is no such file", path.string()));
  std::vector<std::string> known;
  for (const FrontEnd& front_end : front_ends()) {
    if (front_end.recognises(path)) return front_end;
    known.push_back("\n  " + front_end.files);
  }
  throw UsageError(fmt::format("{}: not a file that assay can run. It runs{}", path.string(), join(known, "")));
}

std::vector<std::string> top_level_keys(const std::filesystem::path& path) {
  const std::string text = beginning_of(path);
  if (text.find('\0') != std::string::npos) return {};
  try {
    std::vector<std::string> keys;
    const Value root = parse_yaml(text, path.string(), kLayerPlan);
    if (!root.is_map()) return {};
    for (const Value::Entry& entry : root.entries()) keys.push_back(entry.key);
    return keys;
  } catch (const Error&) {  // broken, or longer than what is looked at
    return keys_at_the_margin(text);
  }
}

}  // namespace assay
