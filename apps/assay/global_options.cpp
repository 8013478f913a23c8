#include "global_options.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/files.h"

namespace assay {

namespace {

bool holds_cases(const fs::path& folder) { return fs::is_directory(folder / "cases"); }

// A folder that was named must be one: a typing mistake must not choose other cases.
fs::path named_home(const std::string& source, const fs::path& folder) {
  if (!holds_cases(folder))
    throw UsageError(fmt::format("{} {}: no folder cases/ in it; name the folder that contains cases/ and vendors/",
                                 source, folder.string()));
  return fs::absolute(folder);
}

// Where cases/ and vendors/ are: --home, ASSAY_HOME, this folder, what was installed with this program, or the checkout
// that it was built in.
fs::path find_home(const std::string& option) {
  if (!option.empty()) return named_home("--home", option);
  if (const char* variable = std::getenv("ASSAY_HOME"); variable && *variable)
    return named_home("ASSAY_HOME", variable);
  for (const fs::path& candidate :
       {fs::current_path(), program_folder() / "../../share/assay", program_folder() / "../../.."}) {
    if (holds_cases(candidate)) return fs::weakly_canonical(candidate);
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
