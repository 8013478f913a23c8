#include "report/write_reports.h"

#include "base/files.h"
#include "report/html.h"
#include "report/junit.h"
#include "report/markdown.h"
#include "report/result_json.h"

namespace assay {

void write_reports(const RunView& run, const std::filesystem::path& folder) {
  make_folder(folder);
  write_file_atomic(folder / "report.html", render_html(run));
  write_file_atomic(folder / "report.md", render_markdown(run));
  write_file_atomic(folder / "junit.xml", render_junit(run));
  write_file_atomic(folder / "result.json", result_json_text(run));
}

}  // namespace assay
