#include "record/dialect.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "record/dialects/all.h"

namespace assay {

const std::vector<const Dialect*>& dialects() {
#define ASSAY_DIALECT_ENTRY(name) &name##_dialect(),
  static const std::vector<const Dialect*> kAll = {ASSAY_ALL_DIALECTS(ASSAY_DIALECT_ENTRY)};
#undef ASSAY_DIALECT_ENTRY
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
