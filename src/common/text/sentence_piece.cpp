#include "text/sentence_piece.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "text/unicode.h"

namespace assay {

namespace {

constexpr std::string_view kBlankSign = "\xe2\x96\x81";      // U+2581, how SentencePiece writes a blank
constexpr std::string_view kUnknownText = " \xe2\x81\x87 ";  // what SentencePiece itself shows for it
constexpr const char* kSpecialTokens = "[CLS],[SEP],[MASK]";
constexpr size_t kMaxLine = 4000;  // bytes; SentencePiece leaves out longer ones

const SentencePieceApi& open_library() {
  static const SentencePieceApi* const api = [] {
    const fs::path path = program_folder() / kSentencePieceLibrary;
    int mode = RTLD_NOW | RTLD_LOCAL;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    mode |= RTLD_DEEPBIND;  // its own protobuf before libtorch's; sanitizers cannot do without their interception
#endif
    void* library = ::dlopen(path.c_str(), mode);
    if (!library) {
      throw InfrastructureError(
          fmt::format("{}: cannot load: {}. SentencePiece comes with the Debian package "
                      "libsentencepiece0; script/bootstrap installs it",
                      path.string(), ::dlerror()));
    }
    const auto entry = reinterpret_cast<SentencePieceEntry>(::dlsym(library, kSentencePieceEntry));
    if (!entry) throw InfrastructureError(fmt::format("{}: not the library of this program", path.string()));
    return entry();
  }();
  return *api;
}

void take_text(void* context, const char* text, size_t size) { static_cast<std::string*>(context)->assign(text, size); }

std::string with_blanks(std::string_view piece) {
  std::string text;
  while (!piece.empty()) {
    const bool blank = piece.starts_with(kBlankSign);
    text += blank ? ' ' : piece[0];
    piece.remove_prefix(blank ? kBlankSign.size() : 1);
  }
  return text;
}

// "<0x0A>" is byte 10.
std::optional<uint8_t> byte_of(const std::string& piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  if (digit(piece[3]) < 0 || digit(piece[4]) < 0) return std::nullopt;
  return static_cast<uint8_t>(16 * digit(piece[3]) + digit(piece[4]));
}

}  // namespace

SentencePiece::SentencePiece(std::string model, const std::string& where)
    : api_(open_library()), bytes_(std::move(model)) {
  std::string reason;
  model_ = api_.load(bytes_.data(), bytes_.size(), &reason, take_text);
  if (!model_) throw DataError(fmt::format("{}: not a usable SentencePiece model: {}", where, valid_utf8(reason)));
  byte_pieces_.fill(-1);
  for (int id = 0, count = api_.num_pieces(model_); id < count; ++id) {
    Piece piece;
    piece.kind = api_.piece(model_, id, &piece.text, take_text);
    if (piece.kind == SentencePieceKind::Control || piece.kind == SentencePieceKind::Unknown) {
      specials_.emplace(piece.text, id);
    } else if (piece.kind == SentencePieceKind::Byte) {
      const auto byte = byte_of(piece.text);
      if (byte) byte_pieces_[*byte] = id;
      piece.text = byte ? std::string(1, static_cast<char>(*byte)) : "";
    } else {
      piece.text = with_blanks(piece.text);
    }
    pieces_.push_back(std::move(piece));
  }
  has_bytes_ = std::find(byte_pieces_.begin(), byte_pieces_.end(), -1) == byte_pieces_.end();
  std::vector<int32_t> ids;
  encode_valid("a", ids);
  begins_blank_ = !ids.empty() && pieces_[static_cast<size_t>(ids[0])].text.starts_with(' ');
}

SentencePiece::~SentencePiece() {
  if (model_) api_.release(model_);
}

std::unique_ptr<SentencePiece> SentencePiece::load(const fs::path& path) {
  return std::make_unique<SentencePiece>(read_file(path), path.string());
}

void SentencePiece::encode_valid(std::string_view text, std::vector<int32_t>& ids) const {
  if (text.empty()) return;
  struct Result {
    std::vector<int32_t>& ids;
    std::string reason;
  } result{ids, ""};
  const auto take = [](void* context, const int* found, size_t count) {
    auto& to = static_cast<Result*>(context)->ids;
    to.insert(to.end(), found, found + count);
  };
  const auto fail = [](void* context, const char* reason, size_t size) {
    static_cast<Result*>(context)->reason.assign(reason, size);
  };
  if (!api_.encode(model_, text.data(), text.size(), &result, take, fail)) {
    throw DataError(fmt::format("SentencePiece cannot encode a text: {}", valid_utf8(result.reason)));
  }
}

void SentencePiece::encode(std::string_view text, std::vector<int32_t>& ids) const {
  if (!has_bytes_) return encode_valid(text, ids);
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const bool odd = c.value == kNoCodePoint || c.value == 0 || c.value == 0x2581;
    if (odd) {
      encode_valid(text.substr(begin, at - begin), ids);
      for (uint32_t i = 0; i < c.num_bytes; ++i) ids.push_back(byte_pieces_[static_cast<uint8_t>(text[at + i])]);
      begin = at + c.num_bytes;
    }
    at += c.num_bytes;
  }
  encode_valid(text.substr(begin), ids);
}

std::string SentencePiece::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary_size()) {
      throw DataError(fmt::format("{} is not a token: the vocabulary has {}", id, vocabulary_size()));
    }
    const Piece& piece = pieces_[static_cast<size_t>(id)];
    if (piece.kind == SentencePieceKind::Control) continue;
    text += piece.kind == SentencePieceKind::Unknown ? std::string(kUnknownText) : piece.text;
  }
  if (begins_blank_ && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::optional<int32_t> SentencePiece::special(SpecialToken which) const {
  const auto named = [&](std::initializer_list<const char*> names, int id = -1) -> std::optional<int32_t> {
    for (const char* name : names) {
      if (const auto found = specials_.find(name); found != specials_.end()) return found->second;
    }
    if (id < 0 || id >= vocabulary_size()) return std::nullopt;
    return id;
  };
  switch (which) {
    case SpecialToken::Unknown: return named({"<unk>", "[UNK]"});
    case SpecialToken::Padding: return named({}, api_.padding_id(model_));
    case SpecialToken::Class: return named({"[CLS]"}, api_.begin_id(model_));
    case SpecialToken::Separator: return named({"[SEP]"}, api_.end_id(model_));
    case SpecialToken::Mask: return named({"[MASK]", "<mask>"});
    case SpecialToken::End: return named({}, api_.end_id(model_));
  }
  return std::nullopt;
}

void SentencePiece::save(const fs::path& folder) const {
  make_folder(folder);
  write_file_atomic(folder / "tokenizer.model", bytes_);
}

std::string SentencePiece::hash() const { return sha256(bytes_); }

void SentencePieceTrainer::add(std::string_view document) {
  for (const std::string& whole : split(document, '\n')) {
    for (std::string_view line = whole; !line.empty();) {
      size_t cut = std::min(line.size(), kMaxLine);
      if (cut < line.size()) {
        const size_t blank = line.rfind(' ', cut);
        if (blank != std::string_view::npos && blank > 0) cut = blank;
        while (cut > 1 && (static_cast<uint8_t>(line[cut]) & 0xc0) == 0x80) --cut;  // not inside a character
      }
      lines_.emplace_back(line.substr(0, cut));
      line.remove_prefix(cut);
    }
  }
}

std::unique_ptr<SentencePiece> SentencePieceTrainer::train(int32_t vocabulary_size,
                                                           const TextProgress& progress) const {
  struct Work {
    const std::vector<std::string>& lines;
    const TextProgress& progress;
    size_t at = 0;
    std::exception_ptr stopped = nullptr;
    std::string model = {}, reason = {};
  } work{lines_, progress};
  const auto next = [](void* context, const char** text, size_t* size) {
    auto& w = *static_cast<Work*>(context);
    if (w.at == w.lines.size()) return false;
    try {  // no exception may pass through the library
      if (w.progress && w.at % 1024 == 0) w.progress(static_cast<int64_t>(w.at), static_cast<int64_t>(w.lines.size()));
    } catch (...) {
      w.stopped = std::current_exception();
      return false;
    }
    *text = w.lines[w.at].data();
    *size = w.lines[w.at++].size();
    return true;
  };
  const auto take = [](void* context, const char* text, size_t size) {
    static_cast<Work*>(context)->model.assign(text, size);
  };
  const auto fail = [](void* context, const char* text, size_t size) {
    static_cast<Work*>(context)->reason.assign(text, size);
  };
  if (lines_.empty()) throw InvalidError("no text to learn from");
  const bool done = open_library().train(vocabulary_size, kSpecialTokens, &work, next, take, fail);
  if (work.stopped) std::rethrow_exception(work.stopped);
  if (!done) {
    throw UsageError(fmt::format("SentencePiece cannot learn a vocabulary of {} from these texts: {}", vocabulary_size,
                                 valid_utf8(work.reason)));
  }
  return std::make_unique<SentencePiece>(std::move(work.model), "the trained model");
}

}  // namespace assay
