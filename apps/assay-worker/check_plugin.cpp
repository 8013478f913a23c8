#include <fmt/format.h>

#include "commands.h"
#include "engine/adapter/adapter_contract.h"
#include "engine/adapter/plugin.h"

namespace assay {

bool check_plugin(const std::string& plugin) {
  const LoadedAdapter loaded = make_adapter(plugin);
  fmt::print("adapter: {}\n", loaded.name);
  if (!loaded.library.empty()) fmt::print("library: {}\nsha256: {}\n", loaded.library, loaded.sha256);
  bool all = true;
  for (const ContractCheck& check : check_adapter(*loaded.adapter)) {
    fmt::print("{} {}{}\n", check.passed ? "ok  " : "FAIL", check.name, check.passed ? "" : ": " + check.detail);
    all = all && check.passed;
  }
  fmt::print("{}\n", all ? "the plugin keeps the contract" : "the plugin breaks the contract");
  return all;
}

}  // namespace assay
