// The names that users of other systems bring along, mapped onto ours, in one table. The mapping happens in each file
// before it is merged, so that a file and its base may use different names for one key.
#pragma once

#include <string>
#include <vector>

#include "config/value.h"

namespace assay {

struct KeyName {
  std::string system;              // "FleetX", "FlagPerf"
  std::string name;                // theirs: "Engine.save_load.save_by_steps", "train_batch_size"
  std::vector<std::string> paths;  // ours, all set to the value
  std::string note;                // what to know besides
};
const std::vector<KeyName>& key_names();

// A value with another spelling: Optimizer.lr.name "CosineAnnealingWithWarmupDecay" is "cosine".
struct ValueName {
  std::string path;
  std::string name;
  std::string ours;
};
const std::vector<ValueName>& value_names();

// Lifts the contents of `config:` to the top, where sections may also stand directly.
void lift_config(Value& layer);
// Replaces other systems' names by ours. Throws ConfigError when a file uses both names of one key.
void apply_names(Value& layer);

}  // namespace assay
