// Every format of reports, one line each: "html" is formats::html_format(), in formats/html.cpp.
#pragma once

#include "report/format.h"

// clang-format off
#define ASSAY_ALL_REPORT_FORMATS(FORMAT) \
  FORMAT(terminal)                       \
  FORMAT(html)                           \
  FORMAT(markdown)                       \
  FORMAT(junit)                          \
  FORMAT(json)
// clang-format on

namespace assay::formats {

#define ASSAY_DECLARE_FORMAT(name) ReportFormat name##_format();
ASSAY_ALL_REPORT_FORMATS(ASSAY_DECLARE_FORMAT)
#undef ASSAY_DECLARE_FORMAT

}  // namespace assay::formats
