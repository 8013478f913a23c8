// {"type": "loss_falls", "records": FILE}: every training loss is finite, and the mean of the last tenth is below that
// of the first tenth.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "verify/checks/all.h"
#include "verify/training_comparison.h"

namespace assay::checks {

namespace {

double mean_of(const std::vector<double>& values, size_t begin, size_t end) {
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += values[i];
  return sum / static_cast<double>(end - begin);
}

class LossFalls : public CheckBody {
 public:
  explicit LossFalls(JsonFields& options) : records_(options.text("records")) {}

  Verdict judge(const Evidence& evidence) const override {
    std::vector<double> losses;
    for (const auto& [step, loss] : losses_by_step(evidence.records(records_))) losses.push_back(loss);
    if (losses.size() < 2) throw InvalidError(fmt::format("{} training losses are too few to compare", losses.size()));
    Verdict verdict;
    verdict.name = "training loss falls";
    const auto broken = std::find_if(losses.begin(), losses.end(), [](double loss) { return !std::isfinite(loss); });
    if (broken != losses.end()) {
      verdict.outcome = Outcome::Fail;
      verdict.reason =
          fmt::format("loss {} of {} is {}", broken - losses.begin() + 1, losses.size(), python_float(*broken));
      return verdict;
    }
    const size_t tenth = std::max<size_t>(1, losses.size() / 10);
    const double first = mean_of(losses, 0, tenth);
    const double last = mean_of(losses, losses.size() - tenth, losses.size());
    verdict.outcome = last < first ? Outcome::Pass : Outcome::Fail;
    verdict.reason = fmt::format("from {:.4f} to {:.4f}", first, last);
    verdict.figures = {{"first", first}, {"last", last}, {"losses", losses.size()}};
    return verdict;
  }

 private:
  std::string records_;
};

}  // namespace

std::unique_ptr<const CheckBody> parse_loss_falls(JsonFields& options) { return std::make_unique<LossFalls>(options); }

}  // namespace assay::checks
