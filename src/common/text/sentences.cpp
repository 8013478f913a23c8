#include "text/sentences.h"

#include "base/text.h"

namespace assay {

namespace {

// The length of what ends a sentence at text[at]; 0 for nothing.
size_t end_mark(std::string_view text, size_t at) {
  for (const std::string_view wide : {"。", "！", "？"}) {
    if (text.substr(at, wide.size()) == wide) return wide.size();
  }
  if (text[at] != '.' && text[at] != '!' && text[at] != '?') return 0;
  size_t end = at + 1;
  while (end < text.size() && std::string_view(".!?\"')]").find(text[end]) != std::string_view::npos) ++end;
  return end == text.size() || text[end] == ' ' || text[end] == '\t' || text[end] == '\r' ? end - at : 0;
}

}  // namespace

std::vector<std::string_view> sentences_of(std::string_view text) {
  std::vector<std::string_view> sentences;
  size_t begin = 0;
  const auto end_at = [&](size_t end) {
    const std::string_view sentence = trim(text.substr(begin, end - begin));
    if (!sentence.empty()) sentences.push_back(sentence);
    begin = end;
  };
  for (size_t at = 0; at < text.size();) {
    const size_t mark = text[at] == '\n' ? 1 : end_mark(text, at);
    at += mark > 0 ? mark : 1;
    if (mark > 0) end_at(at);
  }
  end_at(text.size());
  return sentences;
}

}  // namespace assay
