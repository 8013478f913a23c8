// Shell completion. The shells' scripts are three lines each: the program itself knows what may come next.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "config/case.h"
#include "context.h"
#include "prepare/catalogue.h"
#include "results/store.h"

namespace assay {

namespace {

constexpr const char* kBash = R"(_assay() {
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _assay assay
)";
constexpr const char* kZsh = R"(#compdef assay
_assay() {
  local -a found
  found=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if (( ${#found} )) && [[ -n "${found[1]}" ]]; then compadd -a found; else _files; fi
}
compdef _assay assay
)";
constexpr const char* kFish =
    R"(complete -c assay -a '(assay __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
)";

std::vector<std::string> folders_with(const std::filesystem::path& folder, const char* file) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (std::filesystem::exists(entry.path() / file)) names.push_back(entry.path().filename().string());
  }
  return names;
}

std::vector<std::string> positional_values(const std::string& command, const Context& context) {
  if (command == "train" || command == "config" || command == "parallel") return list_cases(context.home);
  if (command == "history") {
    std::error_code ignored;
    // Asking must not make the file.
    if (!std::filesystem::exists(context.runs / kStoreFile, ignored)) return {};
    return ResultStore(context.runs).cases();
  }
  if (command == "resume" || command == "report" || command == "generate" || command == "table" || command == "diff" ||
      command == "logs" || command == "stop") {
    auto runs = folders_with(context.runs, "plan.json");
    runs.push_back("last");
    return runs;
  }
  if (command == "prepare") {
    std::vector<std::string> names;
    for (const DataSet& set : data_sets()) names.push_back(set.name);
    return names;
  }
  if (command == "vendor") return list_vendors(context.home);
  if (command == "completion") return {"bash", "zsh", "fish"};
  return {};
}

// `words` are those after the program's name; the last one is being typed.
std::set<std::string> candidates(const CLI::App& app, const Context& context, std::vector<std::string> words) {
  const std::string typed = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    const auto named = at->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; });
    if (!named.empty()) at = named[0];
  }
  std::vector<std::string> all;
  if (typed.rfind('-', 0) == 0) {
    for (const CLI::App* scope : {at, &app}) {
      for (const CLI::Option* option : scope->get_options()) {
        for (const std::string& name : option->get_lnames()) all.push_back("--" + name);
      }
    }
  } else {
    for (const CLI::App* sub : at->get_subcommands([](const CLI::App*) { return true; })) {
      if (!sub->get_group().empty()) all.push_back(sub->get_name());  // the hidden ones are not for people
    }
    for (std::string& value : positional_values(at->get_name(), context)) all.push_back(std::move(value));
  }
  std::set<std::string> matching;
  for (const std::string& word : all) {
    if (word.rfind(typed, 0) == 0) matching.insert(word);
  }
  return matching;
}

}  // namespace

void add_completion_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("completion", "Print the completion script of a shell");
  command->footer(
      "Examples:\n  source <(assay completion bash)\n  assay completion zsh > ~/.zfunc/_assay\n"
      "  assay completion fish > ~/.config/fish/completions/assay.fish");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell, &context] {
    context.console.print(*shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
  });
}

void print_completions(const CLI::App& app, const Context& context, const std::vector<std::string>& words) {
  for (const std::string& word : candidates(app, context, words)) context.console.print(word + "\n");
}

}  // namespace assay
