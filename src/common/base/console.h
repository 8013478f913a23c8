// What a person sees: messages to standard error, results to standard output, colours only where they help, and a
// progress bar on a terminal (plain lines elsewhere).
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/time.h"

namespace assay {

enum class Colour { Plain, Bold, Dim, Red, Green, Yellow, Blue, Cyan };

// A terminal, NO_COLOR unset or empty, TERM not "dumb".
bool colours_on(std::FILE* stream);
// The text between the escape sequences of its colour; unchanged when `on` is false.
std::string painted(std::string_view text, Colour colour, bool on);

class Console {
 public:
  enum class Level { Quiet, Normal, Verbose };

  explicit Console(Level level = Level::Normal);
  Level level() const { return level_; }
  bool interactive() const { return interactive_; }  // standard error is a terminal

  void print(std::string_view text) const;  // standard output, always
  void info(std::string_view text);         // standard error, unless quiet
  void detail(std::string_view text);       // standard error, when verbose
  void warn(std::string_view text);         // standard error, unless quiet
  void error(std::string_view text);        // standard error, always

  std::string paint(std::string_view text, Colour colour) const;          // for standard output
  std::string paint_message(std::string_view text, Colour colour) const;  // for standard error

  // Shows or redraws the bar. `done` of `total` units; total 0: unknown. On a terminal it redraws one line at most ten
  // times a second; elsewhere it writes a line when another tenth of the way, or 10 s, has passed.
  void progress(std::string_view label, double done, double total, std::string_view unit, std::string_view extra = {});
  void end_progress();

 private:
  void message(std::string_view text);

  Level level_;
  bool interactive_;
  bool colour_out_;
  bool colour_err_;
  bool bar_visible_ = false;
  // The bar in progress.
  std::string bar_label_;
  Stopwatch bar_started_;
  Stopwatch bar_drawn_;
  double bar_first_ = 0;
  int bar_tenth_ = -1;
  bool bar_fresh_ = true;
};

// The text of the bar, without colour, at most `width` columns: "train  [#####.....]  52 %  12.3k images/s  00:41 left
// loss 0.41"
std::string progress_line(std::string_view label, double done, double total, double rate, std::string_view unit,
                          std::string_view extra, size_t width);
// 950, 12.3k, 4.56M
std::string short_number(double value);

}  // namespace assay
