// One process's end of the control channel: joins the job, asks for keys, hears who is lost, says that it lives. Knows
// no collectives; what this process is doing it asks a function for.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/health.h"
#include "comm/protocol.h"
#include "comm/world.h"

namespace assay::comm {

class Control {
 public:
  // Returns when all processes have joined; throws CommunicationError as World::join() does.
  Control(const WorldOptions& options, const Member& self, std::shared_ptr<Health> health);
  ~Control();

  const std::vector<Member>& members() const { return members_; }
  const std::string& token() const { return token_; }  // of this job, the same for all, unknown to others
  const WorldOptions& options() const { return options_; }
  Health& health() const { return *health_; }

  void set(const std::string& key, const std::string& value);
  // Waits until somebody sets it. Throws CommunicationError at the time limit and when a rank is lost.
  std::string get(const std::string& key);
  // A small number of its own for each key, the same for all who ask.
  uint64_t number_of(const std::string& key);

  // What this process is doing, asked from the thread of the channel.
  void set_status(std::function<std::vector<Activity>()> status);
  // This call has waited for too long: finds out who is missing, fails the job, and throws.
  [[noreturn]] void give_up(const Activity& stuck);

  void fail(const std::string& reason, ErrorKind kind = ErrorKind::Communication);
  void leave();

 private:
  struct Attempts;
  void join(const Member& self);
  void connect(const Member& self, Attempts& attempts);
  bool await_welcome(const Attempts& attempts);
  void accept_welcome(Decoder& in);
  std::string ask(ControlMessage type, const std::string& key);
  void send(const Encoder& message);
  void run();
  bool serve();
  void receive(const std::string& message);
  void hear(const std::string& reason, ErrorKind kind = ErrorKind::Communication);
  Activity leave_activity() const;

  // Constant after construction.
  const WorldOptions options_;
  const std::shared_ptr<Health> health_;
  std::vector<Member> members_;
  std::string token_;
  FileDescriptor wake_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by the mutex.
  WireConnection wire_;
  std::map<uint64_t, std::optional<std::string>> answers_;
  uint64_t next_id_ = 1;
  std::function<std::vector<Activity>()> status_;
  bool stopping_ = false;
  bool leaving_ = false;
  bool ended_ = false;

  std::thread thread_;
};

}  // namespace assay::comm
