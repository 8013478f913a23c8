#include "import/flagperf/target_import.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace assay {

bool is_target_name(std::string_view name) {
  return name == "target" || (name.starts_with("target_") && name.size() > std::string_view("target_").size());
}

std::string target_metric(std::string_view name) {
  return std::string(name == "target" ? name : name.substr(std::string_view("target_").size()));
}

bool is_minimized(std::string_view metric) {
  constexpr std::array<std::string_view, 11> kFalling = {"loss", "ppl", "perplexity", "error", "err", "wer",
                                                         "cer",  "mae", "mse",        "rmse",  "fid"};
  const std::vector<std::string> words = split(lower(metric), '_');
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(kFalling.begin(), kFalling.end(), word) != kFalling.end();
  });
}

}  // namespace assay
