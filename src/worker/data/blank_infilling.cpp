#include "data/blank_infilling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace assay {

namespace {

constexpr int64_t kNoLabel = -100;  // what the loss skips

double unit_of(KeyedRandom& random) { return static_cast<double>(random.next() >> 11) * 0x1p-53; }  // 0 .. below 1

// Knuth's way: as many numbers as their product stays above exp(-mean).
int64_t draw_poisson(double mean, KeyedRandom& random) {
  const double limit = std::exp(-mean);
  int64_t count = 0;
  for (double product = unit_of(random); product > limit; product *= unit_of(random)) ++count;
  return count;
}

// `count` of the numbers 0 .. bound-1, none twice, in order.
std::vector<int64_t> draw_places(int64_t count, int64_t bound, KeyedRandom& random) {
  std::vector<int64_t> places(static_cast<size_t>(bound));
  std::iota(places.begin(), places.end(), 0);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    std::swap(places[i], places[i + random.below(places.size() - i)]);
  }
  places.resize(static_cast<size_t>(count));
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

BlankInfilling::BlankInfilling(const Options& options)
    : options_(options), blanks_(options.vocab_size), source_(options.source) {
  const int64_t length = options.source.index.sequence_length;
  if (options.max_seq_len < length + 2) {
    throw ConfigError(fmt::format("max_seq_len {}: must be at least source_seq_len + 2 = {}, to hold a blank",
                                  options.max_seq_len, length + 2));
  }
  options_.max_mask_ratio = std::max(options.mask_ratio, options.max_mask_ratio);
}

KeyedRandom BlankInfilling::random_of(int64_t sample, int64_t epoch) const {
  return {options_.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(sample)};
}

BlankInfilling::Span BlankInfilling::draw_long_span(KeyedRandom& random) const {
  const int64_t length = options_.source.index.sequence_length;
  const double ratio = options_.long_span_ratio + (1 - options_.long_span_ratio) * unit_of(random);
  const auto cut = std::clamp<int64_t>(std::llround(ratio * static_cast<double>(length)), 1, length - 1);
  return {length - cut, cut};
}

// Lengths first; then each span comes behind another token of those that stay, so that no two touch and the first token
// stays.
std::vector<BlankInfilling::Span> BlankInfilling::draw_spans(KeyedRandom& random) const {
  if (options_.long_span_prob > 0 && unit_of(random) < options_.long_span_prob) return {draw_long_span(random)};
  const int64_t length = options_.source.index.sequence_length;
  const double ratio = options_.mask_ratio + (options_.max_mask_ratio - options_.mask_ratio) * unit_of(random);
  const auto wanted = std::clamp<int64_t>(std::llround(ratio * static_cast<double>(length)), 1, length - 1);
  const auto room = static_cast<size_t>((options_.max_seq_len - length) / 2);  // a span needs a blank and a start
  std::vector<Span> spans;
  int64_t num_cut = 0;
  while (num_cut < wanted && spans.size() < room) {
    const int64_t drawn = std::max<int64_t>(1, draw_poisson(options_.mean_span, random));
    const int64_t now = std::min(drawn, wanted - num_cut);
    if (length - num_cut - now < static_cast<int64_t>(spans.size()) + 1) break;  // a token that stays, for each
    spans.push_back({0, now});
    num_cut += now;
  }
  const std::vector<int64_t> behind = draw_places(static_cast<int64_t>(spans.size()), length - num_cut, random);
  int64_t cut_before = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    spans[i].begin = behind[i] + 1 + cut_before;
    cut_before += spans[i].length;
  }
  return spans;
}

std::vector<BlankInfilling::Span> BlankInfilling::spans_of(int64_t sample, int64_t epoch) const {
  KeyedRandom random = random_of(sample, epoch);
  return draw_spans(random);
}

int64_t BlankInfilling::write_row(const int64_t* stretch, KeyedRandom& random, const Row& row) const {
  const std::vector<Span> spans = draw_spans(random);
  std::vector<int64_t> blank_at;  // where the text has a span's blank
  int64_t n = 0;
  const auto put = [&](int64_t token, int64_t position, int64_t span_position) {
    row.tokens[n] = token;
    row.positions[n] = position;
    row.span_positions[n] = span_position;
    ++n;
  };
  int64_t next = 0;
  for (const Span& span : spans) {
    for (; next < span.begin; ++next) put(stretch[next], n, 0);
    blank_at.push_back(n);
    put(blanks_.mask, n, 0);
    next += span.length;
  }
  for (; next < options_.source.index.sequence_length; ++next) put(stretch[next], n, 0);
  const int64_t text = n;

  std::vector<size_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = 0; i + 1 < order.size(); ++i) std::swap(order[i], order[i + random.below(order.size() - i)]);
  for (const size_t i : order) {
    const int64_t* tokens = stretch + spans[i].begin;
    for (int64_t k = 0; k <= spans[i].length; ++k) {
      row.labels[n] = k < spans[i].length ? tokens[k] : blanks_.end;
      put(k == 0 ? blanks_.start : tokens[k - 1], blank_at[i], k + 1);
    }
  }
  return text;
}

Batch BlankInfilling::gather_left_to_right(const torch::Tensor& stretches, std::span<const int64_t> indices,
                                           int64_t epoch) const {
  torch::Tensor labels = torch::full_like(stretches, kNoLabel);
  const int64_t length = stretches.size(1);
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t* from = stretches.data_ptr<int64_t>() + static_cast<int64_t>(i) * length;
    int64_t* to = labels.data_ptr<int64_t>() + static_cast<int64_t>(i) * length;
    for (const Span& span : spans_of(indices[i], epoch)) {
      std::copy_n(from + span.begin, span.length, to + span.begin - 1);
    }
  }
  return {{stretches, labels}, stretches.size(0)};
}

Batch BlankInfilling::gather(std::span<const int64_t> indices, int64_t epoch) const {
  const torch::Tensor stretches = source_.gather(indices, epoch).tensors[0];
  if (options_.left_to_right) return gather_left_to_right(stretches, indices, epoch);
  const auto count = static_cast<int64_t>(indices.size());
  const int64_t length = options_.max_seq_len;
  torch::Tensor tokens = torch::zeros({count, length}, torch::kLong);  // behind the last span: token 0, never looked at
  torch::Tensor positions = torch::zeros({count, 2, length}, torch::kLong);
  torch::Tensor text = torch::empty({count}, torch::kLong);
  torch::Tensor labels = torch::full({count, length}, kNoLabel, torch::kLong);
  for (int64_t i = 0; i < count; ++i) {
    KeyedRandom random = random_of(indices[static_cast<size_t>(i)], epoch);
    int64_t* both = positions.data_ptr<int64_t>() + 2 * i * length;
    const Row row{.tokens = tokens.data_ptr<int64_t>() + i * length,
                  .positions = both,
                  .span_positions = both + length,
                  .labels = labels.data_ptr<int64_t>() + i * length};
    text.data_ptr<int64_t>()[i] = write_row(stretches.data_ptr<int64_t>() + i * stretches.size(1), random, row);
  }
  return {{tokens, positions, text, labels}, count};
}

}  // namespace assay
