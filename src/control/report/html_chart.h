// A chart as HTML: lines in an SVG that stretches with the page, text beside it that does not.
#pragma once

#include <string>

#include "base/json.h"
#include "report/chart.h"

namespace assay {

// `index` is the chart's place in the page's data.
std::string html_chart(const Chart& chart, size_t index);
// What the script needs to show the values under the pointer.
Json chart_data(const Chart& chart);

std::string html_phases(const std::vector<Phase>& phases);

}  // namespace assay
