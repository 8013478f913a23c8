#include "parallel/exchange.h"

#include <algorithm>

namespace assay {

std::vector<std::string> gather_texts(comm::Communicator& group, const std::string& mine) {
  const auto size = static_cast<size_t>(group.size());
  std::vector<int64_t> lengths(size);
  const auto length = static_cast<int64_t>(mine.size());
  group.all_gather(&length, lengths.data(), 1, comm::DType::I64);
  const int64_t longest = std::max<int64_t>(*std::max_element(lengths.begin(), lengths.end()), 1);
  std::string padded = mine, all(size * static_cast<size_t>(longest), '\0');
  padded.resize(static_cast<size_t>(longest));
  group.all_gather(padded.data(), all.data(), longest, comm::DType::U8);
  std::vector<std::string> texts;
  for (size_t i = 0; i < size; ++i) {
    texts.push_back(all.substr(i * static_cast<size_t>(longest), static_cast<size_t>(lengths[i])));
  }
  return texts;
}

void broadcast_text(comm::Communicator& group, std::string& text) {
  auto size = static_cast<int64_t>(text.size());
  group.broadcast(&size, 1, comm::DType::I64, 0);
  text.resize(static_cast<size_t>(size));
  if (size > 0) group.broadcast(text.data(), size, comm::DType::U8, 0);
}

}  // namespace assay
