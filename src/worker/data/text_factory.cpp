#include "data/text_factory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/blank_infilling.h"
#include "data/gpt_dataset.h"
#include "data/masked_language.h"
#include "data/text_classification.h"

namespace assay {

namespace fs = std::filesystem;

namespace {

constexpr char kVocabFile[] = "vocab.txt";  // of WordPiece, in the tokenizer's folder

fs::path text_folder(const DatasetRequest& request, Reader& section) {
  const fs::path path = request.folder(section, "the data");
  if (!fs::is_directory(path)) throw DataError(fmt::format("{}: no such folder", path.string()));
  return path;
}

// The size of the model's vocabulary; 0 when the model has none.
int64_t model_vocabulary(const WorkerConfig& config) {
  const auto model = config.config.find("Model");
  if (model == config.config.end() || !model->is_object()) return 0;
  const auto size = model->find("vocab_size");
  return size != model->end() && size->is_number_integer() ? size->get<int64_t>() : 0;
}

// The only PREFIX_ids.npy of a folder.
std::string only_prefix(const fs::path& folder, const Reader& section) {
  constexpr std::string_view kEnd = "_ids.npy";
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(kEnd)) found.push_back(name.substr(0, name.size() - kEnd.size()));
  }
  std::sort(found.begin(), found.end());
  if (found.empty()) {
    throw DataError(fmt::format("{}: no *_ids.npy in it; assay data encode makes one from texts", folder.string()));
  }
  if (found.size() > 1) section.fail("data_prefix", "is missing; there are: " + join(found, ", "));
  return found[0];
}

// SPLIT.jsonl, unless `file` names another.
fs::path text_file(const fs::path& folder, Reader& section) {
  const std::string split = section.get_string("split", "train");
  return folder / section.get_string("file", split + ".jsonl");
}

// What both data sets of tokenized lines have: the file, the tokenizer and the sizes.
template <typename Options>
void read_lines_options(const DatasetRequest& request, Reader& section, Options& options) {
  const fs::path folder = text_folder(request, section);
  options.file = text_file(folder, section);
  options.tokenizer = folder / section.get_string("tokenizer", "tokenizer");
  options.max_seq_len = section.get_int("max_seq_len", options.max_seq_len);
  if (options.max_seq_len < 5 || options.max_seq_len > 1'000'000) {
    section.fail("max_seq_len", "must be from 5 to 1000000");
  }
  options.limit = section.get_int("limit", options.limit);
  options.vocab_size = model_vocabulary(request.config);
}

// The keys that a corpus of tokens has; the caller finishes the section.
GptDataset::Options read_gpt_options(const DatasetRequest& request, Reader& section, const char* length_key) {
  GptDataset::Options options;
  const fs::path folder = text_folder(request, section);
  const auto prefixes = section.get_optional_string("data_prefix");
  const std::vector<std::string> names = prefixes ? split(*prefixes, ',') : std::vector{only_prefix(folder, section)};
  const std::vector<double> weights = section.get_doubles("data_weights", std::vector<double>(names.size(), 1.0));
  if (weights.size() != names.size()) {
    section.fail("data_weights", fmt::format("must be {} numbers, one for each data_prefix", names.size()));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!(weights[i] > 0)) section.fail("data_weights", "must all be above 0");
    options.sources.push_back({folder / std::string(trim(names[i])), weights[i]});
  }
  options.index.split = section.get_string("split", "train");
  const std::vector<std::string> modes = {"Train", "Eval", "Test"};
  const std::string mode = section.get_choice("mode", modes, request.part);
  options.index.part = static_cast<int>(std::find(modes.begin(), modes.end(), mode) - modes.begin());
  options.index.sequence_length = section.get_int(length_key, options.index.sequence_length);
  if (options.index.sequence_length < 1) section.fail(length_key, "must be at least 1");
  options.index.num_samples = section.get_int("num_samples", 0);
  if (options.index.num_samples < 0) section.fail("num_samples", "must be at least 0");
  options.index.seed = static_cast<uint64_t>(section.get_int("seed", static_cast<int64_t>(request.seed)));
  options.index.shuffle = section.get_bool("shuffle", mode == "Train");
  options.vocab_size = model_vocabulary(request.config);
  options.limit = section.get_int("limit", options.limit);
  return options;
}

void check_token_files(const DatasetRequest& request, const GptDataset::Options& options) {
  std::vector<fs::path> files;
  for (const GptDataset::Source& source : options.sources) {
    const TokenPaths paths(source.prefix);
    files.insert(files.end(), {paths.ids, paths.index});
  }
  request.check_files(files);
}

double ratio_option(Reader& section, const std::string& key, double fallback) {
  const double value = section.get_double(key, fallback);
  if (!(value > 0 && value < 1)) section.fail(key, "must be above 0 and below 1");
  return value;
}

}  // namespace

std::shared_ptr<const Dataset> make_text_classification(const DatasetRequest& request, Reader& section) {
  TextClassification::Options options;
  read_lines_options(request, section, options);
  options.num_classes = section.get_int("num_classes", options.num_classes);
  if (options.num_classes < 2) section.fail("num_classes", "must be at least 2");
  section.finish();
  request.check_files({options.file, options.tokenizer / kVocabFile});
  return std::make_shared<TextClassification>(options);
}

std::shared_ptr<const Dataset> make_masked_language(const DatasetRequest& request, Reader& section) {
  MaskedLanguage::Options options;
  read_lines_options(request, section, options);
  options.mask_prob = ratio_option(section, "mask_prob", options.mask_prob);
  options.seed = request.seed;
  section.finish();
  request.check_files({options.file, options.tokenizer / kVocabFile});
  return std::make_shared<MaskedLanguage>(options);
}

std::shared_ptr<const Dataset> make_gpt_dataset(const DatasetRequest& request, Reader& section) {
  const GptDataset::Options options = read_gpt_options(request, section, "max_seq_len");
  section.finish();
  check_token_files(request, options);
  return std::make_shared<GptDataset>(options);
}

std::shared_ptr<const Dataset> make_blank_infilling(const DatasetRequest& request, Reader& section) {
  BlankInfilling::Options options;
  options.vocab_size = model_vocabulary(request.config);
  if (options.vocab_size <= kNumBlankTokens) {
    throw ConfigError(
        fmt::format("Model.vocab_size: must be more than {}, the tokens that mark blanks", kNumBlankTokens));
  }
  options.source = read_gpt_options(request, section, "source_seq_len");
  if (options.source.index.sequence_length < 2) section.fail("source_seq_len", "must be at least 2");
  options.left_to_right = section.get_bool("left_to_right", options.left_to_right);
  // A model that reads from left to right has no tokens for blanks.
  options.source.vocab_size = options.vocab_size - (options.left_to_right ? 0 : kNumBlankTokens);
  options.max_seq_len = section.get_int("max_seq_len", options.source.index.sequence_length * 5 / 4);
  if (options.max_seq_len < options.source.index.sequence_length + 2 || options.max_seq_len > 1'000'000) {
    section.fail("max_seq_len", "must be at least source_seq_len + 2, to hold a blank, and at most 1000000");
  }
  options.mask_ratio = ratio_option(section, "mask_ratio", options.mask_ratio);
  options.max_mask_ratio = ratio_option(section, "max_mask_ratio", options.mask_ratio);
  if (options.max_mask_ratio < options.mask_ratio) section.fail("max_mask_ratio", "must be at least mask_ratio");
  options.long_span_prob = section.get_double("long_span_prob", options.long_span_prob);
  if (!(options.long_span_prob >= 0 && options.long_span_prob <= 1))
    section.fail("long_span_prob", "must be from 0 to 1");
  options.long_span_ratio = ratio_option(section, "long_span_ratio", options.long_span_ratio);
  options.mean_span = section.get_double("mean_span", options.mean_span);
  if (!(options.mean_span > 0 && options.mean_span <= 500)) section.fail("mean_span", "must be above 0, at most 500");
  options.seed = request.seed;
  section.finish();
  check_token_files(request, options.source);
  return std::make_shared<BlankInfilling>(options);
}

}  // namespace assay
