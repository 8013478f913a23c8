// A trainer's connection to one server: one request at a time, sent again over a new connection when the old one broke,
// until the time limit. Servers know a request that comes twice.
#pragma once

#include <optional>

#include "param_server/messages.h"
#include "param_server/socket.h"

namespace assay::ps {

struct ChannelOptions {
  Endpoint endpoint;
  Hello hello = {};
  double time_limit_s = 30;     // for an answer, and for a server to come back
  double connect_limit_s = 60;  // for the first connection
  uint64_t max_frame_bytes = uint64_t{1} << 30;
};

// Calls come from one thread at a time.
class Channel {
 public:
  explicit Channel(ChannelOptions options) : options_(std::move(options)) {}

  // Throws CommunicationError naming the server, or what the server answered.
  void connect();
  // Sent once now and again after every reconnection, before anything else.
  void create_tables(const std::vector<TableSpec>& specs);
  // `limit_s`: for the answer, beyond what the server itself may wait.
  std::string request(Request request, std::string_view payload, std::optional<double> limit_s = {});
  // Without a second attempt and without errors: for a trainer that ends.
  void try_request(Request request, std::string_view payload, double limit_s) noexcept;

  const HelloReply& last_hello() const { return last_hello_; }
  int num_reconnects() const { return num_reconnects_; }
  std::string name() const;  // "parameter server 1 at 10.0.0.2:6001"
  int64_t bytes_sent() const { return bytes_sent_; }
  int64_t bytes_received() const { return bytes_received_; }

 private:
  void connect_until(Deadline deadline);
  void connect_once(Deadline deadline);
  std::string exchange(Request request, std::string_view payload, Deadline deadline);

  ChannelOptions options_;
  FileDescriptor fd_;
  std::string tables_;  // encoded; empty: none yet
  HelloReply last_hello_;
  uint64_t next_id_ = 1;
  int num_reconnects_ = 0;
  int64_t bytes_sent_ = 0;
  int64_t bytes_received_ = 0;
};

}  // namespace assay::ps
