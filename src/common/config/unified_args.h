// The unified run arguments of the Tecorigin ModelZoo (--batch_size, --step, --autocast, ...), mapped onto
// configuration keys, the case key and the launch environment by one table. Only arguments that are given change
// anything: a case already has a value for every key.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/case.h"

namespace assay {

struct UnifiedArgument {
  enum class Kind { Text, Int, Number, Bool };
  std::string name;                  // "batch_size": --batch_size
  std::vector<std::string> aliases;  // "bs": --bs
  Kind kind = Kind::Text;
  std::optional<std::string> fallback;  // the default of the original interface
  std::string goes_to;                  // what it sets: a configuration key, "case key", "environment", ...
  std::string doc;
};
const std::vector<UnifiedArgument>& unified_arguments();

class UnifiedArgs {
 public:
  // Takes the text of one argument, by name or alias, without dashes. Throws UsageError for an unknown name or a value
  // of the wrong kind. Booleans are yes/true/t/y/1 and no/false/f/n/0 in any case.
  void set(const std::string& name, const std::string& text);

  bool given(const std::string& name) const { return values_.contains(name); }
  // The given value, or the default of the interface; nullopt when there is neither.
  std::optional<std::string> get(const std::string& name) const;
  int get_int(const std::string& name) const;  // with a default or given
  bool get_bool(const std::string& name) const;

  // The rules between arguments: step > 0 makes epoch 1, precision alignment needs one process, node_rank < nnode.
  // Returns warnings; throws UsageError. Call it once, after the last set().
  std::vector<std::string> apply_rules();

  // What the given arguments set, each with the argument as its source.
  std::vector<Setting> to_sets() const;
  // The key with model_name, nnode and nproc_per_node; throws UsageError when model_name is another model, or node_rank
  // is none of its nodes.
  CaseKey apply_to(CaseKey key) const;
  // MASTER_ADDR, MASTER_PORT, NNODES, NODE_RANK, NPROC_PER_NODE, WORLD_SIZE; `key` is what apply_to() gave.
  std::vector<std::pair<std::string, std::string>> environment(const CaseKey& key) const;
  // "--name", "value", ... of every given argument, in the order of the table.
  std::vector<std::string> arguments() const;

 private:
  void check_node_rank(int nnodes) const;

  std::map<std::string, std::string> values_;  // by name; booleans as "true" and "false"
};

// What is shown before a command runs: the environment, one variable a line, then the arguments, one a line with its
// value.
std::string render_command(const std::vector<std::pair<std::string, std::string>>& environment,
                           const std::vector<std::string>& argv);

}  // namespace assay
