// The state of one server and its rules, without sockets: tables, the step they are at, the gradients that have come
// for the next update, and which trainers are there. Thread-safe: every connection calls it from its own thread, and
// calls that must wait for other trainers wait here.
//
// Sync: the update of step n happens when the gradients of all trainers for step n have come; they are added in the
// order of the trainers. A pull for step n waits until n updates have been made. Async: each push is an update. Geo:
// trainers send differences of weights, which are added.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "param_server/messages.h"
#include "param_server/server_checkpoint.h"
#include "param_server/socket.h"
#include "param_server/table.h"

namespace assay::ps {

struct ShardOptions {
  ServerId server = {};
  int num_trainers = 1;
  Mode mode = Mode::Sync;
  std::string job = {};
  // So long a call waits for the other trainers; then it fails and names those that did not come.
  double time_limit_s = 30;
  // A trainer whose connection broke has so long to come back; then nobody waits for it any more.
  double return_limit_s = 3;
  std::filesystem::path checkpoint_folder = {};  // empty: nothing is saved
  int keep_checkpoints = 3;
  int64_t max_bytes = int64_t{1} << 40;  // of all tables
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

// Who calls, and how to see that it is gone while its call waits.
struct Caller {
  int trainer = 0;
  std::function<bool()> gone = [] { return false; };
};

class Shard {
 public:
  // Loads the newest whole checkpoint, if there is one; names damaged ones in the log.
  explicit Shard(ShardOptions options);

  // --- who is there
  // Throws ConfigError when the peer is of another job or sees it otherwise, CommunicationError when this trainer is
  // there already.
  HelloReply hello(const Hello& hello);
  void disconnected(int trainer, uint64_t instance);  // a connection that said hello has ended
  void fail(int trainer, const std::string& reason);  // it says that it fails
  void goodbye(int trainer);
  bool all_left() const;  // with a goodbye
  int num_connected() const;
  std::vector<std::string> missing_trainers() const;  // why each one that has not left is not there

  // --- what trainers ask for
  // Tables that exist must be the same. Ids of tables are their places in the list.
  void create_tables(const std::vector<TableSpec>& specs);
  uint64_t row_bytes(uint32_t table) const;
  // Sync: waits until all trainers have come with the same step, then goes there: from the checkpoint of that step when
  // the server is at another one; 0: empty. Throws DataError when there is no such checkpoint. Async and geo go on from
  // where they are, and nobody waits.
  void start(const StartRequest& request, const Caller& caller);
  void init(const RowBlock& block);
  std::vector<PulledPart> pull(const PullRequest& request, const Caller& caller);
  void push(int trainer, PushRequest request);
  void add_deltas(int trainer, const PushRequest& request);
  ChangedRows changed(const ChangedRequest& request, uint64_t max_bytes) const;
  void barrier(const BarrierRequest& request, const Caller& caller);
  // The words of all trainers, in their order.
  std::vector<std::string> gather(const GatherRequest& request, const Caller& caller);
  // Sync: waits until the server is at the step. Writes a checkpoint; returns its name.
  std::string save(int64_t step, const Caller& caller);
  Json stats() const;

  // Every waiting call throws, and so does every one that comes.
  void stop(const std::string& reason);
  int64_t step() const;

 private:
  struct Trainer {
    uint64_t instance = 0;
    bool came = false;
    bool left = false;
    int connections = 0;                      // the old one may end after the new one began
    std::string failed = {};                  // why it is lost
    Deadline closed_at = {};                  // when its last connection broke
    uint64_t last_push = 0;                   // sequence of the last one that counted
    uint64_t waits_at = 0;                    // the barrier it is at; 0: none
    uint64_t passed = 0;                      // the last barrier it has passed
    int64_t start_step = 0;                   // where it wants to start, while it waits for that
    std::string words = {};                   // that it brings to a meeting
    std::optional<PushRequest> pending = {};  // sync: its gradients for the next update
  };
  using Lock = std::unique_lock<std::mutex>;

  void require_running() const;
  Deadline return_deadline(const Trainer& trainer) const;
  bool is_lost(const Trainer& trainer) const;
  std::string why_lost(int trainer) const;
  // Waits until done(); throws CommunicationError when one of those that `missing` names is lost, or at the limit.
  struct Wait {
    std::string purpose;
    double limit_s;
    const Caller& caller;
    bool for_the_lost = false;  // those that are lost may come again
  };
  void wait_for(Lock& lock, const Wait& wait, const std::function<bool()>& done,
                const std::function<std::vector<int>()>& missing);
  // Waits for the others; the last one to come calls `when_all`. What that throws, all throw.
  void meet(Lock& lock, const BarrierRequest& request, const Wait& wait, const std::function<void()>& when_all);
  void agree_on_start();
  void wait_for_step(Lock& lock, int64_t step, const Caller& caller, const std::string& purpose);
  [[noreturn]] void throw_out_of_step(int64_t step, int trainer) const;
  std::vector<int> without_gradients() const;
  void check_agreement(const PushRequest& request, int trainer) const;
  void apply_pending();
  Table& table(uint32_t index) const;
  void check_ids(const std::vector<int64_t>& ids) const;
  void check_blocks(const std::vector<RowBlock>& blocks) const;
  void reserve(const Table& table, std::span<const int64_t> ids) const;
  void go_to(int64_t step);
  void adopt(std::vector<ShardState> states);
  void clear();

  const ShardOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All below is guarded by mutex_.
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<Trainer> trainers_;
  int64_t step_ = 0;         // sync: steps made; else the newest step of any trainer
  int64_t num_updates_ = 0;  // t of the optimizers, without skipped steps
  int64_t restored_step_ = -1;
  int64_t num_pulls_ = 0;
  int64_t num_pushes_ = 0;
  int64_t num_unknown_rows_ = 0;        // gradients of rows that a restarted server does not have
  std::exception_ptr meeting_failure_;  // of the last meeting
  std::vector<std::string> gathered_;   // at the last meeting
  std::string stopped_;
};

}  // namespace assay::ps
