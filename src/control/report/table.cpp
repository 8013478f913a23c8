#include "report/table.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "report/plain_text.h"

namespace assay {

namespace {

constexpr size_t kGap = 2;
constexpr size_t kMinWrapWidth = 16;  // narrower columns of prose are harder to read than a line that is too long

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<Cell> cells) {
  ASSAY_CHECK(cells.size() <= columns_.size(), "a row with more cells than the table has columns");
  for (Cell& cell : cells) cell.text = plain_text(cell.text);
  cells.resize(columns_.size(), Cell(""));
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::column_widths(const Layout& layout) const {
  std::vector<size_t> widths;
  size_t fixed = layout.indent;
  size_t num_wrapping = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = layout.titles ? display_width(columns_[i].title) : 0;
    for (const auto& row : rows_) width = std::max(width, display_width(row[i].text));
    widths.push_back(width);
    if (i > 0) fixed += kGap;
    if (columns_[i].wraps) {
      ++num_wrapping;
    } else {
      fixed += width;
    }
  }
  if (layout.width == 0) return widths;
  // Columns that need less than their share leave the rest to the next ones.
  size_t room = layout.width > fixed ? layout.width - fixed : 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].wraps) continue;
    widths[i] = std::min(widths[i], std::max(kMinWrapWidth, room / num_wrapping));
    room -= std::min(room, widths[i]);
    --num_wrapping;
  }
  return widths;
}

std::string Table::line_of(const std::vector<Cell>& cells, const std::vector<size_t>& widths,
                           const Layout& layout) const {
  std::vector<std::vector<std::string>> wrapped;
  size_t height = 1;
  for (size_t i = 0; i < cells.size(); ++i) {
    wrapped.push_back(columns_[i].wraps ? wrap_text(cells[i].text, widths[i])
                                        : std::vector<std::string>{cells[i].text});
    height = std::max(height, wrapped.back().size());
  }
  std::string out;
  for (size_t line = 0; line < height; ++line) {
    out.append(layout.indent, ' ');
    size_t pending = 0;  // blanks that are written only when something follows
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string part = line < wrapped[i].size() ? wrapped[i][line] : "";
      const size_t width = display_width(part);
      const size_t pad = widths[i] > width ? widths[i] - width : 0;
      if (i > 0) pending += kGap;
      if (part.empty()) {
        pending += widths[i];
        continue;
      }
      if (columns_[i].align == Align::Right) pending += pad;
      out.append(pending, ' ');
      out += painted(part, cells[i].colour, layout.colours);
      pending = columns_[i].align == Align::Left ? pad : 0;
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    out += '\n';
  }
  return out;
}

std::string Table::text(const Layout& layout) const {
  const std::vector<size_t> widths = column_widths(layout);
  std::string out;
  if (layout.titles) {
    std::vector<Cell> titles;
    for (const Column& column : columns_) titles.emplace_back(plain_text(column.title), Colour::Dim);
    out += line_of(titles, widths, layout);
  }
  for (const auto& row : rows_) out += line_of(row, widths, layout);
  return out;
}

}  // namespace assay
