// assay data tokenizer train: learn a vocabulary from texts.
#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "base/time.h"
#include "context.h"
#include "text/train_tokenizer.h"
#include "text_progress.h"

namespace assay {

namespace {

struct TokenizerArguments {
  std::string type = "bpe";
  int32_t vocabulary_size = 8192;
  std::string output;
  std::vector<std::string> files;
  bool cased = false;
};

void train_tokenizer_command(const TokenizerArguments& arguments, Context& context) {
  const Stopwatch clock;
  TextProgressBar bar(context.console);
  const auto tokenizer =
      train_tokenizer({.type = arguments.type,
                       .vocabulary_size = arguments.vocabulary_size,
                       .lower = !arguments.cased,
                       .files = {arguments.files.begin(), arguments.files.end()},
                       .report = [&](std::string_view stage, int64_t done, int64_t total, std::string_view unit) {
                         bar.show(stage, done, total, unit);
                       }});
  bar.end();
  stop_if_asked();
  tokenizer->save(arguments.output);
  const int32_t size = tokenizer->vocabulary_size();
  if (context.json) {
    context.console.print(to_pretty({{"type", tokenizer->kind()},
                                     {"path", fs::absolute(arguments.output).string()},
                                     {"vocabulary_size", size},
                                     {"hash", tokenizer->hash()}}) +
                          "\n");
    return;
  }
  context.console.info(
      fmt::format("{} tokenizer of {} tokens after {}", tokenizer->kind(), size, duration_text(clock.seconds())));
  if (size < arguments.vocabulary_size) {
    context.console.warn(
        fmt::format("{} tokens were asked for; the texts hold no more that occur twice", arguments.vocabulary_size));
  }
  context.console.print(arguments.output + "\n");
}

}  // namespace

void add_data_tokenizer_command(CLI::App& data, Context& context) {
  auto* group = data.add_subcommand("tokenizer", "Train tokenizers");
  group->require_subcommand(1);
  auto* command = group->add_subcommand("train", "Learn a vocabulary from texts");
  auto arguments = std::make_shared<TokenizerArguments>();
  command->add_option("--type", arguments->type,
                      "bpe (bytes, as GPT-2; the default), wordpiece (as BERT), sentencepiece");
  command->add_option("--vocab", arguments->vocabulary_size, "Tokens, special ones included (default: 8192)")
      ->check(CLI::Range(32, 10'000'000));
  command->add_option("-o,--output", arguments->output, "Folder for its files")->required();
  command->add_flag("--cased", arguments->cased, "With wordpiece: keep capitals and accents");
  command->add_option("FILE", arguments->files, "Texts: .jsonl with {\"text\": \"...\"} a line, or .txt")->required();
  command->footer(R"(Examples:
  assay data tokenizer train --vocab 8192 -o tokenizer train.jsonl
  assay data tokenizer train --type wordpiece --vocab 30000 -o tokenizer train.jsonl more.txt)");
  command->callback([&context, arguments] { train_tokenizer_command(*arguments, context); });
}

}  // namespace assay
