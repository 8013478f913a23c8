// What servers and trainers agree on: the mode of a job, its tables, and blocks of their rows. Plain values; nothing
// here knows sockets or processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/server_role.h"

namespace assay::ps {

enum class Mode : uint8_t { Sync, Async, Geo };
Mode mode_of(const std::string& name);  // "sync", "async", "geo"; throws ConfigError
std::string name_of(Mode mode);

enum class Element : uint8_t { F32, F64 };
size_t size_of(Element element);

// The first value of a row. A drawn one depends on seed, table and id alone, not on servers or on who asks first.
struct InitRule {
  enum class Kind : uint8_t {
    Given,    // by a trainer; a row without a value does not exist
    Zero,     // 0
    Uniform,  // from -scale to scale
    Normal,   // around 0, standard deviation `scale`
  };
  Kind kind = Kind::Given;
  double scale = 0;
  uint64_t seed = 0;
  bool operator==(const InitRule&) const = default;
};

// The rule by which gradients change rows; see update.h.
struct UpdateOptions {
  std::string name = "SGD";
  double weight_decay = 0;
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool operator==(const UpdateOptions&) const = default;
};

// A table has rows of `width` numbers by 64-bit id. A dense tensor is a table whose rows are pieces of it.
struct TableSpec {
  std::string name;
  int64_t width = 1;
  Element element = Element::F32;
  InitRule init = {};
  UpdateOptions update = {};
  bool operator==(const TableSpec&) const = default;
};

inline constexpr int64_t kMaxWidth = int64_t{1} << 20;
inline constexpr size_t kMaxTables = 4096;
inline constexpr size_t kMaxNameSize = 256;

// Throws ConfigError naming the table for a width, name or rule that cannot be.
void check_spec(const TableSpec& spec);
Json to_json(const TableSpec& spec);
TableSpec spec_of(const Json& value, const std::string& where);  // throws DataError

// Some rows of one table: gradients, differences or values, `width` elements each, in the order of the ids.
struct RowBlock {
  uint32_t table = 0;
  std::vector<int64_t> ids;
  std::vector<std::byte> values;
};

// The server that has a row.
inline int server_of(int64_t id, int num_servers) {
  return static_cast<int>(static_cast<uint64_t>(id) % static_cast<uint64_t>(num_servers));
}

}  // namespace assay::ps
