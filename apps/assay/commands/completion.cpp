// Shell completion. The shells' scripts are three lines each: the program itself knows what may come next.
#include <memory>

#include "command.h"

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

}  // namespace

Command completion_command() {
  auto shell = std::make_shared<std::string>();
  const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  return {
      .name = "completion",
      .summary = "Print the completion script of a shell",
      .examples =
          "  source <(assay completion bash)\n  assay completion zsh > ~/.zfunc/_assay\n"
          "  assay completion fish > ~/.config/fish/completions/assay.fish",
      .options =
          {{.names = "shell", .value = shell.get(), .help = "bash, zsh or fish", .required = true, .choices = shells}},
      .run =
          [shell](Context& context) {
            context.console.print(*shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
          },
      .complete = [shells](const Context&) { return shells; }};
}

}  // namespace assay
