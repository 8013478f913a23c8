// {"type": "same_weights", "records": [FILE, ...]}: every result was made from weights of the same hash.
#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "record/keys.h"
#include "verify/checks/all.h"

namespace assay::checks {

namespace {

std::string weights_hash(const Evidence& evidence, const std::string& file) {
  const Json& result = last_result(evidence, file);
  const auto hashes = result.find(keys::kHashes);
  const bool is_known = hashes != result.end() && hashes->is_object() && hashes->contains(keys::kHashOfWeights) &&
                        hashes->at(keys::kHashOfWeights).is_string();
  if (!is_known) throw InvalidError(fmt::format("{} names no weights", file));
  return hashes->at(keys::kHashOfWeights).get<std::string>();
}

class SameWeights : public CheckBody {
 public:
  explicit SameWeights(JsonFields& options) : records_(options.texts("records")) {}

  Verdict judge(const Evidence& evidence) const override {
    std::set<std::string> hashes;
    for (const std::string& file : records_) hashes.insert(weights_hash(evidence, file));
    const size_t count = records_.size();
    if (count < 2) throw InvalidError("fewer than two results to compare");
    const bool same = hashes.size() == 1;
    return {.name = "all results come from the same weights",
            .outcome = same ? Outcome::Pass : Outcome::Fail,
            .reason = same ? fmt::format("{} results from weights {}", count, hashes.begin()->substr(0, 12))
                           : fmt::format("{} different weights in {} results", hashes.size(), count),
            .figures = {{"results", count}, {"weights", hashes.size()}}};
  }

 private:
  std::vector<std::string> records_;
};

}  // namespace

std::unique_ptr<const CheckBody> parse_same_weights(JsonFields& options) {
  return std::make_unique<SameWeights>(options);
}

}  // namespace assay::checks
