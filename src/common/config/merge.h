// Putting one configuration tree on top of another, and telling what that changed.
#pragma once

#include <string>
#include <vector>

#include "config/value.h"

namespace assay {

// Maps are merged key by key, everything else (lists, null) replaces. A standalone map replaces too. With
// `keep_standalone` the result remembers that: used between a file and its base, since it applies to lower layers as
// well.
void merge_onto(Value& base, const Value& layer, bool keep_standalone = false);

struct ConfigChange {
  std::string path;  // of a leaf: a scalar, a list, null or an empty map
  Value before;      // null when absent
  Value after;       // null when absent
  bool removed = false;
};

// The leaves that differ, in the order of `after`, then those that only `before` has.
std::vector<ConfigChange> changes_between(const Value& before, const Value& after);

// Every leaf with its path, in order.
struct Leaf {
  std::string path;
  const Value* value;
};
std::vector<Leaf> leaves_of(const Value& tree);

}  // namespace assay
