#include "execute/rank_output.h"

#include "base/files.h"
#include "base/text.h"
#include "layout/run_layout.h"
#include "record/keys.h"
#include "record/stream.h"

namespace assay {

RankOutput::RankOutput(const StepRanks& ranks, std::filesystem::path step_folder) : folder_(std::move(step_folder)) {
  for (int rank = ranks.first_rank(); rank < ranks.first_rank() + ranks.num_ranks_here(); ++rank) {
    std::error_code none;
    const auto size = std::filesystem::file_size(folder_ / layout::rank_log(rank), none);
    log_sizes_[rank] = none ? 0 : size;
    num_records_[rank] = read_records(folder_ / layout::records_file(rank)).size();
  }
}

std::string RankOutput::failure_message(int rank) const {
  if (!num_records_.contains(rank)) return "";
  const std::vector<Record> records = read_records(folder_ / layout::records_file(rank));
  for (size_t i = records.size(); i > num_records_.at(rank); --i) {
    const Record& record = records[i - 1];
    if (record.type != Record::Type::Event || record.name != keys::kFailure) continue;
    if (record.data.contains(keys::kMessage) && record.data[keys::kMessage].is_string()) {
      return record.data[keys::kMessage].get<std::string>();
    }
  }
  std::string message;
  for (const std::string& line : tail_lines(folder_ / layout::rank_log(rank), 20, log_sizes_.at(rank))) {
    if (line.rfind("error: ", 0) == 0) message = valid_utf8(line.substr(7));
  }
  return message;
}

bool RankOutput::has_event(const char* name) const {
  for (const auto& [rank, before] : num_records_) {
    for (const Record& record : read_records(folder_ / layout::records_file(rank))) {
      if (record.type == Record::Type::Event && record.name == name) return true;
    }
  }
  return false;
}

}  // namespace assay
