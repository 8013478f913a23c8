// The one who knows all processes of a job: runs as a thread of rank 0, listens at MASTER_ADDR:MASTER_PORT, takes
// registrations, keeps keys and values for rendezvous, notices who is gone and tells everybody the same reason. Knows
// no collectives; what it hears about them it only repeats.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/protocol.h"
#include "comm/world.h"

namespace assay::comm {

class Coordinator {
 public:
  Coordinator(FileDescriptor listener, const WorldOptions& options);
  // Tells those who are still there that rank 0 is gone, unless all have left. Takes a second at most.
  ~Coordinator();

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    WireConnection wire;
    Clock::time_point since, heard;
    int rank = -1;  // none yet
    Member member;
    std::string reached_at;  // our address, as this client sees it
    bool left = false;
    bool answered = false;  // the query that is open
    std::vector<Activity> activities;
  };
  enum class State { Joining, Running, Ended, Failed };

  void run();
  void accept_all();
  void serve(Client& client);
  void receive(Client& client, const std::string& message);
  void register_client(Client& client, Decoder& in);
  void complete_join();
  void answer_numbers_and_keys(Client& client, ControlMessage type, Decoder& in);
  void lose(Client& client, const std::string& why);
  void declare(const std::string& reason, bool is_refusal = false);  // a refusal of the configuration
  void refuse(Client& client, const std::string& reason, ControlMessage how = ControlMessage::Refuse);
  void check_times();
  void open_query(Client& client, Decoder& in);
  void close_query();
  void say_goodbye();
  void broadcast(const Encoder& message);
  std::vector<int> missing_ranks() const;
  Client* client_of(int rank);

  const WorldOptions options_;
  FileDescriptor listener_;
  FileDescriptor wake_;
  // Of the thread only.
  State state_ = State::Joining;
  bool began_ = false;  // all processes have come
  std::vector<std::unique_ptr<Client>> clients_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<std::pair<int, uint64_t>>> waiting_;  // key -> rank and id of who asked
  std::map<std::string, uint64_t> numbers_;
  std::string reason_;
  int num_left_ = 0;
  Clock::time_point started_ = Clock::now(), last_beat_ = Clock::now();
  bool query_open_ = false;
  Clock::time_point query_ends_;
  Activity stuck_;
  int stuck_rank_ = 0;
  std::thread thread_;
};

// What the watchdog says: who did not come to the call in which `stuck_rank` waits, and where everybody is.
struct WatchedRank {
  int rank = 0;
  bool answered = false;
  std::vector<Activity> activities = {};
};
std::string watchdog_text(const Activity& stuck, int stuck_rank, const std::vector<WatchedRank>& ranks);

}  // namespace assay::comm
