// assay data encode: texts to files of tokens.
#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "base/time.h"
#include "command.h"
#include "text/encode_files.h"
#include "text/token_files.h"
#include "text/tokenizer.h"
#include "text_progress.h"

namespace assay {

namespace {

struct EncodeArguments {
  std::string tokenizer;
  std::string output;
  std::vector<std::string> files;
  bool no_end = false;
};

void encode_texts(const EncodeArguments& arguments, Context& context) {
  const Stopwatch clock;
  const auto tokenizer = load_tokenizer(arguments.tokenizer);
  TextProgressBar bar(context.console);
  const EncodedFiles encoded =
      encode_files(*tokenizer, {.files = {arguments.files.begin(), arguments.files.end()},
                                .prefix = arguments.output,
                                .end_token = !arguments.no_end,
                                .report = [&](std::string_view stage, int64_t done, int64_t total,
                                              std::string_view unit) { bar.show(stage, done, total, unit); }});
  bar.end();
  const TokenPaths paths(arguments.output);
  if (context.json) {
    context.console.print(to_pretty({{"ids", paths.ids.string()},
                                     {"index", paths.index.string()},
                                     {"num_documents", encoded.num_documents},
                                     {"num_tokens", encoded.num_tokens},
                                     {"num_bytes", encoded.num_bytes},
                                     {"dtype", encoded.narrow ? "uint16" : "int32"},
                                     {"tokenizer", tokenizer->hash()}}) +
                          "\n");
    return;
  }
  const double seconds = clock.seconds();
  context.console.info(fmt::format("{} documents, {} tokens of {:.2f} bytes, after {} ({:.1f} MB/s)",
                                   encoded.num_documents, encoded.num_tokens,
                                   static_cast<double>(encoded.num_bytes) / static_cast<double>(encoded.num_tokens),
                                   duration_text(seconds), static_cast<double>(encoded.num_bytes) / 1e6 / seconds));
  context.console.print(fmt::format("{}\n{}\n", paths.ids.string(), paths.index.string()));
}

}  // namespace

Command data_encode_command() {
  auto arguments = std::make_shared<EncodeArguments>();
  return {
      .name = "encode",
      .summary = "Turn texts into files of tokens, PREFIX_ids.npy and PREFIX_idx.npz",
      .examples = R"(  assay data encode --tokenizer tokenizer -o data/train train.jsonl
  assay data encode --tokenizer tokenizer -o data/novels *.txt)",
      .notes = "Both files appear at the end, or neither does: after an interruption the same command starts again.",
      .options =
          {{.names = "--tokenizer", .value = &arguments->tokenizer, .help = "Folder of a tokenizer", .required = true},
           {.names = "-o,--output", .value = &arguments->output, .help = "PREFIX of the two files", .required = true},
           {.names = "--no-end", .value = &arguments->no_end, .help = "No token for the end after each document"},
           {.names = "FILE",
            .value = &arguments->files,
            .help = "Texts: .jsonl with {\"text\": \"...\"} per line, or .txt, one document",
            .required = true}},
      .run = [arguments](Context& context) { encode_texts(*arguments, context); }};
}

}  // namespace assay
