// Aligned text tables for the terminal. Knows columns, widths (CJK is two wide) and colours, not what the cells mean.
#pragma once

#include <string>
#include <vector>

#include "base/console.h"

namespace assay {

struct Cell {
  Cell(std::string cell_text, Colour cell_colour = Colour::Plain) : text(std::move(cell_text)), colour(cell_colour) {}
  Cell(const char* cell_text) : text(cell_text) {}
  std::string text;  // made plain when it is added: a foreign name cannot control the terminal
  Colour colour = Colour::Plain;
};

class Table {
 public:
  enum class Align { Left, Right };
  struct Column {
    std::string title;
    Align align = Align::Left;
    bool wraps = false;  // gets the room that is left, and more lines when that is not enough
  };
  struct Layout {
    bool colours = false;
    size_t width = 0;  // of the terminal; 0: as wide as the content
    size_t indent = 0;
    bool titles = true;
  };

  explicit Table(std::vector<Column> columns);
  // Fewer cells than columns leave the rest empty; more are our own fault.
  void add(std::vector<Cell> cells);
  size_t num_rows() const { return rows_.size(); }
  // Every line ends with a newline and has no blanks before it.
  std::string text(const Layout& layout) const;

 private:
  std::vector<size_t> column_widths(const Layout& layout) const;
  std::string line_of(const std::vector<Cell>& cells, const std::vector<size_t>& widths, const Layout& layout) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace assay
