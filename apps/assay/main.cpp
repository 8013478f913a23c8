// The control plane's program: one command line, one exit code.
#include <fmt/format.h>

#include "base/signals.h"
#include "command_line.h"

int main(int argc, char** argv) {
  try {
    assay::catch_stop_signals();
    assay::Context context;
    return assay::run_command_line(assay::commands(), {argv, argv + argc}, context);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\nThis is a fault of assay itself; please report it.\n", error.what());
    return assay::kExitFail;
  }
}
