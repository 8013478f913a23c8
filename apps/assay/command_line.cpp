#include "command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <set>

#include "base/text.h"
#include "base/version.h"
#include "global_options.h"

namespace assay {

namespace {

constexpr const char* kProgramHelp = R"(Examples:
  assay demo                          train, evaluate, export, run the export, judge, report
  assay train resnet --batch_size 64  train one case; --step 20 for a short run
  assay generate last "Fellow citizens" continue a text with the model that was trained last
  assay verify parallel gpt --tiny    every strategy of distributed training against one process
  assay run campaign.yaml             cases, rounds and hosts; assay ps, assay logs last -f, assay stop last
  assay resume last                   finish a run that was interrupted or killed
  assay table last                    its results as FlagPerf's table; assay diff A B compares two runs
  assay config resnet                 every effective value, and where it comes from
  assay log show runs/.../records.jsonl
  assay data prepare sotu             fetch a data set; assay data list shows them all
  assay doctor                        is this machine set up right, and if not, what fixes it

Exit codes: 0 all passed, 1 a verdict failed, 2 usage or configuration, 3 nothing was run or measured,
            4 infrastructure (host, port, disk), 130 interrupted and resumable.)";

// The help of a command ends with the options that every command has.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_footer(const CLI::App* app) const override {
    if (!app->get_parent()) return Formatter::make_footer(app);
    const CLI::App* root = app;
    while (root->get_parent()) root = root->get_parent();
    std::vector<const CLI::Option*> shared;
    for (const CLI::Option* option : root->get_options()) {
      if (option != root->get_help_ptr() && !option->check_lname("version")) shared.push_back(option);
    }
    return make_group("Options of every command", false, shared).substr(1) + "\n" + Formatter::make_footer(app);
  }
};

std::string footer_of(const Command& command) {
  std::string out = command.examples.empty() ? "" : "Examples:\n" + command.examples;
  if (!command.notes.empty()) out += (out.empty() ? "" : "\n\n") + command.notes;
  return out;
}

CLI::Option* add_value(CLI::App& app, const Option& option) {
  return std::visit(
      [&](auto* value) -> CLI::Option* {
        if constexpr (std::is_same_v<decltype(value), bool*>) {
          return app.add_flag(option.names, *value, option.help);
        } else {
          return app.add_option(option.names, *value, option.help);
        }
      },
      option.value);
}

void add_option(CLI::App& app, const Option& option) {
  CLI::Option* added = add_value(app, option);
  if (option.required) added->required();
  if (option.shows_default) added->capture_default_str();
  if (!option.choices.empty()) added->check(CLI::IsMember(option.choices));
  if (option.min || option.max) {
    const double low = option.min.value_or(std::numeric_limits<double>::lowest());
    const double high = option.max.value_or(std::numeric_limits<double>::max());
    added->check([low, high](const std::string& text) -> std::string {
      const auto number = parse_double(text);
      if (number && *number >= low && *number <= high) return "";
      return high == std::numeric_limits<double>::max()
                 ? fmt::format("Value {} not at least {}", text, low)
                 : fmt::format("Value {} not in range {} to {}", text, low, high);
    });
  }
  if (option.delimiter) added->delimiter(option.delimiter);
  if (option.one_per_use) added->allow_extra_args(false);
  if (option.most > 0) added->expected(1, option.most);
  if (!option.group.empty()) added->group(option.group);
  if (!option.type.empty()) added->type_name(option.type);
  if (!option.excludes.empty()) added->excludes(option.excludes);
}

void add_command(CLI::App& parent, const Command& command, Context& context) {
  CLI::App* app = parent.add_subcommand(command.name, command.summary);
  app->footer(footer_of(command));  // an empty one too: or it would be that of the parent
  app->fallthrough();
  if (command.hidden) app->group("");
  for (const Option& option : command.options) add_option(*app, option);
  for (const Command& below : command.commands) add_command(*app, below, context);
  if (!command.commands.empty()) app->require_subcommand(1);
  if (command.run) app->callback([&command, &context] { command.run(context); });
}

void add_global_options(CLI::App& app, Context& context, GlobalOptions& options) {
  app.name("assay");
  app.description("Does a model run on a chip, is it right, how fast is it - and the proof.");
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(kProgramHelp);
  app.set_version_flag("--version", fmt::format("assay {} ({})", version(), commit()));
  app.add_flag("-q,--quiet", options.quiet, "Only results and errors");
  app.add_flag("-v,--verbose", options.verbose, "More about what happens");
  app.add_flag("--json", context.json, "Results as JSON on standard output");
  app.add_option("--home", options.home,
                 "Folder with cases/ and vendors/ (default: $ASSAY_HOME, here, or the checkout)");
  app.add_option("--runs", options.runs, "Folder for run folders (default: $ASSAY_RUNS or ./runs)");
  app.require_subcommand(1);
  app.fallthrough();  // so that -q and the rest may stand behind the command too
  app.parse_complete_callback([&context, &options] { settle(context, options); });
}

std::vector<std::string> long_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The command behind the one that was parsed last: the first word after its name that is not an option.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  size_t at = 1;
  if (app.get_parent()) {
    at = static_cast<size_t>(std::find(words.begin(), words.end(), app.get_name()) - words.begin()) + 1;
  }
  while (at < words.size() && words[at].starts_with('-')) ++at;
  if (at >= words.size()) return "";
  std::vector<std::string> names;
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(below->get_name());
  }
  const std::string before = app.get_parent() ? app.get_name() + " " : "";
  return fmt::format("no command '{}{}'{}", before, words[at], did_you_mean(words[at], names));
}

// The library says what it did not expect; a person who mistyped wants to know what was meant.
std::string parse_message(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words) {
  std::vector<std::string> options = long_options(app);
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    for (std::string& name : long_options(*at)) options.push_back(std::move(name));
  }
  if (!at->get_subcommands([](const CLI::App*) { return true; }).empty()) {
    if (const std::string message = unknown_command(*at, words); !message.empty()) return message;
  }
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    if (name.starts_with("--") && std::find(options.begin(), options.end(), name) == options.end()) {
      return error.what() + did_you_mean(name, options);
    }
  }
  return error.what();
}

// "assay data prepare": what the help of the command is shown by.
std::string full_name(const CLI::App& app) {
  const CLI::App* at = &app;
  std::string name = "assay";
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    name += " " + at->get_name();
  }
  return name;
}

std::vector<std::string> long_names(const std::vector<Option>& options) {
  std::vector<std::string> out;
  for (const Option& option : options) {
    for (const std::string& name : split(option.names, ',')) {
      if (name.starts_with("--")) out.push_back(name);
    }
  }
  return out;
}

}  // namespace

int run_command_line(const std::vector<Command>& commands, const std::vector<std::string>& words, Context& context) {
  context.command = words;
  GlobalOptions options;
  CLI::App app;
  add_global_options(app, context, options);
  for (const Command& command : commands) add_command(app, command, context);
  if (words.size() < 2) {
    fmt::print(stderr, "{}", app.help());
    return kExitUsage;
  }
  try {
    if (words[1] == "__complete") {
      settle(context, options);
      for (const std::string& word : completions(commands, context, {words.begin() + 2, words.end()})) {
        context.console.print(word + "\n");
      }
      return kExitPass;
    }
    std::vector<std::string> reversed(words.rbegin(), words.rend() - 1);
    app.parse(reversed);
    return context.exit_code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    context.console.error(fmt::format("{}\nSee {} --help", parse_message(app, error, context.command), full_name(app)));
    return kExitUsage;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Interrupted) context.console.error(error.what());
    return exit_code(error.kind());
  }
}

std::vector<std::string> completions(const std::vector<Command>& commands, const Context& context,
                                     std::vector<std::string> words) {
  const std::string typed = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  const std::vector<Command>* below = &commands;
  const Command* at = nullptr;
  for (const std::string& word : words) {
    for (const Command& command : *below) {
      if (command.name != word) continue;
      at = &command;
      below = &command.commands;
      break;
    }
  }
  std::vector<std::string> all;
  if (typed.starts_with('-')) {
    all = {"--help", "--quiet", "--verbose", "--json", "--home", "--runs"};
    if (!at) all.push_back("--version");
    for (std::string& name : at ? long_names(at->options) : std::vector<std::string>()) all.push_back(std::move(name));
  } else {
    for (const Command& command : *below) {
      if (!command.hidden) all.push_back(command.name);
    }
    if (at && at->complete) {
      for (std::string& value : at->complete(context)) all.push_back(std::move(value));
    }
  }
  std::set<std::string> matching;
  for (const std::string& word : all) {
    if (word.starts_with(typed)) matching.insert(word);
  }
  return {matching.begin(), matching.end()};
}

}  // namespace assay
