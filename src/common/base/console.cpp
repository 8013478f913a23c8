#include "base/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace assay {

namespace {

const char* code(Colour colour) {
  switch (colour) {
    case Colour::Bold: return "\033[1m";
    case Colour::Dim: return "\033[2m";
    case Colour::Red: return "\033[31m";
    case Colour::Green: return "\033[32m";
    case Colour::Yellow: return "\033[33m";
    case Colour::Blue: return "\033[34m";
    case Colour::Cyan: return "\033[36m";
    case Colour::Plain: break;
  }
  return "";
}

size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<long long>(std::llround(std::min(seconds, 359999.0)));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole % 3600 / 60, whole % 60);
  return fmt::format("{:02}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string painted(std::string_view text, Colour colour, bool on) {
  if (!on || colour == Colour::Plain) return std::string(text);
  return fmt::format("{}{}\033[0m", code(colour), text);
}

bool colours_on(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_color && *no_color) return false;
  if (term && std::string_view(term) == "dumb") return false;
  return ::isatty(::fileno(stream)) == 1;
}

Console::Console(Level level)
    : level_(level),
      interactive_(::isatty(STDERR_FILENO) == 1),
      colour_out_(colours_on(stdout)),
      colour_err_(colours_on(stderr)) {}

void Console::print(std::string_view text) const {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void Console::message(std::string_view text) {
  if (bar_visible_) {
    std::fputs("\r\033[K", stderr);
    bar_visible_ = false;
  }
  fmt::print(stderr, "{}\n", text);
}

void Console::info(std::string_view text) {
  if (level_ != Level::Quiet) message(text);
}
void Console::detail(std::string_view text) {
  if (level_ == Level::Verbose) message(painted(text, Colour::Dim, colour_err_));
}
void Console::warn(std::string_view text) {
  if (level_ != Level::Quiet) message(painted("warning: ", Colour::Yellow, colour_err_) + std::string(text));
}
void Console::error(std::string_view text) {
  message(painted("error: ", Colour::Red, colour_err_) + std::string(text));
}

std::string Console::paint(std::string_view text, Colour colour) const { return painted(text, colour, colour_out_); }
std::string Console::paint_message(std::string_view text, Colour colour) const {
  return painted(text, colour, colour_err_);
}

std::string short_number(double value) {
  const double size = std::fabs(value);
  if (!std::isfinite(value)) return "?";
  if (size >= 1e9) return fmt::format("{:.2f}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.1f}k", value / 1e3);
  if (size >= 100 || value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.2f}", value);
}

std::string progress_line(std::string_view label, double done, double total, double rate, std::string_view unit,
                          std::string_view extra, size_t width) {
  std::string tail;
  if (total > 0) tail += fmt::format(" {:3.0f} %", 100 * std::min(1.0, done / total));
  if (total <= 0) tail += fmt::format(" {} {}", short_number(done), unit);
  if (rate > 0) {
    std::string number = short_number(rate);
    // 73.8 MB/s, but 73.8k images/s
    const bool joined = unit == "B" && std::isalpha(static_cast<unsigned char>(number.back()));
    if (joined) number.insert(number.size() - 1, " ");
    tail += fmt::format("  {}{}{}/s", number, joined ? "" : " ", unit);
  }
  if (rate > 0 && total > done) tail += fmt::format("  {} left", clock_text((total - done) / rate));
  if (!extra.empty()) tail += fmt::format("  {}", extra);
  std::string line(label);
  const size_t used = display_width(label) + display_width(tail) + 4;
  if (total > 0 && used + 10 <= width) {
    const size_t room = std::min<size_t>(30, width - used);
    const auto full = static_cast<size_t>(std::clamp(done / total, 0.0, 1.0) * static_cast<double>(room));
    line += fmt::format(" [{}{}]", std::string(full, '#'), std::string(room - full, '.'));
  }
  line += tail;
  while (display_width(line) > width && !line.empty()) line.pop_back();
  return line;
}

void Console::progress(std::string_view label, double done, double total, std::string_view unit,
                       std::string_view extra) {
  if (level_ == Level::Quiet) return;
  if (bar_fresh_ || bar_label_ != label) {
    bar_label_ = label;
    bar_started_.restart();
    bar_first_ = done;
    bar_tenth_ = total > 0 ? static_cast<int>(10 * done / total) : 0;
    bar_drawn_.restart();
    bar_fresh_ = false;
    if (!interactive_) return;  // a plain log starts with the first progress made
  }
  const double elapsed = bar_started_.seconds();
  const double rate = elapsed > 0 ? (done - bar_first_) / elapsed : 0;
  if (interactive_) {
    if (bar_visible_ && bar_drawn_.seconds() < 0.1 && done < total) return;
    bar_drawn_.restart();
    fmt::print(stderr, "\r\033[K{}", progress_line(label, done, total, rate, unit, extra, terminal_width() - 1));
    std::fflush(stderr);
    bar_visible_ = true;
    return;
  }
  const int tenth = total > 0 ? static_cast<int>(10 * done / total) : 0;
  if (tenth == bar_tenth_ && bar_drawn_.seconds() < 10) return;
  bar_tenth_ = tenth;
  bar_drawn_.restart();
  fmt::print(stderr, "{}\n", progress_line(label, done, total, rate, unit, extra, 200));
}

void Console::end_progress() {
  if (bar_visible_) std::fputs("\r\033[K", stderr);
  bar_visible_ = false;
  bar_fresh_ = true;
}

}  // namespace assay
