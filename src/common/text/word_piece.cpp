#include "text/word_piece.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "text/basic_tokens.h"
#include "text/unicode.h"

namespace assay {

namespace {

constexpr std::string_view kInside = "##";
constexpr const char* kSpecialNames[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
constexpr size_t kMaxLetters = 1000;

bool read_lower_case(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  if (!fs::exists(path)) return true;
  const Json config = read_json_file(path);
  if (!config.is_object()) throw DataError(fmt::format("{}: not an object", path.string()));
  const auto lower = config.find("do_lower_case");
  if (lower == config.end()) return true;
  if (!lower->is_boolean()) throw DataError(fmt::format("{}: do_lower_case is neither true nor false", path.string()));
  return lower->get<bool>();
}

}  // namespace

WordPiece::WordPiece(std::vector<std::string> tokens, const Options& options)
    : tokens_(std::move(tokens)), options_(options) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& token = tokens_[i];
    const auto id = static_cast<int32_t>(i);
    if (std::find(std::begin(kSpecialNames), std::end(kSpecialNames), token) != std::end(kSpecialNames)) {
      specials_[token] = id;
    } else if (token.size() > kInside.size() && token.starts_with(kInside)) {
      inside_.emplace(token.substr(kInside.size()), id);
    } else {
      first_.emplace(token, id);
    }
    longest_ = std::max(longest_, token.size());
  }
  ASSAY_CHECK(specials_.count("[UNK]"), "no [UNK] in the vocabulary");
  unknown_ = specials_.at("[UNK]");
}

std::unique_ptr<WordPiece> WordPiece::load(const fs::path& folder) {
  const fs::path path = folder / "vocab.txt";
  const std::string content = read_file(path);
  std::vector<std::string> tokens;
  std::unordered_map<std::string, size_t> lines;
  for (std::string_view rest = content; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string token(trim(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t line = tokens.size() + 1;
    const auto fail = [&](const std::string& what) {
      throw DataError(fmt::format("{}:{}: {}", path.string(), line, what));
    };
    if (token.empty()) fail("an empty line; a line is a token");
    if (valid_utf8(token) != token) fail("not valid UTF-8");
    const auto [earlier, is_new] = lines.emplace(token, line);
    if (!is_new) fail(fmt::format("token '{}' is in line {} too", token, earlier->second));
    tokens.push_back(std::move(token));
  }
  if (!lines.count("[UNK]")) throw DataError(fmt::format("{}: the token [UNK] is missing", path.string()));
  return std::make_unique<WordPiece>(std::move(tokens), Options{.lower = read_lower_case(folder)});
}

void WordPiece::encode(std::string_view text, std::vector<int32_t>& ids) const {
  for (const std::string& word : basic_tokens(text, options_.lower)) encode_word(word, ids);
}

void WordPiece::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  if (const auto whole = first_.find(word); whole != first_.end() && word.size() <= options_.max_word_chars) {
    ids.push_back(whole->second);
    return;
  }
  if (word.size() > options_.max_word_chars && num_code_points(word) > options_.max_word_chars) {
    ids.push_back(unknown_);
    return;
  }
  const size_t before = ids.size();
  for (size_t begin = 0; begin < word.size();) {
    const Numbers& numbers = begin == 0 ? first_ : inside_;
    size_t end = std::min(word.size(), begin + longest_);
    int32_t found = -1;
    for (; end > begin; --end) {
      if (end < word.size() && (static_cast<uint8_t>(word[end]) & 0xc0) == 0x80) continue;  // inside a character
      const auto piece = numbers.find(word.substr(begin, end - begin));
      if (piece == numbers.end()) continue;
      found = piece->second;
      break;
    }
    if (found < 0) {
      ids.resize(before);
      ids.push_back(unknown_);
      return;
    }
    ids.push_back(found);
    begin = end;
  }
}

std::string WordPiece::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary_size()) {
      throw DataError(fmt::format("{} is not a token: the vocabulary has {}", id, vocabulary_size()));
    }
    const std::string& token = tokens_[static_cast<size_t>(id)];
    if (token == "[PAD]" || token == "[CLS]" || token == "[SEP]") continue;
    const bool inside = token.size() > kInside.size() && token.starts_with(kInside);
    if (!inside && !text.empty()) text += ' ';
    text += inside ? token.substr(kInside.size()) : token;
  }
  return text;
}

std::optional<int32_t> WordPiece::special(SpecialToken which) const {
  const auto named = [&](const char* name) -> std::optional<int32_t> {
    const auto found = specials_.find(name);
    if (found == specials_.end()) return std::nullopt;
    return found->second;
  };
  switch (which) {
    case SpecialToken::Unknown: return named("[UNK]");
    case SpecialToken::Padding: return named("[PAD]");
    case SpecialToken::Class: return named("[CLS]");
    case SpecialToken::Mask: return named("[MASK]");
    case SpecialToken::Separator:
    case SpecialToken::End: return named("[SEP]");
  }
  return std::nullopt;
}

void WordPiece::save(const fs::path& folder) const {
  make_folder(folder);
  write_file_atomic(folder / "tokenizer_config.json",
                    to_pretty({{"do_lower_case", options_.lower}, {"tokenizer_class", "BertTokenizer"}}) + "\n");
  write_file_atomic(folder / "vocab.txt", join(tokens_, "\n") + "\n");
}

std::string WordPiece::hash() const { return sha256(join(tokens_, "\n") + (options_.lower ? "\nlower" : "\n")); }

void WordPieceTrainer::add(std::string_view document) {
  for (std::string& word : basic_tokens(document, options_.lower)) {
    if (num_code_points(word) <= options_.max_word_chars) ++counts_[std::move(word)];
  }
}

std::unique_ptr<WordPiece> WordPieceTrainer::train(int32_t vocabulary_size, const TextProgress& progress) const {
  if (vocabulary_size < 32) throw UsageError(fmt::format("a vocabulary of {}: at least 32", vocabulary_size));
  if (counts_.empty()) throw InvalidError("no word in the texts");
  std::map<uint32_t, int64_t> letters;
  for (const auto& [word, count] : counts_) {
    for (size_t at = 0; at < word.size();) {
      const CodePoint c = code_point_at(word, at);
      letters[c.value] += count;
      at += c.num_bytes;
    }
  }
  std::vector<std::pair<int64_t, uint32_t>> frequent;
  for (const auto& [letter, count] : letters) frequent.emplace_back(-count, letter);
  std::sort(frequent.begin(), frequent.end());
  frequent.resize(std::min({frequent.size(), kMaxLetters, static_cast<size_t>(vocabulary_size) / 4}));
  std::vector<uint32_t> kept;
  for (const auto& [count, letter] : frequent) kept.push_back(letter);
  std::sort(kept.begin(), kept.end());

  std::vector<std::string> tokens(std::begin(kSpecialNames), std::end(kSpecialNames));
  std::unordered_map<uint32_t, int32_t> numbers;  // of a letter alone; inside a word the next one
  for (const uint32_t letter : kept) {
    std::string text;
    append_utf8(text, letter);
    numbers[letter] = static_cast<int32_t>(tokens.size());
    tokens.push_back(text);
    tokens.push_back(std::string(kInside) + text);
  }
  std::vector<CountedWord> words;
  for (const auto& [word, count] : counts_) {
    CountedWord counted{.symbols = {}, .count = count};
    bool known = true;
    for (size_t at = 0; at < word.size() && known;) {
      const CodePoint c = code_point_at(word, at);
      const auto number = numbers.find(c.value);
      known = number != numbers.end();
      if (known) counted.symbols.push_back(number->second + (at == 0 ? 0 : 1));
      at += c.num_bytes;
    }
    if (known) words.push_back(std::move(counted));
  }
  const MergeLearner learner{
      .max_pieces = vocabulary_size,
      .join = [](std::string_view a,
                 std::string_view b) { return std::string(a) + std::string(b.substr(kInside.size())); },
      .progress = progress};
  learner.learn(std::move(words), tokens);
  return std::make_unique<WordPiece>(std::move(tokens), options_);
}

}  // namespace assay
