#include "record/dialect.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "record/dialects/all.h"

namespace assay {

const std::vector<const Dialect*>& dialects() {
  static const std::vector<const Dialect*> kAll{
      &assay_dialect(),      &dllogger_dialect(),  &dllogger_text_dialect(), &tcap_dialect(),
      &tcap_text_dialect(),  &perflog_dialect(),   &mllog_dialect(),         &fleetx_dialect(),
      &paddleclas_dialect(), &paddleseg_dialect(), &paddleocr_dialect(),
  };
  return kAll;
}

const Dialect& dialect_named(std::string_view name) {
  std::vector<std::string> known;
  for (const Dialect* dialect : dialects()) {
    if (dialect->name() == name) return *dialect;
    known.emplace_back(dialect->name());
  }
  throw UsageError(
      fmt::format("unknown log dialect '{}'{}; known: {}", name, did_you_mean(name, known), join(known, ", ")));
}

}  // namespace assay
