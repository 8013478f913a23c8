// result.json: the run as data, written last (report/write_reports.h).
#include "layout/run_layout.h"
#include "report/formats/all.h"
#include "report/result_json.h"

namespace assay::formats {

ReportFormat json_format() {
  return {.name = "json", .file = layout::kResult, .render = [](const RunView& run, const PrintTarget&) {
            return result_json_text(run);
          }};
}

}  // namespace assay::formats
