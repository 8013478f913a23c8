#include "text/vocabulary_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace assay {

namespace {

// Reads the object as it is parsed: a Json value with 50,000 keys in the order written takes seconds to build.
class FlatObject final : public nlohmann::json_sax<nlohmann::json> {
 public:
  FlatObject(const fs::path& path, std::string_view text) : path_(path), text_(text) {}
  std::vector<std::string> take() {
    if (!began_) fail("it is not an object of tokens and numbers");
    if (tokens_.empty()) fail("it has no tokens");
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (i >= seen_.size() || !seen_[i]) {
        fail(fmt::format("it has {} tokens, but none of number {}: numbers go from 0 without gaps", tokens_.size(), i));
      }
    }
    std::vector<std::string> ordered(tokens_.size());
    for (auto& [number, token] : tokens_) ordered[number] = std::move(token);
    return ordered;
  }

  bool start_object(size_t) override {
    if (began_) return wrong();
    began_ = true;
    return true;
  }
  bool key(std::string& token) override {
    token_ = std::move(token);
    return true;
  }
  bool number_unsigned(uint64_t number) override {
    if (!began_) return wrong();
    if (number >= kMaxTokens) fail(fmt::format("token '{}' has number {}, above {}", token_, number, kMaxTokens));
    // Numbers have no gaps, so one far beyond the tokens read is wrong; the room grows with the file, not the number.
    if (number >= text_.size())
      fail(fmt::format("token '{}' has number {}, above any count of tokens", token_, number));
    if (number >= seen_.size()) seen_.resize(number + 1, false);
    if (seen_[number]) fail(fmt::format("token '{}' has number {}, which another has too", token_, number));
    seen_[number] = true;
    if (!names_.insert(token_).second) fail(fmt::format("token '{}' appears twice", token_));
    tokens_.emplace_back(number, token_);
    return true;
  }
  bool end_object() override { return true; }
  bool null() override { return wrong(); }
  bool boolean(bool) override { return wrong(); }
  bool number_integer(int64_t) override { return wrong(); }
  bool number_float(double, const std::string&) override { return wrong(); }
  bool string(std::string&) override { return wrong(); }
  bool binary(binary_t&) override { return wrong(); }
  bool start_array(size_t) override { return wrong(); }
  bool end_array() override { return wrong(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    const std::string_view before = text_.substr(0, std::min(position, text_.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    throw DataError(fmt::format("{}:{}: not valid JSON at byte {}", path_.string(), line, position));
  }

 private:
  static constexpr uint64_t kMaxTokens = 100'000'000;
  bool wrong() {
    if (!began_) fail("it is not an object of tokens and numbers");
    fail(fmt::format("token '{}': its number is not an integer from 0", token_));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: {}", path_.string(), what));
  }

  const fs::path& path_;
  std::string_view text_;
  bool began_ = false;
  std::string token_;
  std::vector<bool> seen_;
  std::unordered_set<std::string> names_;
  std::vector<std::pair<uint64_t, std::string>> tokens_;
};

}  // namespace

std::vector<std::string> read_vocabulary_json(const fs::path& path) {
  const std::string text = read_file(path);
  FlatObject object(path, text);
  nlohmann::json::sax_parse(text, &object);
  return object.take();
}

}  // namespace assay
