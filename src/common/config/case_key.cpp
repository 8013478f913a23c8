#include "config/case_key.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace assay {

namespace {

constexpr int kMaxCount = 32768;  // of nodes, processes, rounds: nnodes * nproc stays within an int
constexpr size_t kNumParts = 6;
constexpr char kForm[] = "model:framework:hardware:nnodes:nproc:repeat";

int count_of(std::string_view text, std::string_view part, std::string_view key) {
  const auto value = parse_int(text);
  if (!value || *value < 1 || *value > kMaxCount) {
    throw UsageError(
        fmt::format("case key '{}': {} must be a number from 1 to {}, found '{}'", key, part, kMaxCount, text));
  }
  return static_cast<int>(*value);
}

void check_name(std::string_view text, std::string_view part, std::string_view key) {
  if (is_plain_name(text)) return;
  throw UsageError(fmt::format("case key '{}': {} '{}' may only have letters, digits, '_', '-', '+' and '.', not first",
                               key, part, text));
}

}  // namespace

bool is_plain_name(std::string_view text) {
  constexpr std::string_view kOther = "_-+.";
  const auto allowed = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOther.find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= 100 && text[0] != '.' && text[0] != '-' &&
         std::all_of(text.begin(), text.end(), allowed);
}

CaseKey CaseKey::parse(std::string_view text) {
  const std::string key = valid_utf8(text.substr(0, 300));
  const auto parts = split(text, ':');
  if (parts.size() != 1 && parts.size() != kNumParts) {
    throw UsageError(fmt::format("case key '{}' has {} parts; write the model alone or {}", key, parts.size(), kForm));
  }
  CaseKey out;
  out.model = parts[0];
  check_name(out.model, "the model", key);
  if (parts.size() == 1) return out;
  out.framework = parts[1];
  check_name(out.framework, "the framework", key);
  out.hardware = parts[2];
  if (!out.hardware.empty()) check_name(out.hardware, "the hardware", key);
  out.nnodes = count_of(parts[3], "nnodes", key);
  out.nproc = count_of(parts[4], "nproc", key);
  out.repeat = count_of(parts[5], "repeat", key);
  return out;
}

std::string CaseKey::text() const {
  CaseKey short_form;
  short_form.model = model;
  if (*this == short_form) return model;
  return fmt::format("{}:{}:{}:{}:{}:{}", model, framework, hardware, nnodes, nproc, repeat);
}

std::string CaseKey::framework_name() const { return framework.substr(0, framework.find('_')); }

}  // namespace assay
