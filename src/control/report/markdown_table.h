// Rows of Markdown tables. Foreign text in cells is made harmless.
#pragma once

#include <string>
#include <vector>

namespace assay {

std::string markdown_row(const std::vector<std::string>& cells);
// Titles and the rule below them. A title that starts with '>' stands over a column of figures.
std::string markdown_titles(const std::vector<std::string>& columns);

}  // namespace assay
