#include "formats/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace assay {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
constexpr size_t kMaxNpyHeader = 65536;
constexpr size_t kMaxRank = 8;

[[noreturn]] void bad_npy(const std::string& where, const std::string& what) {
  throw DataError(fmt::format("{}: not a usable .npy array: {}", where, what));
}

// The header is a Python dictionary with three keys; this reads no other.
class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  void parse(NpyHeader& header) {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        header.dtype = quoted();
        descr = true;
      } else if (key == "fortran_order" && !order) {
        if (!accept_word("False")) bad_npy(where_, "the items are in Fortran order, C order is needed");
        order = true;
      } else if (key == "shape" && !shape) {
        header.shape = tuple();
        shape = true;
      } else {
        bad_npy(where_, fmt::format("unexpected key '{}' in the header", valid_utf8(key)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size()) bad_npy(where_, "text after the header's last brace");
    if (!descr || !order || !shape) bad_npy(where_, "the header lacks descr, fortran_order or shape");
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char wanted) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) bad_npy(where_, fmt::format("the header has no '{}' at character {}", wanted, at_));
  }
  bool accept_word(std::string_view word) {
    skip_blanks();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::string quoted() {
    expect('\'');
    const size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) bad_npy(where_, "a text in the header does not end");
    const std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> extents;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      const size_t end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
      const auto value = parse_int(text_.substr(at_, end - at_));
      if (!value || extents.size() == kMaxRank) bad_npy(where_, "its shape is no tuple of a few numbers");
      extents.push_back(*value);
      at_ = end;
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
};

size_t item_size_of(const std::string& dtype, const std::string& where) {
  static const std::vector<std::string> kKnown = {"|u1", "|i1", "|b1", "<u2", "<i2", "<u4",
                                                  "<i4", "<u8", "<i8", "<f2", "<f4", "<f8"};
  if (std::find(kKnown.begin(), kKnown.end(), dtype) == kKnown.end()) {
    bad_npy(where, fmt::format("items of type '{}'; known are {}", valid_utf8(dtype), join(kKnown, " ")));
  }
  return static_cast<size_t>(dtype[2] - '0');
}

}  // namespace

NpyHeader parse_npy(std::string_view file, const std::string& where) {
  if (file.substr(0, kMagic.size()) != kMagic) bad_npy(where, "it does not begin as one");
  if (file.size() < 12) bad_npy(where, "it ends inside the header");
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<uint8_t>(file[at])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3) bad_npy(where, fmt::format("version {} of the format", version));
  const size_t prefix = version == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kMaxNpyHeader || length > file.size() - prefix) bad_npy(where, "it ends inside the header");
  NpyHeader header;
  HeaderText(file.substr(prefix, length), where).parse(header);
  header.data_offset = prefix + length;
  header.item_size = item_size_of(header.dtype, where);
  header.num_items = 1;
  const size_t room = file.size() - header.data_offset;
  for (const int64_t extent : header.shape) {
    if (extent > 0 && header.num_items > SIZE_MAX / static_cast<size_t>(extent)) bad_npy(where, "an impossible shape");
    header.num_items *= static_cast<size_t>(extent);
  }
  if (header.num_items > SIZE_MAX / header.item_size || header.num_items * header.item_size != room) {
    bad_npy(where, fmt::format("its shape needs {} items of {} bytes, but {} bytes follow the header", header.num_items,
                               header.item_size, room));
  }
  if (header.data_offset % header.item_size != 0) bad_npy(where, "its items are not aligned");
  return header;
}

std::string npy_header(const std::string& dtype, const std::vector<int64_t>& shape, size_t min_size) {
  std::vector<std::string> numbers;
  for (const int64_t extent : shape) numbers.push_back(std::to_string(extent));
  const std::string extents = join(numbers, ", ") + (shape.size() == 1 ? "," : "");  // (), (3,), (3, 2)
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", dtype, extents);
  const size_t prefix = kMagic.size() + 4;
  size_t total = std::max(prefix + text.size() + 1, min_size);
  total = (total + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(total - prefix - 1, ' ');
  text += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(text.size() & 0xff);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

NpyFile::NpyFile(const std::filesystem::path& path) : file_(path), header_(parse_npy(file_.bytes(), path.string())) {}

namespace {

template <typename T>
std::vector<int64_t> widened(const NpyArray& array) {
  std::vector<int64_t> values(array.header.num_items);
  const char* data = array.file.data() + array.header.data_offset;
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    values[i] = static_cast<int64_t>(value);
  }
  return values;
}

}  // namespace

std::vector<int64_t> NpyArray::integers(const std::string& where) const {
  if (header.dtype == "|u1") return widened<uint8_t>(*this);
  if (header.dtype == "|i1") return widened<int8_t>(*this);
  if (header.dtype == "<u2") return widened<uint16_t>(*this);
  if (header.dtype == "<i2") return widened<int16_t>(*this);
  if (header.dtype == "<u4") return widened<uint32_t>(*this);
  if (header.dtype == "<i4") return widened<int32_t>(*this);
  if (header.dtype == "<i8") return widened<int64_t>(*this);
  if (header.dtype == "<u8") {
    std::vector<int64_t> values = widened<uint64_t>(*this);
    if (std::any_of(values.begin(), values.end(), [](int64_t v) { return v < 0; }))
      bad_npy(where, "a number too large");
    return values;
  }
  bad_npy(where, fmt::format("items of type '{}' where integers are needed", header.dtype));
}

}  // namespace assay
