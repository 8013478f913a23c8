// All parameter servers as a trainer sees them: rows by table and id, dense tensors by name. Rows go to the servers
// that have them, and all servers are asked at the same time. Calls come from one thread at a time.
//
// Failures are CommunicationErrors that name the server, or the trainer that a server misses.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "param_server/channel.h"
#include "param_server/fan.h"
#include "param_server/types.h"

namespace assay::ps {

struct ClientOptions {
  std::vector<Endpoint> servers;
  int trainer = 0;
  int num_trainers = 1;
  Mode mode = Mode::Sync;
  std::string job = {};
  double time_limit_s = 30;
  double connect_limit_s = 60;
};

// A dense tensor is a table whose rows are pieces of so many elements; the last one is filled up with zeros.
inline constexpr int64_t kDensePiece = 4096;
int64_t num_pieces(int64_t num_elements);

class Client {
 public:
  // Returns when all servers have answered.
  explicit Client(ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int num_servers() const { return static_cast<int>(channels_.size()); }
  const ClientOptions& options() const { return options_; }

  // Every trainer gives the same tables; they are known by their places in the list. Once.
  void create_tables(const std::vector<TableSpec>& specs);
  // Every trainer calls it, after create_tables(), with the step that it starts at. In sync mode it returns when all
  // trainers have come with the same step and all servers are there.
  void start(int64_t step);

  // Some rows of a table. `values` has width elements a row, of the table's type.
  struct Rows {
    uint32_t table = 0;
    std::span<const int64_t> ids;
    void* values = nullptr;
  };
  // Fills in the rows as they are after `step` updates. Rows of tables with given first values that no server has yet
  // keep the values they come with, and the servers take those as their first ones.
  void pull(int64_t step, const std::vector<Rows>& rows);
  // Gradients of this trainer for `step`, already weighted by its share of the batch. Every call reaches every server.
  void push(int64_t step, double rate, const std::vector<Rows>& gradients);
  // Sync, in place of push(): a step in which no trainer has gradients that can be used.
  void push_nothing(int64_t step);
  // Geo: differences of weights, which servers add.
  void add_deltas(int64_t step, const std::vector<Rows>& deltas);
  // Calls `take` with blocks of rows that have changed since the last such call of this object for this table; the
  // first time with all rows that servers have.
  void pull_changed(uint32_t table, const std::function<void(const RowBlock&)>& take);
  // All rows that servers have.
  void pull_all(uint32_t table, const std::function<void(const RowBlock&)>& take);

  void barrier(std::optional<double> limit_s = {});  // nullopt: the time limit of the options
  // The words of all trainers, in their order. `patient`: also while a trainer was lost and may come again, as long as
  // connecting may take; the first meeting of a trainer is such a one.
  std::vector<std::string> gather(const std::string& mine, bool patient = false);
  // All servers save their state at this step. Returns the names of the files.
  std::vector<std::string> save(int64_t step);
  std::vector<Json> stats();
  // The normal end. Servers end when all trainers have said it.
  void goodbye();
  // Tells the servers that this trainer fails, so that the others do not wait for it.
  void fail(const std::string& reason) noexcept;
  void stop_servers();

  int num_reconnects() const;
  int64_t bytes_moved() const;

 private:
  // The places of the ids that each server has.
  std::vector<std::vector<size_t>> split(std::span<const int64_t> ids) const;
  std::vector<RowBlock> blocks_for(const Rows& rows) const;
  std::vector<PushRequest> requests_for(int64_t step, double rate, const std::vector<Rows>& rows);
  void init_missing(const std::vector<RowBlock>& missing, int server);
  void pull_since(uint32_t table, std::vector<uint64_t>& versions, const std::function<void(const RowBlock&)>& take);
  uint64_t row_bytes(uint32_t table) const;

  ClientOptions options_;
  std::vector<TableSpec> specs_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::unique_ptr<Fan> fan_;
  std::vector<std::vector<uint64_t>> versions_;  // seen, by table and server
  uint64_t next_push_ = 1;
  uint64_t next_barrier_ = 1;
};

}  // namespace assay::ps
