// assay-worker: one rank of a native case. Environment and a configuration file in, records and an exit code out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>

#include "base/error.h"
#include "base/files.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/time.h"
#include "base/version.h"
#include "commands.h"
#include "device/allocator.h"
#include "device/blas_kernels.h"
#include "device/info.h"
#include "device/threads.h"
#include "engine/loop/record_observer.h"
#include "record/keys.h"

namespace assay {
namespace {

struct Failure {
  ErrorKind kind = ErrorKind::Internal;
  std::string message;
};

// libtorch reports everything as one type; the first line of its text says what happened, the rest is a stack of ours.
Failure failure_of(const std::exception& error) {
  if (const auto* typed = dynamic_cast<const Error*>(&error)) return {typed->kind(), typed->what()};
  const std::string text = error.what();
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                         text.find("can't allocate memory") != std::string::npos ||
                         text.find("out of memory") != std::string::npos;
  if (no_memory) return {ErrorKind::OutOfMemory, "out of memory: " + text.substr(0, text.find('\n'))};
  return {ErrorKind::Internal, text.substr(0, text.find("\nException raised from"))};
}

int report_failure(const Failure& failure, const JobArguments& arguments) {
  fmt::print(stderr, "assay-worker: {}: {}\n", kind_name(failure.kind), failure.message);
  if (arguments.output.empty()) return worker_exit_code(failure.kind);
  try {
    // A fresh writer: the job's own may be what failed.
    const std::filesystem::path path = records_path(arguments);
    if (path.has_parent_path()) make_folder(path.parent_path());
    RecordWriter records(path);
    write_event(records, keys::kFailure, {{"kind", kind_name(failure.kind)}, {"message", valid_utf8(failure.message)}});
  } catch (const std::exception& error) {
    fmt::print(stderr, "assay-worker: the failure could not be recorded: {}\n", error.what());
  }
  return worker_exit_code(failure.kind);
}

int run_job(const JobArguments& arguments, const char* name, void (*command)(Job&), const Stopwatch& started) {
  try {
    Job job(arguments, name, started);
    try {
      command(job);
    } catch (const std::exception& error) {
      job.tell_failure(error);
      throw;
    }
    write_event(job.records(), keys::kFinished, {{"command", name}});
    return kExitPass;
  } catch (const std::exception& error) {
    return report_failure(failure_of(error), arguments);
  }
}

void print_info(bool measure) {
  install_caching_allocator();
  configure_threads(1);
  fmt::print("{}\n", to_pretty(machine_info(measure)));
}

int run(int argc, char** argv) {
  const Stopwatch started;
  catch_stop_signals();
  CLI::App app("One rank of a native case: trains, evaluates, exports and runs models. Started by assay.",
               "assay-worker");
  app.set_version_flag("--version", fmt::format("assay-worker {} ({})", version(), commit()));
  app.require_subcommand(1);
  JobArguments arguments;
  int exit_code = kExitPass;
  const auto add = [&](const char* name, const char* help, void (*command)(Job&)) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->add_option("--config", arguments.config, "configuration that assay wrote, JSON")->required();
    sub->add_option("--output", arguments.output, "folder for everything this command writes")->required();
    sub->callback([&, name, command] { exit_code = run_job(arguments, name, command, started); });
    return sub;
  };
  add("train", "train, continuing from the newest checkpoint in the output folder", run_train);
  add("serve", "be a parameter server; train does the same where TRAINING_ROLE is PSERVER", run_serve);
  add("evaluate", "accuracy and loss on the test data; writes predictions.safetensors", run_evaluate)
      ->add_option("--weights", arguments.weights, "weights that train wrote, safetensors")
      ->required();
  add("export", "write model.pt (TorchScript) and export.json", run_export)
      ->add_option("--weights", arguments.weights, "weights that train wrote, safetensors")
      ->required();
  add("infer", "run an exported model on the test data; writes predictions.safetensors", run_infer)
      ->add_option("--model", arguments.model, "TorchScript file that export wrote")
      ->required();
  CLI::App* generate = add("generate", "continue a text; standard output has what follows", run_generate);
  generate->add_option("--weights", arguments.weights, "weights that train wrote, safetensors")->required();
  generate->add_option("--prompt", arguments.prompt, "file with the text to continue")->required();
  generate->add_option("--tokenizer", arguments.tokenizer, "folder of the tokenizer; default: that of the case's data");
  generate->add_flag("--json", arguments.json, "all texts, their tokens and times as JSON");

  std::string plugin;
  CLI::App* check = app.add_subcommand(
      "check-plugin", "check a vendor's plugin: 0 it keeps the contract, 1 it breaks it, 2 it cannot be loaded");
  check->add_option("plugin", plugin, "library, or a name as in Global.plugin")->required();
  check->callback([&] {
    install_caching_allocator();
    configure_threads(1);
    exit_code = check_plugin(plugin) ? kExitPass : kExitFail;
  });

  bool measure = false;
  CLI::App* info = app.add_subcommand("info", "this machine and the libraries in use, as JSON");
  info->add_flag("--measure", measure, "measure matrix products and the processor's peak, about a second");
  info->callback([&] { print_info(measure); });
  app.add_subcommand("models", "the models this worker knows, as JSON")->callback([] {
    fmt::print("{}\n", to_pretty(describe_models()));
  });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitPass : kExitUsage;
  } catch (const std::exception& error) {
    return report_failure(failure_of(error), {});
  }
  return exit_code;
}

}  // namespace
}  // namespace assay

ASSAY_CHOOSE_BLAS_KERNELS

int main(int argc, char** argv) {
  const int code = assay::run(argc, argv);
#if !defined(__SANITIZE_ADDRESS__)  // which looks for leaks at the end
  // All of ours is closed. libtorch would take its operators off its lists one by one, which takes a fifth of a second.
  std::fflush(nullptr);
  std::quick_exit(code);
#endif
  return code;
}
