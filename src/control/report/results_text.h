// Results over rounds and runs for people: FlagPerf's table as Markdown, the history of a case, the comparison of two
// runs. How numbers look is report/figures.h's business.
#pragma once

#include <string>
#include <vector>

#include "report/table.h"
#include "results/compare.h"
#include "results/summary.h"

namespace assay {

// config | precision | fix_hp | e2e_time | p_whole | p_train | p_core | acc | mem(used/total) | MFU, one row a case,
// then the scaling efficiency, footnotes and formulas.
std::string markdown_results(const std::vector<CaseSummary>& summaries);

// One line a round, oldest first, and the summary of each case below.
std::string history_text(const std::vector<Result>& rows, const Table::Layout& layout);

// One line a figure, then what a reader must know, then the verdict.
std::string diff_text(const RunComparison& comparison, const Table::Layout& layout);

}  // namespace assay
