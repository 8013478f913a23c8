#include "global_options.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/files.h"

namespace assay {

namespace {

// cases/ and vendors/ lie here: --home, ASSAY_HOME, this folder, or the checkout this program was built in.
std::filesystem::path find_home(const std::string& option) {
  if (!option.empty()) {
    if (!fs::is_directory(fs::path(option) / "cases"))
      throw UsageError(fmt::format("--home {}: no folder cases/ in it", option));
    return fs::absolute(option);
  }
  const char* variable = std::getenv("ASSAY_HOME");
  for (const fs::path& candidate : {fs::path(variable ? variable : ""), fs::current_path(),
                                    program_folder() / "../../..", program_folder() / "../share/assay"}) {
    if (!candidate.empty() && fs::is_directory(candidate / "cases")) return fs::weakly_canonical(candidate);
  }
  return fs::current_path();
}

}  // namespace

void settle(Context& context, const GlobalOptions& options) {
  const auto level = options.quiet     ? Console::Level::Quiet
                     : options.verbose ? Console::Level::Verbose
                                       : Console::Level::Normal;
  context.console = Console(level);
  context.home = find_home(options.home);
  const char* runs = std::getenv("ASSAY_RUNS");
  context.runs = !options.runs.empty() ? options.runs : runs && *runs ? runs : "runs";
}

}  // namespace assay
