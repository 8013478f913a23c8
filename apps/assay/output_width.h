// How wide tables on standard output may be.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>

namespace assay {

inline size_t output_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 120;
}

}  // namespace assay
