// assay data tokenizer train: learn a vocabulary from texts.
#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "base/time.h"
#include "command.h"
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

void learn_vocabulary(const TokenizerArguments& arguments, Context& context) {
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

Command data_tokenizer_command() {
  auto arguments = std::make_shared<TokenizerArguments>();
  constexpr const char* kExamples = R"(  assay data tokenizer train --vocab 8192 -o tokenizer train.jsonl
  assay data tokenizer train --type wordpiece --vocab 30000 -o tokenizer train.jsonl more.txt)";
  Command train{
      .name = "train",
      .summary = "Learn a vocabulary from texts",
      .examples = kExamples,
      .options =
          {{.names = "--type",
            .value = &arguments->type,
            .help = "bpe (bytes, as GPT-2; the default), wordpiece (as BERT), sentencepiece"},
           {.names = "--vocab",
            .value = &arguments->vocabulary_size,
            .help = "Tokens, special ones included (default: 8192)",
            .min = 32,
            .max = 10'000'000},
           {.names = "-o,--output", .value = &arguments->output, .help = "Folder for its files", .required = true},
           {.names = "--cased", .value = &arguments->cased, .help = "With wordpiece: keep capitals and accents"},
           {.names = "FILE",
            .value = &arguments->files,
            .help = "Texts: .jsonl with {\"text\": \"...\"} per line, or .txt",
            .required = true}},
      .run = [arguments](Context& context) { learn_vocabulary(*arguments, context); }};
  return {.name = "tokenizer", .summary = "Train tokenizers", .examples = kExamples, .commands = {std::move(train)}};
}

}  // namespace assay
