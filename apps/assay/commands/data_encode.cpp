// assay data encode: texts to files of tokens.
#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "base/time.h"
#include "context.h"
#include "text/documents.h"
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
  const int32_t end = arguments.no_end ? -1 : tokenizer->special(SpecialToken::End).value_or(-1);
  std::vector<std::unique_ptr<DocumentReader>> readers;  // all opened first: a missing file is an error at once
  int64_t total = 0;
  for (const std::string& file : arguments.files) {
    readers.push_back(std::make_unique<DocumentReader>(file));
    total += static_cast<int64_t>(readers.back()->num_bytes());
  }
  TextProgressBar bar(context.console);
  TokenWriter writer(arguments.output, tokenizer->vocabulary_size());
  std::vector<int32_t> ids;
  int64_t done = 0;
  int64_t num_text_bytes = 0;
  for (const auto& reader : readers) {
    while (const auto document = reader->next()) {
      ids.clear();
      tokenizer->encode(document->text, ids);
      if (end >= 0 && !ids.empty()) ids.push_back(end);
      writer.add(ids, static_cast<int64_t>(document->text.size()));
      if (!ids.empty()) num_text_bytes += static_cast<int64_t>(document->text.size());
      bar.show("encode", done + static_cast<int64_t>(reader->num_bytes_read()), total, "B");
    }
    done += static_cast<int64_t>(reader->num_bytes());
  }
  writer.finish();
  bar.end();
  const TokenPaths paths(arguments.output);
  if (context.json) {
    context.console.print(to_pretty({{"ids", paths.ids.string()},
                                     {"index", paths.index.string()},
                                     {"num_documents", writer.num_documents()},
                                     {"num_tokens", writer.num_tokens()},
                                     {"num_bytes", num_text_bytes},
                                     {"dtype", writer.narrow() ? "uint16" : "int32"},
                                     {"tokenizer", tokenizer->hash()}}) +
                          "\n");
    return;
  }
  const double seconds = clock.seconds();
  context.console.info(fmt::format("{} documents, {} tokens of {:.2f} bytes, after {} ({:.1f} MB/s)",
                                   writer.num_documents(), writer.num_tokens(),
                                   static_cast<double>(num_text_bytes) / static_cast<double>(writer.num_tokens()),
                                   duration_text(seconds), static_cast<double>(num_text_bytes) / 1e6 / seconds));
  context.console.print(fmt::format("{}\n{}\n", paths.ids.string(), paths.index.string()));
}

}  // namespace

void add_data_encode_command(CLI::App& data, Context& context) {
  auto* command = data.add_subcommand("encode", "Turn texts into files of tokens, PREFIX_ids.npy and PREFIX_idx.npz");
  auto arguments = std::make_shared<EncodeArguments>();
  command->add_option("--tokenizer", arguments->tokenizer, "Folder of a tokenizer")->required();
  command->add_option("-o,--output", arguments->output, "PREFIX of the two files")->required();
  command->add_flag("--no-end", arguments->no_end, "No token for the end after each document");
  command->add_option("FILE", arguments->files, "Texts: .jsonl with {\"text\": \"...\"} a line, or .txt, one document")
      ->required();
  command->footer(R"(Examples:
  assay data encode --tokenizer tokenizer -o data/train train.jsonl
  assay data encode --tokenizer tokenizer -o data/novels *.txt

Both files appear at the end, or neither does: after an interruption the same command starts again.)");
  command->callback([&context, arguments] { encode_texts(*arguments, context); });
}

}  // namespace assay
