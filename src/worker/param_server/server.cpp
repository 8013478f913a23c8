#include "param_server/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"

namespace assay::ps {

namespace {

// Connections that have not said hello; more of them wait until one has, or its time is up.
constexpr int kMaxStrangers = 64;
constexpr double kTickS = 0.1;
// Rows of one answer to "what has changed": the rest is asked for again.
constexpr uint64_t kChangedBytes = uint64_t{32} << 20;

bool is_closed(int fd) {
  char byte;
  const ssize_t count = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace

Server::Server(ServerOptions options)
    : options_(std::move(options)), shard_(options_.shard), listener_(listen_at(options_.endpoint)) {
  port_ = port_of(listener_);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw InfrastructureError("cannot create a pipe");
  wake_read_ = FileDescriptor(ends[0]);
  wake_write_ = FileDescriptor(ends[1]);
}

Server::~Server() {
  stop("it was closed");
  for (Connection& connection : connections_) connection.thread.join();
}

void Server::stop(const std::string& reason) {
  if (stopping_.exchange(true)) return;
  shard_.stop(reason);
  (void)!::write(wake_write_.get(), "x", 1);
}

Server::Ending Server::run(int stop_fd) {
  Stopwatch idle;
  std::optional<Stopwatch> stopped_at;
  while (!stopping_) {
    accept_one(after(kTickS));
    remove_done();
    pollfd stop_request{stop_fd, POLLIN, 0};
    if (stop_fd >= 0 && !stopped_at && ::poll(&stop_request, 1, 0) > 0) stopped_at.emplace();
    // Trainers that were told the same need their servers to save.
    if (stopped_at && (shard_.num_connected() == 0 || stopped_at->seconds() > options_.stop_grace_s)) {
      stop("it was told to stop");
      return shard_.all_left() ? Ending::AllLeft : Ending::Stopped;
    }
    if (shard_.num_connected() > 0) {  // answers to goodbyes are on their way while connections are open
      idle.restart();
    } else if (shard_.all_left()) {
      return Ending::AllLeft;
    }
    if (idle.seconds() > options_.idle_limit_s) {
      throw CommunicationError(fmt::format("server {}: no trainer for {:g} s: {}", options_.shard.server.index,
                                           options_.idle_limit_s, join(shard_.missing_trainers(), "; ")));
    }
  }
  return Ending::Stopped;
}

void Server::accept_one(Deadline deadline) {
  const auto strangers = std::count_if(connections_.begin(), connections_.end(),
                                       [](const Connection& connection) { return !connection.is_known; });
  if (strangers >= kMaxStrangers) {
    pollfd wake{wake_read_.get(), POLLIN, 0};
    ::poll(&wake, 1, static_cast<int>(kTickS * 1000));
    return;
  }
  std::string peer;
  FileDescriptor fd = accept_peer(listener_, deadline, wake_read_.get(), peer);
  if (!fd) return;
  Connection& connection = connections_.emplace_back();
  connection.fd = std::move(fd);
  connection.peer = std::move(peer);
  connection.thread = std::thread([this, &connection] { serve(connection); });
}

void Server::remove_done() {
  for (auto it = connections_.begin(); it != connections_.end();) {
    if (!it->is_done) {
      ++it;
      continue;
    }
    it->thread.join();
    it = connections_.erase(it);
  }
}

void Server::serve(Connection& connection) {
  std::optional<Hello> hello;
  try {
    hello = greet(connection);
    connection.is_known = true;
    while (!stopping_ && answer_one(connection, *hello)) {
    }
  } catch (const InterruptedError&) {
    // The server stops.
  } catch (const ConnectionLost& error) {
    if (hello) options_.shard.log(fmt::format("trainer {}: {}", hello->trainer, error.what()));
  } catch (const std::exception& error) {
    const std::string who = hello ? fmt::format("trainer {}", hello->trainer) : "a stranger";
    options_.shard.log(fmt::format("{} at {}: {}; the connection is closed", who, connection.peer, error.what()));
  }
  if (hello) shard_.disconnected(hello->trainer, hello->instance);
  ::shutdown(connection.fd.get(), SHUT_RDWR);
  connection.is_done = true;
}

Hello Server::greet(Connection& connection) {
  const Frame frame = receive_frame(connection.fd.get(), {.first = after(options_.hello_limit_s),
                                                          .stall_s = options_.hello_limit_s,
                                                          .max_payload = kSmallFrame,
                                                          .wake_fd = wake_read_.get()});
  try {
    if (frame.header.kind != static_cast<uint16_t>(Request::Hello)) {
      throw CommunicationError("the first message of a connection must be a hello");
    }
    const Hello hello = decode_hello(frame.payload);
    const std::string reply = encode(shard_.hello(hello));
    try {
      send_frame(connection.fd.get(), kReplyOk, frame.header.request_id, reply, after(options_.hello_limit_s));
    } catch (...) {
      shard_.disconnected(hello.trainer, hello.instance);
      throw;
    }
    return hello;
  } catch (const ConnectionLost&) {
    throw;
  } catch (const std::exception& error) {
    reply_error(connection, frame.header.request_id, error);
    throw;
  }
}

bool Server::answer_one(Connection& connection, const Hello& hello) {
  const int fd = connection.fd.get();
  const Frame frame = receive_frame(fd, {.first = kNever,
                                         .stall_s = options_.shard.time_limit_s,
                                         .max_payload = options_.max_frame_bytes,
                                         .wake_fd = wake_read_.get()});
  const auto request = static_cast<Request>(frame.header.kind);
  const Caller caller{.trainer = hello.trainer, .gone = [fd] { return is_closed(fd); }};
  std::string reply;
  try {
    reply = answer(request, frame.payload, caller);
  } catch (const ConnectionLost&) {
    throw;
  } catch (const std::exception& error) {
    reply_error(connection, frame.header.request_id, error);
    return true;
  }
  send_frame(fd, kReplyOk, frame.header.request_id, reply, after(options_.shard.time_limit_s));
  if (request == Request::Stop) stop(fmt::format("trainer {} has stop_request for it", hello.trainer));
  return request != Request::Goodbye && request != Request::Stop;
}

void Server::reply_error(Connection& connection, uint64_t request_id, const std::exception& error) const {
  send_frame(connection.fd.get(), kReplyError, request_id, encode_error(error), after(options_.shard.time_limit_s));
}

std::string Server::answer(Request request, std::string_view payload, const Caller& caller) {
  const RowBytes row_bytes = [this](uint32_t table) { return shard_.row_bytes(table); };
  switch (request) {
    case Request::CreateTables: shard_.create_tables(decode_specs(payload)); return {};
    case Request::Start: shard_.start(decode_start(payload), caller); return {};
    case Request::Init: shard_.init(decode_block(payload, row_bytes)); return {};
    case Request::Pull: return encode(shard_.pull(decode_pull(payload), caller));
    case Request::Push: shard_.push(caller.trainer, decode_push(payload, row_bytes)); return {};
    case Request::AddDeltas: shard_.add_deltas(caller.trainer, decode_push(payload, row_bytes)); return {};
    case Request::PullChanged: return encode(shard_.changed(decode_changed_request(payload), kChangedBytes));
    case Request::Barrier: shard_.barrier(decode_barrier(payload), caller); return {};
    case Request::Gather: return encode(shard_.gather(decode_gather(payload), caller));
    case Request::Save: return encode_text(shard_.save(decode_step(payload), caller));
    case Request::Stats: return encode_text(to_line(shard_.stats()));
    case Request::Fail: shard_.fail(caller.trainer, decode_text(payload)); return {};
    case Request::Goodbye: shard_.goodbye(caller.trainer); return {};
    case Request::Stop: return {};
    case Request::Hello: break;
  }
  throw CommunicationError(fmt::format("an unexpected message: {}", name_of(request)));
}

}  // namespace assay::ps
