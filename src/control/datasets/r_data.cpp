#include "datasets/r_data.h"

#include <fmt/format.h>

#include <bit>

#include "base/error.h"

namespace assay {

namespace {

// Numbers of R's types in a stream.
enum RType : int {
  kSymbol = 1,
  kPairList = 2,
  kString = 9,
  kLogicals = 10,
  kIntegers = 13,
  kReals = 14,
  kStrings = 16,
  kList = 19,
  kExpressions = 20,
  kRawBytes = 24,
  kAltRep = 238,
  kBaseEnvironment = 241,
  kEmptyEnvironment = 242,
  kPersistentName = 247,
  kMissingArgument = 251,
  kGlobalEnvironment = 253,
  kNull = 254,
  kReference = 255,
};

constexpr int kMaxDepth = 64;
constexpr size_t kMaxItems = 1'000'000;      // list items of one file: each is a value of its own
constexpr double kMaxSequence = 50'000'000;  // a compact sequence takes no room in the file

struct Flags {
  int type = 0;
  bool has_attributes = false;
  bool has_tag = false;
  uint32_t rest = 0;  // what stands above the type's byte
};

class RParser {
 public:
  RParser(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  RValue run() {
    if (take(2) != "X\n") fail("not R data in XDR format");
    const uint32_t version = number();
    if (version != 2 && version != 3) fail(fmt::format("version {} of R's format, only 2 and 3 are known", version));
    number();  // the R that wrote it
    number();  // the oldest R that can read it
    if (version == 3) take(number());
    RValue value = item(0);
    if (at_ != bytes_.size()) fail("bytes after the value");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: byte {}: {}", where_, at_, what));
  }

  std::string_view take(size_t count) {
    if (count > bytes_.size() - at_) fail(fmt::format("needs {} bytes, {} are left", count, bytes_.size() - at_));
    const std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }

  uint32_t number() {
    const std::string_view b = take(4);
    uint32_t value = 0;
    for (const char c : b) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }

  double real() {
    const uint64_t high = number();
    return std::bit_cast<double>(high << 32 | number());
  }

  Flags flags() {
    const uint32_t word = number();
    return {static_cast<int>(word & 0xFF), (word & 0x200) != 0, (word & 0x400) != 0, word >> 8};
  }

  // Of a vector whose elements take at least so many bytes each.
  size_t length(size_t element_bytes) {
    const uint32_t count = number();
    if (count > bytes_.size() / element_bytes || count * element_bytes > bytes_.size() - at_) {
      fail(fmt::format("a length of {}, but {} bytes are left", count, bytes_.size() - at_));
    }
    return count;
  }

  RValue item(int depth) { return item_of(flags(), depth); }

  RValue item_of(const Flags& f, int depth) {
    if (depth > kMaxDepth) fail("values inside values, too deep");
    RValue value;
    switch (f.type) {
      case kNull:
      case kMissingArgument: return value;
      case kGlobalEnvironment:
      case kBaseEnvironment:
      case kEmptyEnvironment: value.kind = RValue::Kind::Other; return value;
      case kSymbol: return named(symbol());
      case kReference: return named(reference(f));
      case kPersistentName: return persistent_name();
      case kPairList: return pair_list(f, depth);
      case kAltRep: return compact(depth);
      case kString: return named(text(f).value_or(""));
      case kLogicals:
      case kIntegers: read_integers(value); break;
      case kReals: read_reals(value); break;
      case kStrings: read_strings(value); break;
      case kList:
      case kExpressions: read_list(value, depth); break;
      case kRawBytes:
        value.kind = RValue::Kind::Other;
        take(length(1));
        break;
      default: fail(fmt::format("R type {} is not data", f.type));
    }
    if (f.has_attributes) take_attributes(value, depth);
    return value;
  }

  // Symbols and references stand for their names.
  static RValue named(std::string name) {
    RValue value;
    value.kind = RValue::Kind::Strings;
    value.strings.emplace_back(std::move(name));
    return value;
  }

  std::optional<std::string> text(const Flags& f) {
    if (f.type != kString) fail(fmt::format("type {} where a string should be", f.type));
    const uint32_t count = number();
    if (count == UINT32_MAX) return std::nullopt;  // NA
    return std::string(take(count));
  }

  std::string symbol() {
    names_.push_back(text(flags()).value_or(""));
    return names_.back();
  }

  std::string reference(const Flags& f) {
    const size_t index = f.rest != 0 ? f.rest : number();
    if (index == 0 || index > names_.size()) fail(fmt::format("a reference to value {} of {}", index, names_.size()));
    return names_[index - 1];
  }

  RValue persistent_name() {
    number();  // always 0
    const size_t count = length(4);
    std::string all;
    for (size_t i = 0; i < count; ++i) all += text(flags()).value_or("");
    names_.push_back(all);
    return named(std::move(all));
  }

  void count_items(size_t more) {
    num_items_ += more;
    if (num_items_ > kMaxItems) fail(fmt::format("more than {} items of lists", kMaxItems));
  }

  // A chain of pairs, each with a value and perhaps a name. Read in a loop: a long one must not use up the stack.
  RValue pair_list(Flags f, int depth) {
    RValue list;
    list.kind = RValue::Kind::List;
    RValue names;
    names.kind = RValue::Kind::Strings;
    while (f.type == kPairList) {
      count_items(1);
      if (f.has_attributes) item(depth + 1);
      std::optional<std::string> tag;
      if (f.has_tag) {
        const RValue name = item(depth + 1);
        if (name.strings.size() == 1) tag = name.strings[0];
      }
      list.items.push_back(item(depth + 1));
      names.strings.push_back(std::move(tag));
      f = flags();
    }
    if (f.type != kNull) item_of(f, depth + 1);
    list.attributes.emplace_back("names", std::move(names));
    return list;
  }

  void take_attributes(RValue& value, int depth) {
    RValue list = item(depth + 1);
    if (list.kind == RValue::Kind::Null) return;
    const RValue* names = list.attribute("names");
    if (list.kind != RValue::Kind::List || !names) fail("attributes that are not a list of pairs");
    for (size_t i = 0; i < list.items.size(); ++i) {
      value.attributes.emplace_back(names->strings[i].value_or(""), std::move(list.items[i]));
    }
  }

  void read_integers(RValue& value) {
    value.kind = RValue::Kind::Integers;
    const size_t count = length(4);
    value.integers.reserve(count);
    for (size_t i = 0; i < count; ++i) value.integers.push_back(static_cast<int32_t>(number()));
  }

  void read_reals(RValue& value) {
    value.kind = RValue::Kind::Reals;
    const size_t count = length(8);
    value.reals.reserve(count);
    for (size_t i = 0; i < count; ++i) value.reals.push_back(real());
  }

  void read_strings(RValue& value) {
    value.kind = RValue::Kind::Strings;
    const size_t count = length(8);
    value.strings.reserve(count);
    for (size_t i = 0; i < count; ++i) value.strings.push_back(text(flags()));
  }

  void read_list(RValue& value, int depth) {
    value.kind = RValue::Kind::List;
    const size_t count = length(4);
    count_items(count);
    for (size_t i = 0; i < count; ++i) value.items.push_back(item(depth + 1));
  }

  // R's compact forms of vectors: a sequence as three numbers, or a vector with notes about it.
  RValue compact(int depth) {
    const RValue info = item(depth + 1);
    RValue state = item(depth + 1);
    const bool has_class = !info.items.empty() && info.items[0].strings.size() == 1;
    const std::string form = has_class ? info.items[0].strings[0].value_or("") : "";
    RValue value;
    if (form == "compact_intseq" || form == "compact_realseq") {
      value = sequence(state, form == "compact_intseq");
    } else if (form.starts_with("wrap_") && !state.items.empty()) {
      value = std::move(state.items[0]);
    } else {
      fail(fmt::format("compact form '{}' of R is not known", form));
    }
    take_attributes(value, depth);
    return value;
  }

  RValue sequence(const RValue& state, bool integers) {
    if (state.reals.size() != 3) fail("a sequence is not three numbers");
    const double count = state.reals[0];
    if (!(count >= 0 && count <= kMaxSequence)) fail(fmt::format("a sequence of {} numbers", count));
    RValue value;
    value.kind = integers ? RValue::Kind::Integers : RValue::Kind::Reals;
    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
      const double element = state.reals[1] + static_cast<double>(i) * state.reals[2];
      if (!integers) {
        value.reals.push_back(element);
      } else if (element > INT32_MIN && element <= INT32_MAX) {
        value.integers.push_back(static_cast<int32_t>(element));
      } else {
        fail("a sequence beyond R's integers");
      }
    }
    return value;
  }

  std::string_view bytes_;
  const std::string& where_;
  size_t at_ = 0;
  size_t num_items_ = 0;
  std::vector<std::string> names_;  // what references refer to
};

}  // namespace

const RValue* RValue::attribute(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

const RValue* RValue::item(std::string_view name) const {
  const RValue* names = attribute("names");
  if (!names) return nullptr;
  for (size_t i = 0; i < items.size() && i < names->strings.size(); ++i) {
    if (names->strings[i] == name) return &items[i];
  }
  return nullptr;
}

RValue parse_r_data(std::string_view bytes, const std::string& where) { return RParser(bytes, where).run(); }

}  // namespace assay
