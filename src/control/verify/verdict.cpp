#include "verify/verdict.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"

namespace assay {

namespace {

constexpr std::array<std::string_view, 5> kNames = {"Pass", "Fail", "Invalid", "Error", "Skipped"};

}  // namespace

std::string_view outcome_name(Outcome outcome) { return kNames[static_cast<size_t>(outcome)]; }

Outcome outcome_of(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Outcome>(i);
  }
  throw DataError(fmt::format("'{}' is not an outcome (Pass, Fail, Invalid, Error, Skipped)", name));
}

Outcome worst(const std::vector<Outcome>& outcomes) {
  for (Outcome wanted : {Outcome::Error, Outcome::Fail, Outcome::Invalid, Outcome::Pass}) {
    if (std::find(outcomes.begin(), outcomes.end(), wanted) != outcomes.end()) return wanted;
  }
  return Outcome::Invalid;
}

int exit_code(Outcome outcome) {
  switch (outcome) {
    case Outcome::Pass: return kExitPass;
    case Outcome::Fail:
    case Outcome::Error: return kExitFail;
    case Outcome::Invalid:
    case Outcome::Skipped: return kExitInvalid;
  }
  return kExitInvalid;
}

Json to_json(const Verdict& verdict) {
  Json out = {{"name", verdict.name},
              {"outcome", outcome_name(verdict.outcome)},
              {"reason", verdict.reason},
              {"figures", verdict.figures}};
  if (!verdict.row.empty()) {
    out["row"] = verdict.row;
    out["column"] = verdict.column;
  }
  return out;
}

Verdict verdict_of(const Json& value) {
  return {.name = value.at("name").get<std::string>(),
          .outcome = outcome_of(value.at("outcome").get<std::string>()),
          .reason = value.at("reason").get<std::string>(),
          .figures = value.value("figures", Json::object()),
          .row = value.value("row", ""),
          .column = value.value("column", "")};
}

}  // namespace assay
