#include "execute/progress.h"

#include <fmt/format.h>

#include "layout/run_layout.h"
#include "record/keys.h"

namespace assay {

StepProgress::StepProgress(const Step& step, const std::filesystem::path& folder, Console& console)
    : step_(step), console_(console), records_(folder / layout::records_file(step.ranks.first_rank())) {}

void StepProgress::update() {
  for (const Record& record : records_.next()) {
    const Json& data = record.data;
    if (record.type == Record::Type::Event && record.name == keys::kTrainStart && data.contains(keys::kMaxSteps) &&
        is_number(data[keys::kMaxSteps])) {
      total_ = number_of(data[keys::kMaxSteps]);
    }
    if (data.contains(keys::kGlobalStep) && is_number(data[keys::kGlobalStep]))
      done_ = number_of(data[keys::kGlobalStep]);
    if (data.contains(keys::kTrainLoss) && is_number(data[keys::kTrainLoss])) {
      extra_ = fmt::format("loss {:.4f}", number_of(data[keys::kTrainLoss]));
    }
  }
  if (done_ > 0) console_.progress(step_.name, done_, total_, "steps", extra_);
}

}  // namespace assay
