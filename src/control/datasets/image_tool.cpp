#include "datasets/image_tool.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "datasets/tool.h"

namespace assay {

void run_image_tool(std::vector<std::string> arguments, const Conversion& conversion) {
  const fs::path program = program_folder() / "assay-images";
  if (!fs::exists(program)) {
    throw InfrastructureError(
        fmt::format("no {}: build it with cmake --build --preset release --target assay-images", program.string()));
  }
  arguments.insert(arguments.begin(), program.string());
  arguments.insert(arguments.end(), {"--output", conversion.output.string()});
  const fs::path log = conversion.work / "images.log";
  const auto tick = [&] {
    for (const std::string& line : tail_lines(log, 1)) {
      const std::vector<std::string> parts = split(line, ' ');
      if (parts.size() != 2) continue;
      const auto done = parse_double(parts[0]);
      const auto total = parse_double(parts[1]);
      if (done && total) conversion.report("draw", *done, *total, "pictures");
    }
  };
  const Finished finished = run_tool({.argv = arguments, .folder = conversion.work, .log = log, .tick = tick});
  check_stop();
  if (!finished.ok) throw InfrastructureError(fmt::format("assay-images failed: {}", finished.message));
}

}  // namespace assay
