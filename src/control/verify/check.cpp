#include "verify/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "verify/checks/all.h"

namespace assay {

namespace {

std::vector<std::string> names_of(const std::vector<CheckType>& types) {
  std::vector<std::string> names;
  for (const CheckType& type : types) names.emplace_back(type.name);
  return names;
}

}  // namespace

const std::vector<CheckType>& check_registry() {
#define ASSAY_CHECK_ENTRY(name) {#name, checks::parse_##name},
  static const std::vector<CheckType> kTypes = {ASSAY_ALL_CHECKS(ASSAY_CHECK_ENTRY)};
#undef ASSAY_CHECK_ENTRY
  return kTypes;
}

std::vector<std::string> check_types() { return names_of(check_registry()); }

Check Check::parse(const Json& json, const std::vector<CheckType>& types) {
  Check check;
  check.json_ = json;
  check.type_ = JsonFields(json, "check").text("type");
  JsonFields options(json, fmt::format("check '{}'", check.type_));
  options.has("type");
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const CheckType& type) { return check.type_ == type.name; });
  if (found == types.end()) {
    throw DataError(fmt::format("no check '{}'{}", check.type_, did_you_mean(check.type_, names_of(types))));
  }
  if (options.has("name")) check.name_ = options.text("name");
  if (options.has("cell")) {
    check.cell_ = options.texts("cell");
    if (check.cell_.size() != 2) options.fail("cell", "must be a row and a column");
  }
  check.body_ = found->parse(options);
  options.end();
  return check;
}

Verdict Check::judge(const Evidence& evidence) const {
  Verdict verdict;
  try {
    verdict = body_->judge(evidence);
  } catch (const Json::exception&) {
    verdict = {.name = type_, .outcome = Outcome::Invalid, .reason = "its evidence lacks a field"};
  } catch (const Error& error) {
    verdict = {.name = type_, .outcome = Outcome::Invalid, .reason = error.what()};
  }
  if (!name_.empty()) verdict.name = name_;
  if (!cell_.empty()) {
    verdict.row = cell_[0];
    verdict.column = cell_[1];
  }
  return verdict;
}

void Check::keep_evidence(const Evidence& evidence) const {
  try {
    body_->keep_evidence(evidence);
  } catch (const Json::exception&) {
    return;  // the verdict will say so
  } catch (const InvalidError&) {
    return;
  } catch (const DataError&) {
    return;
  }
}

}  // namespace assay
