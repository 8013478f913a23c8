#include "vendor/config_name.h"

#include <fmt/format.h>

#include "base/text.h"
#include "config/case_key.h"

namespace assay {

namespace {

constexpr std::string_view kConfigPrefix = "config_";
constexpr long long kMaxCount = 32768;  // as in case keys

std::optional<int> count_in_name(std::string_view text) {
  const auto value = parse_int(text);
  if (!value || *value < 1 || *value > kMaxCount || text[0] == '0' || text[0] == '+') return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

std::string ConfigName::text() const { return fmt::format("{}{}x{}x{}", kConfigPrefix, hardware, nnodes, nproc); }

std::optional<ConfigName> parse_config_name(std::string_view stem) {
  if (!stem.starts_with(kConfigPrefix)) return std::nullopt;
  stem.remove_prefix(kConfigPrefix.size());
  const size_t last = stem.rfind('x');
  if (last == std::string_view::npos || last == 0) return std::nullopt;
  const size_t before = stem.rfind('x', last - 1);
  if (before == std::string_view::npos) return std::nullopt;
  const auto nnodes = count_in_name(stem.substr(before + 1, last - before - 1));
  const auto nproc = count_in_name(stem.substr(last + 1));
  const std::string hardware(stem.substr(0, before));
  if (!nnodes || !nproc || !is_plain_name(hardware)) return std::nullopt;
  return ConfigName{hardware, *nnodes, *nproc};
}

}  // namespace assay
