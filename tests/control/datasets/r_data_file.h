// Writes values as R serializes them, for tests of the readers.
#pragma once

#include <zlib.h>

#include <bit>
#include <string>
#include <string_view>
#include <vector>

namespace assay::r_data_file {

inline std::string word(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}
inline std::string header(uint32_t version = 3) {
  std::string text = "X\n" + word(version) + word(0x00040201) + word(0x00030500);
  if (version == 3) text += word(5) + "UTF-8";
  return text;
}
inline std::string chars(std::string_view text) {
  return word(0x00040009) + word(static_cast<uint32_t>(text.size())) + std::string(text);
}
inline std::string symbol(std::string_view name) { return word(1) + chars(name); }
inline std::string null() { return word(254); }
inline std::string integers(const std::vector<int32_t>& values, uint32_t flags = 13) {
  std::string text = word(flags) + word(static_cast<uint32_t>(values.size()));
  for (const int32_t value : values) text += word(static_cast<uint32_t>(value));
  return text;
}
inline std::string reals(const std::vector<double>& values) {
  std::string text = word(14) + word(static_cast<uint32_t>(values.size()));
  for (const double value : values) {
    const auto bits = std::bit_cast<uint64_t>(value);
    text += word(static_cast<uint32_t>(bits >> 32)) + word(static_cast<uint32_t>(bits));
  }
  return text;
}
inline std::string strings(const std::vector<std::string>& values) {
  std::string text = word(16) + word(static_cast<uint32_t>(values.size()));
  for (const std::string& value : values) text += chars(value);
  return text;
}
// A list with names: {name, serialized value}. The names' symbol is written out; use it once a file.
inline std::string named_list(const std::vector<std::pair<std::string, std::string>>& items,
                              const std::string& names_tag = symbol("names")) {
  std::string text = word(19 | 0x200) + word(static_cast<uint32_t>(items.size()));
  std::vector<std::string> names;
  for (const auto& [name, value] : items) {
    text += value;
    names.push_back(name);
  }
  return text + word(2 | 0x400) + names_tag + strings(names) + null();
}
inline std::string reference(uint32_t index) { return word(255 | index << 8); }

inline std::string deflated(const std::string& bytes) {
  std::string packed(::compressBound(bytes.size()), '\0');
  uLongf size = packed.size();
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
             bytes.size());
  packed.resize(size);
  return packed;
}

}  // namespace assay::r_data_file
