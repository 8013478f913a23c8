// assay generate: continue a text with a language model, of a run or of a file of weights.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <iterator>
#include <memory>

#include "base/files.h"
#include "base/process.h"
#include "base/signals.h"
#include "command.h"
#include "config/case.h"
#include "layout/run_layout.h"
#include "run/run_folder.h"
#include "run_names.h"

namespace assay {

namespace {

constexpr double kGraceSeconds = 5;

struct GenerateCommand {
  std::string model;  // run or case
  std::optional<std::string> prompt;
  std::string prompt_file;
  std::string weights;
  std::string tokenizer;
  std::optional<int64_t> seed;
  // What was given of the section Generation, by its key.
  std::optional<std::string> decode_strategy;
  std::map<std::string, std::optional<int64_t>> integers;
  std::map<std::string, std::optional<double>> numbers;

  Json generation() const {
    Json out = Json::object();
    if (decode_strategy) out["decode_strategy"] = *decode_strategy;
    for (const auto& [key, value] : integers) {
      if (value) out[key] = *value;
    }
    for (const auto& [key, value] : numbers) {
      if (value) out[key] = *value;
    }
    return out;
  }
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
    const fs::path weights = of_step / layout::kOutput / "model.safetensors";
    if (!fs::exists(weights)) {
      throw UsageError(
          fmt::format("run {} has no weights yet: its training has not ended; assay resume {} continues it",
                      folder.filename().string(), folder.filename().string()));
    }
    return {parse_json(read_file(of_step / layout::kConfig), (of_step / layout::kConfig).string()), weights};
  }
  throw UsageError(fmt::format("run {} trained nothing", folder.filename().string()));
}

Trained find_trained(const Context& context, const GenerateCommand& command) {
  if (command.weights.empty()) return trained_by(find_run(context.runs, command.model));
  if (!fs::exists(command.weights)) throw UsageError(fmt::format("--weights {}: no such file", command.weights));
  return {resolve_case({.home = context.home, .key = CaseKey::parse(command.model)}).worker_json(),
          fs::absolute(command.weights)};
}

std::string prompt_of(const GenerateCommand& command) {
  if (command.prompt && !command.prompt_file.empty()) {
    throw UsageError("a prompt and --prompt-file: give one of them");
  }
  if (command.prompt) return *command.prompt;
  if (!command.prompt_file.empty()) return read_file(command.prompt_file);
  if (::isatty(STDIN_FILENO) != 0)
    throw UsageError("no prompt: give it behind the model, by --prompt-file, or piped in");
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

void generate(const GenerateCommand& command, Context& context) {
  Trained trained = find_trained(context, command);
  const Json generation = command.generation();
  for (const auto& [key, value] : generation.items()) trained.config["config"]["Generation"][key] = value;
  if (command.seed) trained.config["config"]["Global"]["seed"] = *command.seed;
  const TempFolder folder("assay-generate");
  write_file_atomic(folder.path() / layout::kConfig, to_pretty(trained.config));
  write_file_atomic(folder.path() / "prompt.txt", prompt_of(command));
  ProcessOptions worker{.argv = {(program_folder() / "assay-worker").string(), "generate", "--config",
                                 (folder.path() / layout::kConfig).string(), "--output",
                                 (folder.path() / layout::kOutput).string(), "--weights", trained.weights.string(),
                                 "--prompt", (folder.path() / "prompt.txt").string()}};
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
std::vector<Option> generation_options(GenerateCommand& command) {
  std::vector<Option> out;
  const auto add = [&](const char* name, Option::Value value, const char* help) {
    out.push_back({.names = std::string("--") + name, .value = value, .help = help, .group = "Generation"});
  };
  const auto add_integer = [&](const char* name, const char* help) { add(name, &command.integers[name], help); };
  const auto add_number = [&](const char* name, const char* help) { add(name, &command.numbers[name], help); };
  add("decode_strategy", &command.decode_strategy, "sampling (default), greedy_search or beam_search");
  add_integer("top_k", "Sample from so many best tokens; 0: all (default 50)");
  add_number("top_p", "Of these from the best with this total probability (default 0.75)");
  add_number("temperature", "Divides the logits (default 1)");
  add_number("repetition_penalty", "Above 1: tokens that were there become less probable (default 1)");
  add_integer("num_beams", "Of beam_search: texts that are followed at once (default 4)");
  add_number("length_penalty", "Of beam_search: above 0 favours long texts (default 0)");
  add_integer("min_dec_len", "Fewest tokens (default 1)");
  add_integer("max_dec_len", "Most tokens (default 200)");
  add_integer("num_return_sequences", "Continuations of the prompt (default 1)");
  return out;
}

}  // namespace

Command generate_command() {
  auto options = std::make_shared<GenerateCommand>();
  Command command{
      .name = "generate",
      .summary = "Continue a text with a language model",
      .examples = R"(  assay generate last "Fellow citizens of the Senate"
  assay generate last --decode_strategy greedy_search --max_dec_len 50 < prompt.txt
  assay generate gpt-full --weights gpt2/model.safetensors --tokenizer gpt2 "Once upon a time")",
      .notes = "Standard output has the text; what it took is on standard error, and in the object that --json prints.",
      .options = {{.names = "model",
                   .value = &options->model,
                   .help = "A run that trained one (folder, name or last); with --weights a case",
                   .required = true},
                  {.names = "prompt",
                   .value = &options->prompt,
                   .help = "The text to continue; absent: standard input"},
                  {.names = "--prompt-file", .value = &options->prompt_file, .help = "File with the text to continue"},
                  {.names = "--weights",
                   .value = &options->weights,
                   .help = "Weights, safetensors: ours, or published ones of the same names"},
                  {.names = "--tokenizer",
                   .value = &options->tokenizer,
                   .help = "Folder of the tokenizer (default: that of the case's data)"},
                  {.names = "--seed", .value = &options->seed, .help = "Of sampling (default: the case's)"}},
      .run = [options](Context& context) { generate(*options, context); },
      .complete = run_names};
  for (Option& option : generation_options(*options)) command.options.push_back(std::move(option));
  return command;
}

}  // namespace assay
