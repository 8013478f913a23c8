#include "data/gpt_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "data/random.h"

namespace assay {

namespace {

constexpr int kNumSplitParts = 3;
constexpr const char* kPartNames[kNumSplitParts] = {"train", "eval", "test"};
constexpr int64_t kMaxDocumentPlaces = int64_t{1} << 32;  // 32 GiB of index: a mistake in num_samples
// Keys of the two random orders; the numbers only have to differ.
constexpr uint64_t kDocumentOrder = 0xd0c5, kSampleOrder = 0x5a47;

bool has_shares(const std::string& split) { return split.find_first_of("0123456789") != std::string::npos; }

std::vector<double> shares_of(const std::string& split) {
  std::vector<double> shares;
  double sum = 0;
  for (const std::string& text : assay::split(split, ',')) {
    const auto share = parse_double(trim(text));
    if (!share || !(*share >= 0) || !std::isfinite(*share)) {
      throw ConfigError(fmt::format("split '{}': must be up to three shares, such as 949,50,1", split));
    }
    shares.push_back(*share);
    sum += *share;
  }
  if (shares.size() > kNumSplitParts || !(sum > 0)) {
    throw ConfigError(fmt::format("split '{}': must be up to three shares, not all 0, such as 949,50,1", split));
  }
  shares.resize(kNumSplitParts, 0);
  for (double& share : shares) share /= sum;
  return shares;
}

int64_t tokens_in(const TokenFile& tokens, DocumentRange range) {
  return tokens.begin_of(range.end) - tokens.begin_of(range.begin);
}

DocumentRange range_of(const TokenFile& tokens, const GptIndex::Key& key) {
  const DocumentRange range = split_documents(key.split, key.part, tokens.num_documents());
  if (range.begin == range.end || tokens_in(tokens, range) == 0) {
    throw DataError(fmt::format("{}: the {} part of the split '{}' has no tokens: the file has {} documents",
                                tokens.paths().index.string(), kPartNames[key.part], key.split,
                                tokens.num_documents()));
  }
  return range;
}

void shuffle(std::span<int64_t> values, KeyedRandom random) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

// What is wrong with an index that was read; "" when nothing is.
std::string fault_in(const GptIndex& index, const TokenFile& tokens, const GptIndex::Key& key, DocumentRange range) {
  const auto count = static_cast<size_t>(key.num_samples > 0 ? key.num_samples : samples_of_one_pass(tokens, key));
  if (index.order.size() != count || index.starts.size() != 2 * count) return "another number of samples";
  int64_t total = 0;
  for (const int64_t document : index.documents) {
    if (document < range.begin || document >= range.end) return "a document outside the split";
    total += tokens.length_of(document);
  }
  if (total <= static_cast<int64_t>(count) * key.sequence_length) return "too few documents";
  std::vector<bool> seen(count, false);
  for (const int64_t sample : index.order) {
    if (sample < 0 || sample >= static_cast<int64_t>(count) || seen[static_cast<size_t>(sample)]) {
      return "the order is not a permutation";
    }
    seen[static_cast<size_t>(sample)] = true;
  }
  size_t position = 0;
  int64_t before = 0;  // tokens of documents before `place`
  for (size_t i = 0; i < count; ++i) {
    const int64_t begin = static_cast<int64_t>(i) * key.sequence_length;
    while (before + tokens.length_of(index.documents[position]) <= begin) {
      before += tokens.length_of(index.documents[position++]);
    }
    if (index.starts[2 * i] != static_cast<int64_t>(position) || index.starts[2 * i + 1] != begin - before) {
      return fmt::format("sample {} begins at another token", i);
    }
  }
  return "";
}

}  // namespace

DocumentRange split_documents(const std::string& split, int part, int64_t num_documents) {
  ASSAY_CHECK(part >= 0 && part < kNumSplitParts, "a split has three parts");
  if (!has_shares(split)) return {0, num_documents};
  std::vector<int64_t> bounds = {0};
  for (const double share : shares_of(split)) {
    bounds.push_back(bounds.back() + static_cast<int64_t>(std::nearbyint(share * static_cast<double>(num_documents))));
  }
  // Rounding may give away one document too many or too few; every bound but the first moves by that.
  const int64_t excess = bounds.back() - num_documents;
  for (size_t i = 1; i < bounds.size(); ++i) bounds[i] = std::max<int64_t>(0, bounds[i] - excess);
  return {bounds[static_cast<size_t>(part)], bounds[static_cast<size_t>(part) + 1]};
}

int64_t samples_of_one_pass(const TokenFile& tokens, const GptIndex::Key& key) {
  return (tokens_in(tokens, range_of(tokens, key)) - 1) / key.sequence_length;
}

GptIndex build_gpt_index(const TokenFile& tokens, const GptIndex::Key& key) {
  const DocumentRange range = range_of(tokens, key);
  const int64_t pass_tokens = tokens_in(tokens, range);
  const int64_t count = key.num_samples > 0 ? key.num_samples : samples_of_one_pass(tokens, key);
  if (count < 1) {
    throw DataError(fmt::format("{}: the {} part of the split '{}' has {} tokens; one sample needs {}",
                                tokens.paths().ids.string(), kPartNames[key.part], key.split, pass_tokens,
                                key.sequence_length + 1));
  }
  const int64_t num_documents = range.end - range.begin;
  if (count > (INT64_MAX - 1) / key.sequence_length) throw ConfigError(fmt::format("num_samples {}: too many", count));
  const int64_t passes = (count * key.sequence_length + 1 + pass_tokens - 1) / pass_tokens;
  if (passes > kMaxDocumentPlaces / num_documents) throw ConfigError(fmt::format("num_samples {}: too many", count));

  GptIndex index;
  index.documents.resize(static_cast<size_t>(passes * num_documents));
  for (int64_t pass = 0; pass < passes; ++pass) {
    const auto these = std::span(index.documents)
                           .subspan(static_cast<size_t>(pass * num_documents), static_cast<size_t>(num_documents));
    std::iota(these.begin(), these.end(), range.begin);
    if (key.shuffle) shuffle(these, KeyedRandom(key.seed, kDocumentOrder, static_cast<uint64_t>(pass)));
  }
  index.starts.resize(static_cast<size_t>(2 * count));
  size_t position = 0;
  int64_t before = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * key.sequence_length;
    while (before + tokens.length_of(index.documents[position]) <= begin) {
      before += tokens.length_of(index.documents[position++]);
    }
    index.starts[static_cast<size_t>(2 * i)] = static_cast<int64_t>(position);
    index.starts[static_cast<size_t>(2 * i + 1)] = begin - before;
  }
  index.order.resize(static_cast<size_t>(count));
  std::iota(index.order.begin(), index.order.end(), 0);
  if (key.shuffle) shuffle(index.order, KeyedRandom(key.seed, kSampleOrder));
  return index;
}

std::filesystem::path gpt_index_path(const TokenFile& tokens, const GptIndex::Key& key) {
  std::string prefix = tokens.paths().ids.string();
  prefix.resize(prefix.size() - std::string_view("_ids.npy").size());
  std::string split = has_shares(key.split) ? key.split : "all";
  std::replace(split.begin(), split.end(), ',', '-');
  split.erase(std::remove_if(split.begin(), split.end(), [](char c) { return c == ' ' || c == '/'; }), split.end());
  return fmt::format("{}_index_{}_split{}_{}ns_{}sl_{}s{}_{}.npz", prefix, kPartNames[key.part], split, key.num_samples,
                     key.sequence_length, key.seed, key.shuffle ? "" : "_inorder",
                     tokens.documents_hash().substr(0, 16));
}

GptIndex load_gpt_index(const TokenFile& tokens, const GptIndex::Key& key,
                        const std::function<void(const std::string&)>& notice) {
  const fs::path path = gpt_index_path(tokens, key);
  const DocumentRange range = range_of(tokens, key);
  if (fs::exists(path)) {
    try {
      GptIndex index;
      const NpzFile file(path);
      index.documents = file.read("documents").integers(path.string());
      index.starts = file.read("starts").integers(path.string());
      index.order = file.read("order").integers(path.string());
      const std::string fault = fault_in(index, tokens, key, range);
      if (fault.empty()) return index;
      notice(fmt::format("{}: {}; built again", path.string(), fault));
    } catch (const DataError& error) {
      notice(fmt::format("{}; built again", error.what()));
    }
  }
  GptIndex index = build_gpt_index(tokens, key);
  try {
    write_npz_atomic(path, {npz_item("documents", index.documents), npz_item("starts", index.starts),
                            npz_item("order", index.order)});
  } catch (const InfrastructureError& error) {
    notice(fmt::format("{}; the index is not kept for the next start", error.what()));
  }
  return index;
}

}  // namespace assay
