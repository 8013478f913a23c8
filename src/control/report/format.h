// The formats of reports. Each is one file in report/formats/ and one line in report/formats/all.h;
// docs/extend/add-a-report-format.md shows how to add one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/run_view.h"

namespace assay {

// What a report is printed on; files get the defaults.
struct PrintTarget {
  bool colours = false;
  size_t width = 0;  // in columns; 0: no limit
};

struct ReportFormat {
  const char* name;  // of `assay report --format NAME`
  const char* file;  // that every run writes, by its name in layout/run_layout.h; nullptr: it is only printed
  std::string (*render)(const RunView& run, const PrintTarget& target);
};

const std::vector<ReportFormat>& report_formats();
std::vector<std::string> report_format_names();
// Throws UsageError with the nearest name.
const ReportFormat& report_format(std::string_view name, const std::vector<ReportFormat>& formats = report_formats());

}  // namespace assay
