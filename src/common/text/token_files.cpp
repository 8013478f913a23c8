#include "text/token_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace assay {

namespace {

constexpr size_t kHeaderSize = 128;  // room for any count
constexpr size_t kBufferSize = size_t{1} << 20;
constexpr int32_t kNarrowBelow = 65536;

}  // namespace

TokenWriter::TokenWriter(const fs::path& prefix, int32_t vocabulary_size)
    : paths_(prefix), vocabulary_size_(vocabulary_size), narrow_(vocabulary_size < kNarrowBelow) {
  if (prefix.has_parent_path()) make_folder(prefix.parent_path());
  temporary_ = fmt::format("{}.{}.tmp", paths_.ids.string(), ::getpid());
  file_ = FileDescriptor(::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file_)
    throw InfrastructureError(fmt::format("{}: cannot create: {}", paths_.ids.string(), std::strerror(errno)));
  buffer_.assign(kHeaderSize, ' ');
}

TokenWriter::~TokenWriter() {
  if (!finished_) ::unlink(temporary_.c_str());
}

void TokenWriter::flush() {
  write_all(file_.get(), buffer_, paths_.ids);
  buffer_.clear();
}

void TokenWriter::add(std::span<const int32_t> tokens, int64_t num_bytes) {
  if (tokens.empty()) return;
  for (const int32_t token : tokens) {
    ASSAY_CHECK(token >= 0 && token < vocabulary_size_, fmt::format("token {} of {}", token, vocabulary_size_));
    const auto small = static_cast<uint16_t>(token);
    narrow_ ? buffer_.append(reinterpret_cast<const char*>(&small), sizeof(small))
            : buffer_.append(reinterpret_cast<const char*>(&token), sizeof(token));
  }
  if (tokens.size() > INT32_MAX) throw DataError("a document of more than 2,147,483,647 tokens");
  lens_.push_back(static_cast<int32_t>(tokens.size()));
  bytes_.push_back(num_bytes);
  num_tokens_ += static_cast<int64_t>(tokens.size());
  if (buffer_.size() >= kBufferSize) flush();
}

void TokenWriter::finish() {
  if (lens_.empty()) throw InvalidError(fmt::format("{}: no document has any token", paths_.ids.string()));
  flush();
  const std::string header = npy_header(narrow_ ? "<u2" : "<i4", {num_tokens_}, kHeaderSize);
  ASSAY_CHECK(header.size() == kHeaderSize, "the header's room does not fit");
  if (::pwrite(file_.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()) ||
      (::fsync(file_.get()) != 0 && errno != EINVAL)) {
    throw InfrastructureError(fmt::format("{}: cannot write: {}", paths_.ids.string(), std::strerror(errno)));
  }
  // The index goes first and comes last: whoever sees one sees the tokens that belong to it.
  std::error_code ignored;
  fs::remove(paths_.index, ignored);
  if (::rename(temporary_.c_str(), paths_.ids.c_str()) != 0) {
    throw InfrastructureError(fmt::format("{}: cannot replace: {}", paths_.ids.string(), std::strerror(errno)));
  }
  finished_ = true;
  std::vector<int64_t> docs(lens_.size() + 1);
  for (size_t i = 0; i < docs.size(); ++i) docs[i] = static_cast<int64_t>(i);
  write_npz_atomic(paths_.index, {npz_item("lens", lens_), npz_item("docs", docs), npz_item("bytes", bytes_)});
}

TokenFile::TokenFile(const fs::path& prefix) : paths_(prefix), ids_(paths_.ids) {
  const NpyHeader& header = ids_.header();
  narrow_ = header.dtype == "<u2";
  if (!narrow_ && header.dtype != "<i4") {
    throw DataError(fmt::format("{}: tokens of type '{}'; <u2 (uint16) and <i4 (int32) are known", paths_.ids.string(),
                                header.dtype));
  }
  if (header.shape.size() != 1) {
    throw DataError(fmt::format("{}: has {} dimensions, tokens have 1", paths_.ids.string(), header.shape.size()));
  }
  const std::string where = paths_.index.string();
  const NpzFile index(paths_.index);
  const std::vector<int64_t> lens = index.read("lens").integers(where);
  begins_.push_back(0);
  for (size_t i = 0; i < lens.size(); ++i) {
    if (lens[i] < 0 || lens[i] > num_tokens() - begins_.back()) {
      throw DataError(
          fmt::format("{}: document {} has {} tokens and ends beyond the {} of {}: the files do not belong "
                      "together",
                      where, i, lens[i], num_tokens(), paths_.ids.string()));
    }
    begins_.push_back(begins_.back() + lens[i]);
  }
  if (begins_.back() != num_tokens()) {
    throw DataError(fmt::format("{}: its documents have {} tokens, {} has {}: the files do not belong together", where,
                                begins_.back(), paths_.ids.string(), num_tokens()));
  }
  if (index.has("docs")) {
    const std::vector<int64_t> docs = index.read("docs").integers(where);
    const bool ordered = !docs.empty() && docs.front() == 0 && std::is_sorted(docs.begin(), docs.end());
    if (!ordered || docs.back() > static_cast<int64_t>(lens.size())) {
      throw DataError(fmt::format("{}: `docs` are not the beginnings of documents in `lens`", where));
    }
  }
  if (index.has("bytes")) {
    num_bytes_ = index.read("bytes").integers(where);
    if (num_bytes_->size() != lens.size()) {
      throw DataError(
          fmt::format("{}: `bytes` and `lens` are of {} and {} documents", where, num_bytes_->size(), lens.size()));
    }
  }
  documents_hash_ = Sha256().update(lens.data(), lens.size() * sizeof(int64_t)).hex();
}

void TokenFile::copy(int64_t begin, int64_t count, int64_t* out) const {
  ASSAY_CHECK(begin >= 0 && count >= 0 && count <= num_tokens() - begin, "tokens beyond the end");
  if (narrow_) {
    const auto from = ids_.items<uint16_t>().subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
    std::copy(from.begin(), from.end(), out);
  } else {
    const auto from = ids_.items<int32_t>().subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
    std::copy(from.begin(), from.end(), out);
  }
}

int64_t TokenFile::max_token() const {
  const auto largest = [](auto items) -> int64_t {
    return items.empty() ? -1 : static_cast<int64_t>(*std::max_element(items.begin(), items.end()));
  };
  return narrow_ ? largest(ids_.items<uint16_t>()) : largest(ids_.items<int32_t>());
}

}  // namespace assay
