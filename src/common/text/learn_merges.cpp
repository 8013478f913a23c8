#include "text/learn_merges.h"

#include <queue>
#include <unordered_map>

namespace assay {

namespace {

constexpr int64_t kMergesPerReport = 256;

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

struct Pair {
  int64_t count = 0;
  std::vector<uint32_t> words;  // in which it occurs or did occur
};

struct Candidate {
  int64_t count;
  uint64_t key;
  bool operator<(const Candidate& other) const { return count != other.count ? count < other.count : key > other.key; }
};

class Counts {
 public:
  explicit Counts(std::vector<CountedWord> words) : words_(std::move(words)) {
    for (uint32_t i = 0; i < words_.size(); ++i) add(i, 1, nullptr);
    for (const auto& [key, pair] : pairs_) queue_.push({pair.count, key});
  }

  // The most frequent pair; count 0 when none is left.
  Candidate take_best() {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(best.key);
      const int64_t count = found == pairs_.end() ? 0 : found->second.count;
      if (count == best.count && count > 0) return best;
      if (count > 0) queue_.push({count, best.key});
    }
    return {0, 0};
  }

  void merge(uint64_t key, int32_t piece) {
    const auto left = static_cast<int32_t>(key >> 32), right = static_cast<int32_t>(key & 0xffffffff);
    const std::vector<uint32_t> words = std::move(pairs_.at(key).words);
    std::vector<uint64_t> raised;
    for (const uint32_t word : words) {
      std::vector<int32_t>& symbols = words_[word].symbols;
      if (!holds(symbols, left, right)) continue;
      add(word, -1, nullptr);
      size_t out = 0;
      for (size_t i = 0; i < symbols.size(); ++i) {
        const bool here = i + 1 < symbols.size() && symbols[i] == left && symbols[i + 1] == right;
        symbols[out++] = here ? piece : symbols[i];
        if (here) ++i;
      }
      symbols.resize(out);
      add(word, 1, &raised);
    }
    pairs_.erase(key);
    for (const uint64_t changed : raised) {
      const auto found = pairs_.find(changed);
      if (found != pairs_.end() && found->second.count > 0) queue_.push({found->second.count, changed});
    }
  }

 private:
  static bool holds(const std::vector<int32_t>& symbols, int32_t left, int32_t right) {
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      if (symbols[i] == left && symbols[i + 1] == right) return true;
    }
    return false;
  }

  // Adds a word's pairs to the counts or takes them away. `fresh` gets those that were not counted before.
  void add(uint32_t word, int64_t sign, std::vector<uint64_t>* fresh) {
    const CountedWord& w = words_[word];
    for (size_t i = 0; i + 1 < w.symbols.size(); ++i) {
      const uint64_t key = key_of(w.symbols[i], w.symbols[i + 1]);
      Pair& pair = pairs_[key];
      pair.count += sign * w.count;
      if (sign < 0) continue;
      const bool known = !pair.words.empty() && pair.words.back() == word;
      if (!known) pair.words.push_back(word);
      if (!known && fresh) fresh->push_back(key);
    }
  }

  std::vector<CountedWord> words_;
  std::unordered_map<uint64_t, Pair> pairs_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

std::vector<std::pair<int32_t, int32_t>> MergeLearner::learn(std::vector<CountedWord> words,
                                                             std::vector<std::string>& pieces) const {
  std::vector<std::pair<int32_t, int32_t>> merges;
  std::unordered_map<std::string, int32_t> numbers;
  for (size_t i = 0; i < pieces.size(); ++i) numbers.emplace(pieces[i], static_cast<int32_t>(i));
  Counts counts(std::move(words));
  const auto first = static_cast<int64_t>(pieces.size());
  while (static_cast<int64_t>(pieces.size()) < max_pieces) {
    const Candidate best = counts.take_best();
    if (best.count < std::max<int64_t>(1, min_count)) break;
    const auto left = static_cast<int32_t>(best.key >> 32), right = static_cast<int32_t>(best.key & 0xffffffff);
    std::string text = join(pieces[static_cast<size_t>(left)], pieces[static_cast<size_t>(right)]);
    const auto [known, is_new] = numbers.emplace(text, static_cast<int32_t>(pieces.size()));
    if (is_new) pieces.push_back(std::move(text));
    counts.merge(best.key, known->second);
    merges.emplace_back(left, right);
    const auto done = static_cast<int64_t>(pieces.size()) - first;
    if (progress && done % kMergesPerReport == 0) progress(done, max_pieces - first);
  }
  return merges;
}

}  // namespace assay
