// What a vendor's command prints about its devices: one JSON object a line and device, or CSV with a line of titles, as
// `nvidia-smi --query-gpu=... --format=csv` does. Garbage is left out; a device that says nothing useful is null.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace assay {

// A list of objects, or null when the text holds none. Known figures get one name and unit whatever the vendor calls
// them: utilization (0 to 1), memory_used_bytes, memory_total_bytes, power_w, temperature_c. Others keep their names.
// "[N/A]" and the like are null.
Json parse_devices(std::string_view text);

// Runs the command and parses what it printed. Null when it cannot be run, fails, or is not done in the time limit;
// returns early, with null, when wake_fd becomes readable.
Json ask_devices(const std::vector<std::string>& argv, double time_limit_s, int wake_fd = -1);

}  // namespace assay
