// result.json: the run as data (docs/reference/formats.md), and the way back, so that every other report can be made
// again elsewhere.
#pragma once

#include <string>

#include "base/json.h"
#include "layout/run_layout.h"
#include "report/run_view.h"

namespace assay {

inline constexpr char kResultSchema[] = "assay/result-v1";
// Curves with more points are thinned out in result.json, which then says how many there were; the records have all.
inline constexpr size_t kMaxResultPoints = 10'000;

Json render_result_json(const RunView& run);
// The text of the file: indented, but a list of numbers or words on one line.
std::string result_json_text(const RunView& run);

// Throws DataError, naming the place ("result.json: steps[2].outcome: ..."), for anything that is not such a result.
RunView run_view_of(const Json& result, const std::string& where = layout::kResult);

}  // namespace assay
