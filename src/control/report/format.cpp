#include "report/format.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "report/formats/all.h"

namespace assay {

const std::vector<ReportFormat>& report_formats() {
#define ASSAY_FORMAT_ENTRY(name) formats::name##_format(),
  static const std::vector<ReportFormat> kFormats = {ASSAY_ALL_REPORT_FORMATS(ASSAY_FORMAT_ENTRY)};
#undef ASSAY_FORMAT_ENTRY
  return kFormats;
}

std::vector<std::string> report_format_names() {
  std::vector<std::string> names;
  for (const ReportFormat& format : report_formats()) names.emplace_back(format.name);
  return names;
}

const ReportFormat& report_format(std::string_view name, const std::vector<ReportFormat>& formats) {
  std::vector<std::string> known;
  for (const ReportFormat& format : formats) {
    if (name == format.name) return format;
    known.emplace_back(format.name);
  }
  throw UsageError(
      fmt::format("--format: no format '{}'{}; there are {}", name, did_you_mean(name, known), join(known, ", ")));
}

}  // namespace assay
