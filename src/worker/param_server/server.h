// A parameter server: listens, gives every connection a thread, and lets the shard answer. Strangers and garbage cost
// a connection, never the server.
#pragma once

#include <atomic>
#include <list>
#include <thread>

#include "param_server/shard.h"

namespace assay::ps {

struct ServerOptions {
  Endpoint endpoint;  // port 0: a free one
  ShardOptions shard = {};
  uint64_t max_frame_bytes = uint64_t{1} << 30;
  double hello_limit_s = 10;  // a peer that has not said who it is by then is a stranger
  double idle_limit_s = 60;   // so long without any trainer, and the server gives up
  double stop_grace_s = 60;   // so long trainers may still work after the server was told to stop
};

class Server {
 public:
  // Listens from now on. Throws InfrastructureError when the port is taken.
  explicit Server(ServerOptions options);
  ~Server();  // stops
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }
  Shard& shard() { return shard_; }
  // Serves until every trainer has said goodbye, one has asked for a stop, stop() was called, or stop_fd is readable;
  // then trainers have stop_grace_s to save and leave. Throws CommunicationError when no trainer has been there for
  // idle_limit_s, naming those that are missing.
  enum class Ending { AllLeft, Stopped };
  Ending run(int stop_fd = -1);
  // From any thread; run() returns soon.
  void stop(const std::string& reason);

 private:
  struct Connection {
    FileDescriptor fd;
    std::string peer;
    std::thread thread;
    std::atomic<bool> is_known = false;  // it has said hello
    std::atomic<bool> is_done = false;
  };
  void accept_one(Deadline deadline);
  void remove_done();
  void serve(Connection& connection);
  Hello greet(Connection& connection);
  // False: the connection ends.
  bool answer_one(Connection& connection, const Hello& hello);
  std::string answer(Request request, std::string_view payload, const Caller& caller);
  void reply_error(Connection& connection, uint64_t request_id, const std::exception& error) const;

  const ServerOptions options_;
  Shard shard_;
  FileDescriptor listener_;
  int port_ = 0;
  FileDescriptor wake_read_;  // readable when the server stops: for every poll
  FileDescriptor wake_write_;
  std::atomic<bool> stopping_ = false;
  std::list<Connection> connections_;  // of the thread that runs run()
};

}  // namespace assay::ps
