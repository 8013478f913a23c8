// The control plane's command line: parse, run one subcommand, exit code.
#include <fmt/format.h>

#include <cstdlib>

#include "base/files.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/version.h"
#include "context.h"

namespace assay {
namespace {

constexpr const char* kExamples = R"(Examples:
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

// cases/ and vendors/ lie here: --home, ASSAY_HOME, this folder, or the checkout this program was built in.
std::filesystem::path find_home(const std::string& option) {
  namespace fs = std::filesystem;
  if (!option.empty()) {
    if (!fs::is_directory(fs::path(option) / "cases"))
      throw UsageError(fmt::format("--home {}: no folder cases/ in it", option));
    return fs::absolute(option);
  }
  const char* variable = std::getenv("ASSAY_HOME");
  for (const fs::path& candidate : {fs::path(variable ? variable : ""), fs::current_path(),
                                    program_folder() / "../../..", program_folder() / "../share/assay"}) {
    if (!candidate.empty() && fs::is_directory(candidate / "cases")) return fs::weakly_canonical(candidate);
  }
  return fs::current_path();
}

struct GlobalOptions {
  bool quiet = false;
  bool verbose = false;
  std::string home;
  std::string runs;
};

void settle(Context& context, const GlobalOptions& options) {
  const auto level = options.quiet     ? Console::Level::Quiet
                     : options.verbose ? Console::Level::Verbose
                                       : Console::Level::Normal;
  context.console = Console(level);
  context.home = find_home(options.home);
  const char* runs = std::getenv("ASSAY_RUNS");
  context.runs = !options.runs.empty() ? options.runs : runs && *runs ? runs : "runs";
}

void add_global_options(CLI::App& app, Context& context, GlobalOptions& options) {
  app.description("Does a model run on a chip, is it right, how fast is it - and the proof.");
  app.footer(kExamples);
  app.set_version_flag("--version", fmt::format("assay {} ({})", version(), commit()));
  app.add_flag("-q,--quiet", options.quiet, "Only results and errors");
  app.add_flag("-v,--verbose", options.verbose, "More about what happens");
  app.add_flag("--json", context.json, "Results as JSON on standard output");
  app.add_option("--home", options.home,
                 "Folder with cases/ and vendors/ (default: $ASSAY_HOME, here, or the checkout)");
  app.add_option("--runs", options.runs, "Folder for run folders (default: $ASSAY_RUNS or ./runs)");
  app.require_subcommand(1);
  app.fallthrough();  // so that -q and the rest may stand behind the subcommand too
  app.parse_complete_callback([&context, &options] { settle(context, options); });
}

std::vector<std::string> long_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// CLI11 says what it did not expect; a person who mistyped wants to know what was meant.
std::string parse_message(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words) {
  std::vector<std::string> options = long_options(app);
  std::vector<std::string> commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(sub->get_name());
    if (sub->parsed()) {
      for (std::string& name : long_options(*sub)) options.push_back(std::move(name));
    }
  }
  if (app.get_subcommands().empty()) {
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i].rfind('-', 0) != 0)
        return fmt::format("no command '{}'{}", words[i], did_you_mean(words[i], commands));
    }
  }
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    if (name.rfind("--", 0) == 0 && std::find(options.begin(), options.end(), name) == options.end()) {
      return error.what() + did_you_mean(name, options);
    }
  }
  return error.what();
}

int run(int argc, char** argv) {
  Context context;
  context.command.assign(argv, argv + argc);
  GlobalOptions options;
  CLI::App app;
  app.name("assay");
  add_global_options(app, context, options);
  add_probe_command(app, context);
  add_slurm_command(app, context);
  add_demo_command(app, context);
  add_train_command(app, context);
  add_generate_command(app, context);
  add_verify_command(app, context);
  add_run_command(app, context);
  add_ps_command(app, context);
  add_logs_command(app, context);
  add_stop_command(app, context);
  add_resume_command(app, context);
  add_report_command(app, context);
  add_table_command(app, context);
  add_history_command(app, context);
  add_diff_command(app, context);
  add_cases_command(app, context);
  add_config_command(app, context);
  add_check_command(app, context);
  add_import_command(app, context);
  add_log_command(app, context);
  add_data_command(app, context);
  add_doctor_command(app, context);
  add_completion_command(app, context);
  add_supervise_command(app, context);
  add_relay_command(app, context);
  try {
    if (argc > 1 && std::string_view(argv[1]) == "__complete") {
      settle(context, options);
      print_completions(app, context, {argv + 2, argv + argc});
      return kExitPass;
    }
    if (argc == 1) {
      fmt::print(stderr, "{}", app.help());
      return kExitUsage;
    }
    app.parse(argc, argv);
    return context.exit_code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    context.console.error(fmt::format("{}\nSee assay --help", parse_message(app, error, context.command)));
    return kExitUsage;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Interrupted) context.console.error(error.what());
    return exit_code(error.kind());
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  try {
    assay::catch_stop_signals();
    return assay::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\nThis is a fault of assay itself; please report it.\n", error.what());
    return assay::kExitFail;
  }
}
