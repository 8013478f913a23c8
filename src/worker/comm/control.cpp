#include "comm/control.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "comm/addresses.h"

namespace assay::comm {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_until(Clock::time_point then) { return std::chrono::duration<double>(then - Clock::now()).count(); }

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

constexpr double kNamePatience_s = 5;   // for a name that has no address yet
constexpr double kHelloPatience_s = 5;  // for an answer of any kind from what listens at the port
constexpr auto kAgainPause = std::chrono::milliseconds(100);

// One attempt; `problem` says what stood in the way.
FileDescriptor try_connect(const SocketAddress& address, double seconds, std::string& problem) {
  FileDescriptor socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(socket.get(), address.get(), address.length) != 0 && errno != EINPROGRESS) {
    problem = std::strerror(errno);
    return FileDescriptor();
  }
  pollfd ready = {socket.get(), POLLOUT, 0};
  if (::poll(&ready, 1, static_cast<int>(seconds * 1000)) == 0) {
    problem = "no answer";
    return FileDescriptor();
  }
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error == 0) return socket;
  problem = std::strerror(error);
  return FileDescriptor();
}

}  // namespace

Control::Control(const WorldOptions& options, const Member& self, std::shared_ptr<Health> health)
    : options_(options), health_(std::move(health)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  join(self);
  thread_ = std::thread([this] { run(); });
}

Control::~Control() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

struct Control::Attempts {
  Clock::time_point end;                   // of all of them
  std::optional<Clock::time_point> met{};  // when somebody listened for the first time
};

// Until it is welcome: the rank 0 of an earlier job, which ends on another host, may still be at the port.
void Control::join(const Member& self) {
  Attempts attempts{.end = after(options_.join_limit_s)};
  while (true) {
    connect(self, attempts);
    if (await_welcome(attempts)) return;
    std::this_thread::sleep_for(kAgainPause);
  }
}

void Control::connect(const Member& self, Attempts& attempts) {
  const std::string where = endpoint_text(options_.master_address, options_.master_port);
  const Clock::time_point start = Clock::now();
  const Clock::time_point end = attempts.end;
  std::string problem;
  while (true) {
    const std::string target = options_.rank == 0 ? own_address_of(options_.master_address) : options_.master_address;
    const auto address = resolve_address(target, options_.master_port, problem);
    if (!address && seconds_until(start) < -std::min(kNamePatience_s, options_.join_limit_s)) {
      throw CommunicationError(fmt::format("MASTER_ADDR '{}' has no address: {}", options_.master_address, problem));
    }
    FileDescriptor socket;
    if (address) socket = try_connect(*address, std::clamp(seconds_until(end), 0.01, 2.0), problem);
    if (socket) {
      wire_ = WireConnection(std::move(socket));
      if (!attempts.met) attempts.met = Clock::now();
      break;
    }
    if (seconds_until(end) <= 0) {
      throw CommunicationError(fmt::format("rank 0 did not join within {:g} s: rank {} got no answer at {} ({})",
                                           options_.join_limit_s, options_.rank, where, problem));
    }
    ::usleep(20000);
  }
  Member member = self;
  if (member.address.empty()) member.address = local_address(wire_.fd()).host();
  member.interface = interface_of(member.address);
  Encoder hello = message_of(ControlMessage::Hello);
  hello.text(kProtocolName);
  encode(hello, member);
  hello.i32(options_.world_size);
  wire_.queue(hello);
  wire_.flush();
}

// The coordinator beats while others are still to come; whatever else listens there does not. False: not now, but an
// attempt later may be welcome.
bool Control::await_welcome(const Attempts& attempts) {
  const std::string where = endpoint_text(options_.master_address, options_.master_port);
  const Clock::time_point end = attempts.end + std::chrono::seconds(2);
  Clock::time_point heard = Clock::now();
  bool answered = false;
  while (true) {
    pollfd ready = {wire_.fd(), static_cast<short>(POLLIN | (wire_.has_output() ? POLLOUT : 0)), 0};
    ::poll(&ready, 1, 50);
    const bool alive = wire_.read_some() && wire_.flush();
    try {
      std::string message;
      while (wire_.next(message)) {
        Decoder in(message);
        const auto type = static_cast<ControlMessage>(in.u8());
        answered = true;
        heard = Clock::now();
        if (type == ControlMessage::Welcome) {
          accept_welcome(in);
          return true;
        }
        if (type == ControlMessage::Busy && Clock::now() + kAgainPause < attempts.end) return false;
        if (type == ControlMessage::Busy || type == ControlMessage::Refuse || type == ControlMessage::Lost) {
          throw CommunicationError(in.text());
        }
        if (type != ControlMessage::Beat) throw WireError("not a message of a coordinator");
      }
    } catch (const WireError&) {
      throw CommunicationError(fmt::format("what answers at {} is not an assay job; use another MASTER_PORT?", where));
    }
    if (!alive && !answered) {
      if (-seconds_until(*attempts.met) < std::min(kHelloPatience_s, options_.join_limit_s)) return false;
      throw CommunicationError(
          fmt::format("what listens at {} closed the connection without an answer: another MASTER_PORT?", where));
    }
    if (!alive) throw CommunicationError(fmt::format("rank 0 is lost: its connection at {} closed", where));
    const double patience = answered ? std::max(kHelloPatience_s, options_.time_limit_s) : kHelloPatience_s;
    if (-seconds_until(heard) > patience || seconds_until(end) <= 0) {
      throw CommunicationError(fmt::format("what listens at {} does not answer for {:.1f} s: {}", where,
                                           -seconds_until(heard),
                                           answered ? "rank 0 is stopped or cut off" : "another MASTER_PORT?"));
    }
  }
}

void Control::accept_welcome(Decoder& in) {
  token_ = in.text();
  for (int rank = 0; rank < options_.world_size; ++rank) members_.push_back(decode_member(in));
}

void Control::send(const Encoder& message) {
  {
    const std::lock_guard lock(mutex_);
    if (!wire_.open()) return;
    wire_.queue(message);
    wire_.flush();  // what is left, and what goes wrong, is the thread's business
    if (!wire_.has_output()) return;
  }
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void Control::set(const std::string& key, const std::string& value) {
  send(message_of(ControlMessage::Set).text(key).text(value));
}

std::string Control::get(const std::string& key) { return ask(ControlMessage::Get, key); }

uint64_t Control::number_of(const std::string& key) {
  return static_cast<uint64_t>(parse_int(ask(ControlMessage::Number, key)).value_or(0));
}

std::string Control::ask(ControlMessage type, const std::string& key) {
  uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
    answers_[id] = std::nullopt;
  }
  send(message_of(type).u64(id).text(key));
  const Clock::time_point end = after(options_.time_limit_s);
  std::unique_lock lock(mutex_);
  while (!answers_[id]) {
    changed_.wait_for(lock, std::chrono::milliseconds(50));
    if (answers_[id]) break;
    if (health_->failed()) health_->check("rendezvous of " + key);
    if (seconds_until(end) <= 0) {
      lock.unlock();
      give_up({.group = ~uint64_t{0} - 1,
               .group_name = key,
               .ranks = {options_.rank},
               .kind = "rendezvous",
               .waiting = true,
               .seconds = options_.time_limit_s});
    }
  }
  const std::string value = *answers_[id];
  answers_.erase(id);
  return value;
}

void Control::set_status(std::function<std::vector<Activity>()> status) {
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
}

void Control::give_up(const Activity& stuck) {
  Encoder message = message_of(ControlMessage::Stuck);
  encode(message, stuck);
  send(message);
  if (!health_->wait_failed(1.5)) {
    health_->fail(fmt::format("{} took longer than {:.1f} s", call_text(stuck), stuck.seconds));
  }
  health_->check();
  throw InternalError("a job that failed is whole");
}

void Control::fail(const std::string& reason, ErrorKind kind) {
  if (health_->failed()) return;
  send(message_of(ControlMessage::Fail).text(reason).u8(kind == ErrorKind::Config));
  health_->wait_failed(1.0);  // the coordinator tells everybody, us among them: then the message is on its way
  health_->fail(fmt::format("rank {} failed: {}", options_.rank, reason), kind);
}

Activity Control::leave_activity() const {
  Activity activity = {.group = ~uint64_t{0}, .group_name = "the job", .number = 1, .kind = "leave", .waiting = true};
  for (const Member& member : members_) activity.ranks.push_back(member.rank);
  activity.seconds = options_.time_limit_s;
  return activity;
}

void Control::leave() {
  health_->check("leaving");
  send(message_of(ControlMessage::Leave));
  const Clock::time_point end = after(options_.time_limit_s);
  std::unique_lock lock(mutex_);
  leaving_ = true;
  while (!ended_) {
    changed_.wait_for(lock, std::chrono::milliseconds(50));
    if (ended_) return;
    if (health_->failed()) health_->check("leaving");
    if (seconds_until(end) <= 0) {
      lock.unlock();
      give_up(leave_activity());
    }
  }
}

void Control::run() {
  Clock::time_point heard = Clock::now();
  Clock::time_point beat = Clock::now();
  while (true) {
    int fd = 0;
    bool output = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) break;
      fd = wire_.fd();
      output = wire_.has_output();
    }
    pollfd watched[] = {{wake_.get(), POLLIN, 0}, {fd, static_cast<short>(POLLIN | (output ? POLLOUT : 0)), 0}};
    const double interval = beat_interval(options_.time_limit_s);
    ::poll(watched, 2, static_cast<int>(1000 * std::clamp(interval / 2, 0.02, 0.5)));
    if (watched[0].revents) {
      uint64_t count = 0;
      (void)!::read(wake_.get(), &count, sizeof count);
    }
    if (watched[1].revents) {
      heard = Clock::now();
      if (!serve()) return;
    }
    if (-seconds_until(beat) >= interval) {
      beat = Clock::now();
      send(message_of(ControlMessage::Beat));
    }
    if (-seconds_until(heard) > silence_limit(options_.time_limit_s)) {
      hear(fmt::format("rank 0 is lost: no sign of life from {} for {:.1f} s, it is stopped or we are cut off",
                       endpoint_text(options_.master_address, options_.master_port), -seconds_until(heard)));
      return;
    }
  }
}

// False when there is nothing more to hear.
bool Control::serve() {
  std::vector<std::string> messages;
  bool alive = false;
  bool ended = false;
  {
    const std::lock_guard lock(mutex_);
    alive = wire_.read_some() && wire_.flush();
    try {
      std::string message;
      while (wire_.next(message)) messages.push_back(message);
    } catch (const WireError&) {
      alive = false;
    }
  }
  try {
    for (const std::string& message : messages) receive(message);
  } catch (const WireError&) {
    alive = false;
  }
  {
    const std::lock_guard lock(mutex_);
    ended = ended_;
    if (!alive) wire_.close();
  }
  if (!alive && !ended) {
    const Member& first = members_[0];
    hear(fmt::format("rank 0 is lost: its connection closed: it died or was killed (process {} on host {})", first.pid,
                     first.host));
  }
  return alive;
}

void Control::receive(const std::string& message) {
  Decoder in(message);
  switch (static_cast<ControlMessage>(in.u8())) {
    case ControlMessage::Value: {
      const uint64_t id = in.u64();
      const std::string value = in.text();
      const std::lock_guard lock(mutex_);
      if (const auto found = answers_.find(id); found != answers_.end()) found->second = value;
      changed_.notify_all();
      return;
    }
    case ControlMessage::Query: {
      std::function<std::vector<Activity>()> status;
      bool leaving = false;
      {
        const std::lock_guard lock(mutex_);
        status = status_;
        leaving = leaving_;
      }
      std::vector<Activity> activities = status ? status() : std::vector<Activity>();
      if (leaving) activities.push_back(leave_activity());
      Encoder answer = message_of(ControlMessage::Status);
      encode(answer, activities);
      return send(answer);
    }
    case ControlMessage::Lost: {
      const std::string reason = in.text();
      return hear(reason, in.u8() != 0 ? ErrorKind::Config : ErrorKind::Communication);
    }
    case ControlMessage::Ended: {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
      return;
    }
    default: return;
  }
}

void Control::hear(const std::string& reason, ErrorKind kind) {
  health_->fail(reason, kind);
  changed_.notify_all();
}

}  // namespace assay::comm
