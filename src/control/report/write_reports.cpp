#include "report/write_reports.h"

#include <string_view>

#include "base/files.h"
#include "layout/run_layout.h"
#include "report/format.h"

namespace assay {

void write_reports(const RunView& run, const std::filesystem::path& folder) {
  make_folder(folder);
  const auto write = [&](const ReportFormat& format) {
    write_file_atomic(folder / format.file, format.render(run, PrintTarget{}));
  };
  const auto is_last = [](const ReportFormat& format) { return std::string_view(format.file) == layout::kResult; };
  for (const ReportFormat& format : report_formats()) {
    if (format.file && !is_last(format)) write(format);
  }
  for (const ReportFormat& format : report_formats()) {
    if (format.file && is_last(format)) write(format);
  }
}

}  // namespace assay
