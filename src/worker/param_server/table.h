// One table of a server: rows by id, made at their first use, with the state of their optimizer. Not thread-safe;
// shard.h guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "param_server/types.h"

namespace assay::ps {

// Rows that changed, oldest change first.
struct ChangedRows {
  uint64_t version = 0;  // of the last one here: ask for what came after it
  bool more = false;
  std::vector<int64_t> ids;
  std::vector<std::byte> values;
};

// Everything of a table, rows in the order of their ids: what a checkpoint holds.
struct TableState {
  TableSpec spec;
  std::vector<int64_t> ids;
  std::vector<std::byte> weights;
  std::vector<std::byte> first;   // empty when the update rule has none
  std::vector<std::byte> second;  // empty when the update rule has none
};

class Table {
 public:
  static std::unique_ptr<Table> make(const TableSpec& spec);
  virtual ~Table() = default;

  const TableSpec& spec() const { return spec_; }
  virtual int64_t num_rows() const = 0;
  virtual int64_t num_bytes() const = 0;                      // of memory
  virtual int64_t bytes_for(int64_t num_new_rows) const = 0;  // that so many new rows would need at most
  // How many of the rows do not exist; an id that is there twice counts twice.
  virtual int64_t num_missing(std::span<const int64_t> ids) const = 0;

  // Writes the rows to `values`. Those that do not exist are made by the rule for first values; where the rule is
  // Given they are 0 and not present.
  virtual void pull(std::span<const int64_t> ids, std::byte* values, uint8_t* present) = 0;
  // Gives a first value to the rows that do not exist; the others keep theirs.
  virtual void init(std::span<const int64_t> ids, const std::byte* values) = 0;
  // One update with the sum of the blocks, added in their order; an id may be there several times. Rows without a
  // first value are left out and counted.
  struct Change {
    double rate = 0;
    int64_t num_updates = 0;  // with this one
  };
  virtual int64_t update(const std::vector<const RowBlock*>& blocks, const Change& change) = 0;
  // Adds to the weights; rows without a first value are left out and counted.
  virtual int64_t add(const RowBlock& block) = 0;
  // At most `max_rows` of those that changed after the version; 0: all there are.
  virtual ChangedRows changed_since(uint64_t version, int64_t max_rows) const = 0;

  virtual TableState state() const = 0;
  // Adds the rows of a state that `wanted` says yes to. The state is of the same spec, its sizes are checked.
  virtual void restore(const TableState& state, const std::function<bool(int64_t)>& wanted) = 0;

 protected:
  explicit Table(const TableSpec& spec) : spec_(spec) {}
  TableSpec spec_;
};

}  // namespace assay::ps
