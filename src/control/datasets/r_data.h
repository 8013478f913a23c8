// Values of R from its serialization format (XDR, versions 2 and 3): vectors, lists, data frames, factors. Not code,
// functions or environments. Files of others: every length is checked before it is believed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

struct RValue {
  enum class Kind { Null, Integers, Reals, Strings, List, Other };
  static constexpr int32_t kMissing = INT32_MIN;  // NA in integers and logicals

  Kind kind = Kind::Null;
  std::vector<int32_t> integers;  // logicals too
  std::vector<double> reals;
  std::vector<std::optional<std::string>> strings;  // nullopt: NA
  std::vector<RValue> items;                        // of lists and pairlists
  std::vector<std::pair<std::string, RValue>> attributes;

  const RValue* attribute(std::string_view name) const;  // nullptr when it has none
  // The item of a list (a column of a data frame) by its name; nullptr when it has none.
  const RValue* item(std::string_view name) const;
};

// Throws DataError naming `where` and the offset.
RValue parse_r_data(std::string_view bytes, const std::string& where);

}  // namespace assay
