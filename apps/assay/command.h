// A command of `assay` as a value: its name, its options, its help and the function that runs it. Does not know the
// library that parses command lines: command_line.h does. Adding a command is a file with such a value, and one line in
// commands/list.inc: docs/extend/add-a-command.md.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "context.h"

namespace assay {

struct Option {
  // Where the value goes; a flag is a bool. It must live as long as the command: an object that `run` keeps too.
  using Value =
      std::variant<bool*, std::string*, int*, int64_t*, size_t*, double*, std::vector<std::string>*,
                   std::optional<int>*, std::optional<int64_t>*, std::optional<double>*, std::optional<std::string>*>;

  std::string names;  // "--set", "-o,--output"; without dashes: an argument, told by its position
  Value value;
  std::string help;
  bool required = false;
  bool shows_default = false;                // in the help
  std::vector<std::string> choices = {};     // empty: any
  std::optional<double> min = {}, max = {};  // of a number
  // --- of a list
  char delimiter = 0;        // ',': --only a,b
  bool one_per_use = false;  // --set a=1 --set b=2, never --set a=1 b=2
  int most = 0;              // values; 0: any number
  // --- of the help
  std::string group = {};     // its heading there
  std::string type = {};      // instead of that of the value
  std::string excludes = {};  // "--other": not both
};

struct Command {
  std::string name;
  std::string summary;
  std::string examples;    // lines, each indented by two; every command that people see has some
  std::string notes = {};  // after them: exit codes, files
  std::vector<Option> options = {};
  std::function<void(Context& context)> run = {};  // may throw assay::Error; sets context.exit_code
  std::vector<Command> commands = {};              // instead of `run`: what may stand behind its name
  bool hidden = false;                             // what launchers start on hosts: not for people
  // What may stand in place of its arguments, for the completion of shells.
  std::function<std::vector<std::string>(const Context& context)> complete = {};
};

// All of them, in the order of the help.
std::vector<Command> commands();

}  // namespace assay
