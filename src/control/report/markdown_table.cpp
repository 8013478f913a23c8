#include "report/markdown_table.h"

#include "report/escape.h"

namespace assay {

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += " " + escape_markdown(cell) + " |";
  return out + "\n";
}

std::string markdown_titles(const std::vector<std::string>& columns) {
  std::string names = "|";
  std::string rule = "|";
  for (const std::string& column : columns) {
    const bool right = column.starts_with('>');
    names += " " + column.substr(right ? 1 : 0) + " |";
    rule += right ? " ---: |" : " --- |";
  }
  return names + "\n" + rule + "\n";
}

}  // namespace assay
