#include "text/byte_bpe.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>
#include <queue>

#include "base/error.h"
#include "base/hash.h"
#include "text/gpt2_pieces.h"

namespace assay {

namespace {

constexpr size_t kShortPiece = 48;  // bytes; above it the queue is quicker than looking at every pair again
constexpr uint64_t kFree = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

uint64_t spread(uint64_t x) {
  x *= 0x9e3779b97f4a7c15ULL;
  return x ^ (x >> 32);
}

uint32_t hash_of(std::string_view text) {
  uint64_t hash = text.size();
  while (text.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, text.data(), 8);
    hash = spread(hash ^ word);
    text.remove_prefix(8);
  }
  uint64_t rest = 0;
  for (const char c : text) rest = rest << 8 | static_cast<uint8_t>(c);
  return static_cast<uint32_t>(spread(hash ^ rest) >> 7);
}

// Half full at most, so that runs stay short.
size_t table_size(size_t num_entries) { return std::bit_ceil(2 * num_entries + 2); }

}  // namespace

void ByteBpe::MergeTable::build(const Parts& parts) {
  slots_.assign(table_size(parts.merges.size()), {kFree, {}});
  mask_ = slots_.size() - 1;
  for (size_t rank = 0; rank < parts.merges.size(); ++rank) {
    const uint64_t key = pair_key(parts.merges[rank].first, parts.merges[rank].second);
    size_t at = spread(key) & mask_;
    while (slots_[at].key != kFree) at = (at + 1) & mask_;
    slots_[at] = {key, {static_cast<uint32_t>(rank), parts.products[rank]}};
  }
}

const ByteBpe::Merge* ByteBpe::MergeTable::find(int32_t left, int32_t right) const {
  const uint64_t key = pair_key(left, right);
  for (size_t at = spread(key) & mask_;; at = (at + 1) & mask_) {
    if (slots_[at].key == key) return &slots_[at].merge;
    if (slots_[at].key == kFree) return nullptr;
  }
}

void ByteBpe::WordTable::build(const std::vector<std::string>& tokens, const std::vector<bool>& is_word) {
  slots_.assign(table_size(tokens.size()), {0, -1});
  mask_ = slots_.size() - 1;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!is_word[i]) continue;
    const uint32_t hash = hash_of(tokens[i]);
    size_t at = hash & mask_;
    while (slots_[at].token >= 0) at = (at + 1) & mask_;
    slots_[at] = {hash, static_cast<int32_t>(i)};
  }
}

int32_t ByteBpe::WordTable::find(std::string_view piece, const std::vector<std::string>& tokens) const {
  const uint32_t hash = hash_of(piece);
  for (size_t at = hash & mask_; slots_[at].token >= 0; at = (at + 1) & mask_) {
    if (slots_[at].hash == hash && tokens[static_cast<size_t>(slots_[at].token)] == piece) return slots_[at].token;
  }
  return -1;
}

ByteBpe::ByteBpe(Parts parts) : parts_(std::move(parts)) {
  const auto is_special = [&](size_t i) {
    const auto special = parts_.specials.find(parts_.tokens[i]);
    return special != parts_.specials.end() && special->second == static_cast<int32_t>(i);
  };
  byte_tokens_.fill(-1);
  for (size_t i = 0; i < parts_.tokens.size(); ++i) {
    const std::string& token = parts_.tokens[i];
    if (token.size() == 1 && !is_special(i)) byte_tokens_[static_cast<uint8_t>(token[0])] = static_cast<int32_t>(i);
  }
  for (const int32_t token : byte_tokens_) ASSAY_CHECK(token >= 0, "a byte has no token");
  merge_table_.build(parts_);
  // A token's own text need not encode to it, since a merge of lower rank may take its bytes another way.
  std::vector<bool> is_word(parts_.tokens.size(), false);
  std::vector<int32_t> ids;
  for (size_t i = 0; i < parts_.tokens.size(); ++i) {
    const std::string& token = parts_.tokens[i];
    if (token.empty() || is_special(i)) continue;
    ids.clear();
    token.size() <= kShortPiece ? merge_short(token, ids) : merge_long(token, ids);
    is_word[i] = ids.size() == 1 && ids[0] == static_cast<int32_t>(i);
  }
  word_table_.build(parts_.tokens, is_word);
}

void ByteBpe::encode(std::string_view text, std::vector<int32_t>& ids) const {
  Gpt2Pieces pieces(text);
  while (const auto piece = pieces.next()) encode_piece(*piece, ids);
}

void ByteBpe::encode_piece(std::string_view piece, std::vector<int32_t>& ids) const {
  const int32_t word = word_table_.find(piece, parts_.tokens);
  if (word >= 0) {
    ids.push_back(word);
  } else if (piece.size() <= kShortPiece) {
    merge_short(piece, ids);
  } else {
    merge_long(piece, ids);
  }
}

// Round by round, as GPT-2 does: the pair of lowest rank is joined everywhere from left to right, and only then are the
// new pairs looked at.
void ByteBpe::merge_short(std::string_view piece, std::vector<int32_t>& ids) const {
  std::array<int32_t, kShortPiece> symbols;
  std::array<uint32_t, kShortPiece> ranks{};  // of symbol i with its right neighbour
  size_t size = piece.size();
  const auto rank_at = [&](int32_t left, int32_t right) {
    const Merge* merge = merge_table_.find(left, right);
    return merge ? merge->rank : kNoRank;
  };
  for (size_t i = 0; i < size; ++i) symbols[i] = byte_tokens_[static_cast<uint8_t>(piece[i])];
  for (size_t i = 0; i + 1 < size; ++i) ranks[i] = rank_at(symbols[i], symbols[i + 1]);
  while (size > 1) {
    uint32_t best = kNoRank;
    for (size_t i = 0; i + 1 < size; ++i) best = std::min(best, ranks[i]);
    if (best == kNoRank) break;
    size_t out = 0;
    bool joined = false;  // the symbol written last is new
    for (size_t i = 0; i < size; ++out) {
      const bool join = i + 1 < size && ranks[i] == best;
      const int32_t symbol = join ? parts_.products[best] : symbols[i];
      // The rank on the left changes when a neighbour is new; the rank on the right is kept until then.
      if (out > 0 && (join || joined)) ranks[out - 1] = rank_at(symbols[out - 1], symbol);
      symbols[out] = symbol;
      if (!join) ranks[out] = ranks[i];
      i += join ? 2 : 1;
      joined = join;
    }
    size = out;
  }
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(size));
}

void ByteBpe::merge_long(std::string_view piece, std::vector<int32_t>& ids) const {
  struct Symbol {
    int32_t token;  // -1: joined with the one before
    uint32_t before, after;
  };
  struct Candidate {
    uint32_t rank, place;
    int32_t left, right;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : place > other.place;  // the smallest comes first
    }
  };
  const auto size = static_cast<uint32_t>(piece.size());
  std::vector<Symbol> symbols(size);
  std::priority_queue<Candidate> queue;
  const auto consider = [&](uint32_t place) {
    const uint32_t after = symbols[place].after;
    if (after >= size) return;
    const Merge* merge = merge_table_.find(symbols[place].token, symbols[after].token);
    if (merge) queue.push({merge->rank, place, symbols[place].token, symbols[after].token});
  };
  for (uint32_t i = 0; i < size; ++i) {
    symbols[i] = {byte_tokens_[static_cast<uint8_t>(piece[i])], i == 0 ? size : i - 1, i + 1};
  }
  for (uint32_t i = 0; i < size; ++i) consider(i);
  std::vector<uint32_t> changed;
  while (!queue.empty()) {
    const uint32_t rank = queue.top().rank;
    changed.clear();
    while (!queue.empty() && queue.top().rank == rank) {
      const Candidate c = queue.top();
      queue.pop();
      Symbol& left = symbols[c.place];
      if (left.token != c.left || left.after >= size || symbols[left.after].token != c.right) continue;
      Symbol& right = symbols[left.after];
      left.token = parts_.products[rank];
      right.token = -1;
      left.after = right.after;
      if (left.after < size) symbols[left.after].before = c.place;
      changed.push_back(c.place);
    }
    for (const uint32_t place : changed) {
      if (symbols[place].token < 0) continue;
      consider(place);
      if (symbols[place].before < size) consider(symbols[place].before);
    }
  }
  for (uint32_t i = 0; i < size; i = symbols[i].after) ids.push_back(symbols[i].token);
}

std::string ByteBpe::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary_size()) {
      throw DataError(fmt::format("{} is not a token: the vocabulary has {}", id, vocabulary_size()));
    }
    text += parts_.tokens[static_cast<size_t>(id)];
  }
  return text;
}

std::optional<int32_t> ByteBpe::special(SpecialToken which) const {
  if (which != SpecialToken::End) return std::nullopt;
  const auto found = parts_.specials.find(kEndOfText);
  if (found == parts_.specials.end()) return std::nullopt;
  return found->second;
}

std::string ByteBpe::hash() const {
  Sha256 hash;
  for (const std::string& token : parts_.tokens) hash.update(fmt::format("{} ", token.size())).update(token);
  for (const auto& [left, right] : parts_.merges) hash.update(fmt::format("\n{} {}", left, right));
  return hash.hex();
}

}  // namespace assay
