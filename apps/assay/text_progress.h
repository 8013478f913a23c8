// The progress bar of commands that read texts. A stop that was asked for ends the work at the next report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/console.h"
#include "base/error.h"
#include "base/signals.h"

namespace assay {

inline void stop_if_asked() {
  if (stop_signal() != 0) throw InterruptedError("interrupted");
}

class TextProgressBar {
 public:
  explicit TextProgressBar(Console& console) : console_(console) {}
  ~TextProgressBar() { end(); }
  TextProgressBar(const TextProgressBar&) = delete;
  TextProgressBar& operator=(const TextProgressBar&) = delete;

  // Throws InterruptedError after Ctrl-C.
  void show(std::string_view stage, int64_t done, int64_t total, std::string_view unit) {
    stop_if_asked();
    if (stage != stage_) {
      end();
      stage_ = stage;
      clock_.restart();
    }
    // Where the bar is lines of text, a stage that is over at once is not worth ten of them.
    if (!console_.interactive() && clock_.seconds() < 1) return;
    console_.progress(stage, static_cast<double>(done), static_cast<double>(total), unit);
  }
  void end() { console_.end_progress(); }

 private:
  Console& console_;
  std::string stage_;
  Stopwatch clock_;
};

}  // namespace assay
