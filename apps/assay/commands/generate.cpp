// assay generate: continue a text with a language model, of a run or of a file of weights.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <iterator>
#include <memory>

#include "base/files.h"
#include "base/process.h"
#include "base/signals.h"
#include "config/case.h"
#include "context.h"
#include "execute/run_folder.h"

namespace assay {

namespace {

constexpr double kGraceSeconds = 5;

struct GenerateCommand {
  std::string model;  // run or case
  std::string prompt;
  std::string prompt_file;
  std::string weights;
  std::string tokenizer;
  std::optional<int64_t> seed;
  std::map<std::string, Json> generation;  // what was given, by its key in the section Generation
};

// What the worker is told: the configuration and the weights.
struct Trained {
  Json config;
  fs::path weights;
};

Trained trained_by(const fs::path& folder) {
  const RunRecord run = read_run(folder);
  for (const Step& step : run.plan.steps) {
    if (step.kind != StepKind::Train) continue;
    const fs::path of_step = folder / run.plan.folder(step.name);
    const fs::path weights = of_step / "output" / "model.safetensors";
    if (!fs::exists(weights)) {
      throw UsageError(
          fmt::format("run {} has no weights yet: its training has not ended; assay resume {} continues it",
                      folder.filename().string(), folder.filename().string()));
    }
    return {parse_json(read_file(of_step / "config.json"), (of_step / "config.json").string()), weights};
  }
  throw UsageError(fmt::format("run {} trained nothing", folder.filename().string()));
}

Trained find_trained(const Context& context, const GenerateCommand& command) {
  if (command.weights.empty()) return trained_by(find_run(context.runs, command.model));
  if (!fs::exists(command.weights)) throw UsageError(fmt::format("--weights {}: no such file", command.weights));
  return {resolve_case({.home = context.home, .key = CaseKey::parse(command.model)}).worker_json(),
          fs::absolute(command.weights)};
}

std::string prompt_of(const CLI::App& app, const GenerateCommand& command) {
  if (app.count("prompt") > 0 && !command.prompt_file.empty()) {
    throw UsageError("a prompt and --prompt-file: give one of them");
  }
  if (app.count("prompt") > 0) return command.prompt;
  if (!command.prompt_file.empty()) return read_file(command.prompt_file);
  if (::isatty(STDIN_FILENO) != 0)
    throw UsageError("no prompt: give it behind the model, by --prompt-file, or piped in");
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

void generate(const CLI::App& app, const GenerateCommand& command, Context& context) {
  Trained trained = find_trained(context, command);
  for (const auto& [key, value] : command.generation) trained.config["config"]["Generation"][key] = value;
  if (command.seed) trained.config["config"]["Global"]["seed"] = *command.seed;
  const TempFolder folder("assay-generate");
  write_file_atomic(folder.path() / "config.json", to_pretty(trained.config));
  write_file_atomic(folder.path() / "prompt.txt", prompt_of(app, command));
  ProcessOptions worker{.argv = {(program_folder() / "assay-worker").string(), "generate", "--config",
                                 (folder.path() / "config.json").string(), "--output",
                                 (folder.path() / "output").string(), "--weights", trained.weights.string(), "--prompt",
                                 (folder.path() / "prompt.txt").string()}};
  if (!command.tokenizer.empty()) {
    worker.argv.insert(worker.argv.end(), {"--tokenizer", fs::absolute(command.tokenizer).string()});
  }
  if (context.json) worker.argv.emplace_back("--json");
  Process process = Process::start(worker);
  std::optional<ExitStatus> status;
  while (!(status = process.wait_for(3600, stop_fd())) && stop_signal() == 0) {
  }
  if (!status) status = process.stop(kGraceSeconds);
  context.exit_code = stop_signal() != 0 ? kExitInterrupted : status->shell_code();
}

// The keys of the section Generation, as options.
void add_generation_options(CLI::App& app, std::map<std::string, Json>& given) {
  const auto add = [&](const char* name, auto zero, const char* doc) {
    using Value = decltype(zero);
    app.add_option_function<Value>(
           std::string("--") + name, [&given, name](const Value& v) { given[name] = v; }, doc)
        ->group("Generation");
  };
  add("decode_strategy", std::string(), "sampling (default), greedy_search or beam_search");
  add("top_k", int64_t{0}, "Sample from so many best tokens; 0: all (default 50)");
  add("top_p", 0.0, "Of these from the best with this total probability (default 0.75)");
  add("temperature", 0.0, "Divides the logits (default 1)");
  add("repetition_penalty", 0.0, "Above 1: tokens that were there become less probable (default 1)");
  add("num_beams", int64_t{0}, "Of beam_search: texts that are followed at once (default 4)");
  add("length_penalty", 0.0, "Of beam_search: above 0 favours long texts (default 0)");
  add("min_dec_len", int64_t{0}, "Fewest tokens (default 1)");
  add("max_dec_len", int64_t{0}, "Most tokens (default 200)");
  add("num_return_sequences", int64_t{0}, "Continuations of the prompt (default 1)");
}

}  // namespace

void add_generate_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("generate", "Continue a text with a language model");
  auto options = std::make_shared<GenerateCommand>();
  command->add_option("model", options->model, "A run that trained one (folder, name or last); with --weights a case")
      ->required();
  command->add_option("prompt", options->prompt, "The text to continue; absent: standard input");
  command->add_option("--prompt-file", options->prompt_file, "File with the text to continue");
  command->add_option("--weights", options->weights, "Weights, safetensors: ours, or published ones of the same names");
  command->add_option("--tokenizer", options->tokenizer, "Folder of the tokenizer (default: that of the case's data)");
  command->add_option("--seed", options->seed, "Of sampling (default: the case's)");
  add_generation_options(*command, options->generation);
  command->footer(R"(Examples:
  assay generate last "Fellow citizens of the Senate"
  assay generate last --decode_strategy greedy_search --max_dec_len 50 < prompt.txt
  assay generate gpt-full --weights gpt2/model.safetensors --tokenizer gpt2 "Once upon a time"

Standard output has the text; what it took is on standard error, and in the object that --json prints.)");
  command->callback([command, options, &context] { generate(*command, *options, context); });
}

}  // namespace assay
