#include "config/merge.h"

#include <map>

namespace assay {

namespace {

void forget_standalone(Value& node) {
  node.set_standalone(false);
  if (!node.is_map()) return;
  for (Value::Entry& entry : node.entries()) forget_standalone(entry.value);
}

}  // namespace

void merge_onto(Value& base, const Value& layer, bool keep_standalone) {
  if (!layer.is_map() || !base.is_map() || layer.standalone()) {
    base = layer;
    if (!keep_standalone) forget_standalone(base);
    return;
  }
  for (const Value::Entry& entry : layer.entries()) {
    if (Value* old = base.child(entry.key)) {
      merge_onto(*old, entry.value, keep_standalone);
    } else {
      base.entries().push_back(entry);
      if (!keep_standalone) forget_standalone(base.entries().back().value);
    }
  }
  base.set_origin(layer.origin());
}

namespace {

void collect(const Value& node, const std::string& path, std::vector<Leaf>& out) {
  if (!node.is_map() || (node.entries().empty() && !path.empty())) {
    out.push_back({path, &node});
    return;
  }
  for (const Value::Entry& entry : node.entries()) collect(entry.value, join_path(path, entry.key), out);
}

}  // namespace

std::vector<Leaf> leaves_of(const Value& tree) {
  std::vector<Leaf> leaves;
  collect(tree, "", leaves);
  return leaves;
}

std::vector<ConfigChange> changes_between(const Value& before, const Value& after) {
  std::map<std::string, const Value*> old;
  for (const Leaf& leaf : leaves_of(before)) old[leaf.path] = leaf.value;
  std::vector<ConfigChange> changes;
  for (const Leaf& leaf : leaves_of(after)) {
    const auto found = old.find(leaf.path);
    const Value was = found == old.end() ? Value() : *found->second;
    if (found != old.end()) old.erase(found);
    if (!was.same_as(*leaf.value)) changes.push_back({leaf.path, was, *leaf.value, false});
  }
  for (const auto& [path, value] : old) {
    // A map of leaves in place of null, or the other way round, shows in its leaves already.
    if (!value->is_null()) changes.push_back({path, *value, Value(), true});
  }
  return changes;
}

}  // namespace assay
