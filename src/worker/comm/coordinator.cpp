#include "comm/coordinator.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "comm/addresses.h"

namespace assay::comm {

namespace {

using namespace std::chrono_literals;

constexpr size_t kMostStrangers = 256;        // connections that have not said who they are
constexpr auto kStrangerPatience = 5s;        // how long they may take for it
constexpr size_t kStrangerMessage = 1 << 16;  // and how much they may say
constexpr auto kQueryPatience = 500ms;

std::string random_token() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
    throw InfrastructureError("no random bytes from the system");
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

std::string process_text(const Member& member) {
  return fmt::format("process {} on host {}", member.pid, valid_utf8(member.host));
}

}  // namespace

Coordinator::Coordinator(FileDescriptor listener, const WorldOptions& options)
    : options_(options), listener_(std::move(listener)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { run(); });
}

Coordinator::~Coordinator() {
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void Coordinator::run() {
  while (true) {
    std::vector<pollfd> watched = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& client : clients_) {
      watched.push_back({client->wire.fd(), static_cast<short>(POLLIN | (client->wire.has_output() ? POLLOUT : 0)), 0});
    }
    const int patience_ms = static_cast<int>(1000 * std::min(0.1, beat_interval(options_.time_limit_s)));
    ::poll(watched.data(), watched.size(), patience_ms);
    if (watched[0].revents) break;
    if (watched[1].revents) accept_all();
    for (size_t i = 2; i < watched.size(); ++i) {
      if (watched[i].revents) serve(*clients_[i - 2]);
    }
    check_times();
    std::erase_if(clients_, [](const auto& client) { return !client->wire.open(); });
  }
  say_goodbye();
}

void Coordinator::accept_all() {
  while (true) {
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) return;
    const auto strangers = std::count_if(clients_.begin(), clients_.end(), [](const auto& c) { return c->rank < 0; });
    if (static_cast<size_t>(strangers) >= kMostStrangers + static_cast<size_t>(options_.world_size)) continue;
    auto client = std::make_unique<Client>();
    client->reached_at = local_address(socket.get()).is_loopback() ? "" : local_address(socket.get()).host();
    client->wire = WireConnection(std::move(socket));
    client->wire.set_limit(kStrangerMessage);
    client->since = client->heard = Clock::now();
    clients_.push_back(std::move(client));
  }
}

void Coordinator::serve(Client& client) {
  if (!client.wire.open()) return;
  const bool alive = client.wire.read_some();
  try {
    std::string message;
    while (client.wire.open() && client.wire.next(message)) {
      client.heard = Clock::now();
      receive(client, message);
    }
  } catch (const WireError&) {  // a stranger, or a process gone mad
    lose(client, "it sent something that is not a message");
    return;
  }
  if (!alive || !client.wire.flush()) lose(client, "its connection closed: it died or was killed");
}

void Coordinator::receive(Client& client, const std::string& message) {
  Decoder in(message);
  const auto type = static_cast<ControlMessage>(in.u8());
  if (client.rank < 0) {
    if (type != ControlMessage::Hello) throw WireError("a stranger");
    return register_client(client, in);
  }
  switch (type) {
    case ControlMessage::Beat: return;
    case ControlMessage::Set:
    case ControlMessage::Get:
    case ControlMessage::Number: return answer_numbers_and_keys(client, type, in);
    case ControlMessage::Stuck: return open_query(client, in);
    case ControlMessage::Status:
      client.activities = decode_activities(in);
      client.answered = true;
      return;
    case ControlMessage::Fail: {
      const std::string reason = valid_utf8(in.text());
      return declare(fmt::format("rank {} failed: {}", client.rank, reason), in.u8() != 0);
    }
    case ControlMessage::Leave:
      num_left_ += !client.left;
      client.left = true;
      if (state_ == State::Running && num_left_ == options_.world_size) {
        state_ = State::Ended;
        broadcast(message_of(ControlMessage::Ended));
      }
      return;
    default: throw WireError("an unknown message");
  }
}

void Coordinator::register_client(Client& client, Decoder& in) {
  if (in.text() != kProtocolName) {
    return refuse(client, fmt::format("the job at port {} speaks {}: all processes must be of the same version",
                                      options_.master_port, kProtocolName));
  }
  client.member = decode_member(in);
  const int world_size = in.i32();
  const int rank = client.member.rank;
  if (state_ != State::Joining) {
    // Of a job that starts again on several hosts a rank may be here before the old rank 0 is gone, so it tries again.
    // Where this job never began it is the one that was meant.
    return refuse(client,
                  state_ == State::Failed
                      ? reason_
                      : fmt::format("another job of {} processes is running at port {}: choose another MASTER_PORT, or "
                                    "start rank {} once only",
                                    options_.world_size, options_.master_port, rank),
                  began_ ? ControlMessage::Busy : ControlMessage::Refuse);
  }
  std::string problem;
  const Client* twin = client_of(rank);
  if (world_size != options_.world_size) {
    problem = fmt::format("rank {} ({}) says WORLD_SIZE is {}, rank 0 says {}", rank, process_text(client.member),
                          world_size, options_.world_size);
  } else if (rank < 0 || rank >= world_size) {
    problem = fmt::format("rank {} is outside a world of {} processes", rank, world_size);
  } else if (twin) {
    problem =
        fmt::format("rank {} came twice: {} and {}", rank, process_text(twin->member), process_text(client.member));
  } else if (client.member.transport != transport_name(options_.transport)) {
    problem = fmt::format("rank {} asks for transport {}, rank 0 for {}", rank, client.member.transport,
                          transport_name(options_.transport));
  }
  if (!problem.empty()) {
    refuse(client, problem);
    return declare(problem);
  }
  client.rank = rank;
  client.wire.set_limit(64u << 20);
  if (missing_ranks().empty()) complete_join();
}

void Coordinator::complete_join() {
  // Rank 0 reaches itself by any address; others need the one under which they found it.
  Client* first = client_of(0);
  for (const auto& client : clients_) {
    if (options_.interface.empty() && client->rank > 0 && !client->reached_at.empty()) {
      first->member.address = client->reached_at;
      first->member.interface = interface_of(client->reached_at);
      break;
    }
  }
  Encoder welcome = message_of(ControlMessage::Welcome);
  welcome.text(random_token());
  for (int rank = 0; rank < options_.world_size; ++rank) {
    Client* client = client_of(rank);
    client->heard = Clock::now();
    encode(welcome, client->member);
  }
  state_ = State::Running;
  began_ = true;
  broadcast(welcome);
}

void Coordinator::answer_numbers_and_keys(Client& client, ControlMessage type, Decoder& in) {
  if (type == ControlMessage::Set) {
    const std::string key = in.text();
    const std::string value = in.text();
    values_[key] = value;
    for (const auto& [rank, id] : waiting_[key]) {
      if (Client* asker = client_of(rank)) {
        asker->wire.queue(message_of(ControlMessage::Value).u64(id).text(value));
        asker->wire.flush();
      }
    }
    waiting_.erase(key);
    return;
  }
  const uint64_t id = in.u64();
  const std::string key = in.text();
  if (type == ControlMessage::Number) {
    const uint64_t number = numbers_.try_emplace(key, numbers_.size() + 1).first->second;
    client.wire.queue(message_of(ControlMessage::Value).u64(id).text(std::to_string(number)));
  } else if (const auto found = values_.find(key); found != values_.end()) {
    client.wire.queue(message_of(ControlMessage::Value).u64(id).text(found->second));
  } else {
    waiting_[key].push_back({client.rank, id});
  }
}

void Coordinator::lose(Client& client, const std::string& why) {
  client.wire.close();
  if (client.rank < 0 || state_ == State::Ended) return;
  if (client.left) return;  // it waits for the others no longer; its work is done
  declare(fmt::format("rank {} is lost: {} ({})", client.rank, why, process_text(client.member)));
}

void Coordinator::declare(const std::string& reason, bool is_refusal) {
  if (state_ == State::Failed || state_ == State::Ended) return;
  state_ = State::Failed;
  reason_ = reason;
  broadcast(message_of(ControlMessage::Lost).text(reason).u8(is_refusal));
}

void Coordinator::refuse(Client& client, const std::string& reason, ControlMessage how) {
  client.wire.queue(message_of(how).text(reason));
  client.wire.flush();
  ::shutdown(client.wire.fd(), SHUT_WR);  // it closes when it has read that
}

void Coordinator::check_times() {
  if (state_ == State::Joining && seconds_since(started_) > options_.join_limit_s) {
    const std::vector<int> missing = missing_ranks();
    declare(fmt::format("{} of {} processes did not join within {:g} s", ranks_text(missing), options_.world_size,
                        options_.join_limit_s));
  }
  for (const auto& client : clients_) {
    if (client->rank < 0 && Clock::now() - client->since > kStrangerPatience) client->wire.close();
  }
  if (seconds_since(last_beat_) >= beat_interval(options_.time_limit_s)) {
    last_beat_ = Clock::now();
    broadcast(message_of(ControlMessage::Beat));
  }
  if (state_ != State::Running) return;
  std::vector<int> silent;
  bool lost = false;
  double longest = 0;
  for (const auto& client : clients_) {
    if (client->rank < 0 || client->left) continue;
    const double seconds = seconds_since(client->heard);
    // Ranks of one host fall silent together: name them together.
    if (seconds > 0.8 * silence_limit(options_.time_limit_s)) silent.push_back(client->rank);
    if (seconds > silence_limit(options_.time_limit_s)) lost = true;
    longest = std::max(longest, seconds);
  }
  if (lost) {
    std::sort(silent.begin(), silent.end());
    std::vector<std::string> where;
    for (const int rank : silent) where.push_back(process_text(client_of(rank)->member));
    declare(fmt::format("{} {} lost: no sign of life for {:.1f} s, stopped or cut off from the network ({})",
                        ranks_text(silent), silent.size() == 1 ? "is" : "are", longest, join(where, ", ")));
    return;
  }
  if (query_open_) {
    const bool all = std::all_of(clients_.begin(), clients_.end(),
                                 [](const auto& c) { return c->rank < 0 || c->answered || !c->wire.open(); });
    if (all || Clock::now() > query_ends_) close_query();
  }
}

void Coordinator::open_query(Client& client, Decoder& in) {
  if (query_open_ || state_ != State::Running) return;
  stuck_ = decode_activity(in);
  stuck_rank_ = client.rank;
  query_open_ = true;
  query_ends_ = Clock::now() + kQueryPatience;
  for (const auto& other : clients_) other->answered = false;
  broadcast(message_of(ControlMessage::Query));
}

void Coordinator::close_query() {
  query_open_ = false;
  std::vector<WatchedRank> ranks;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    const Client* client = client_of(rank);
    if (client) ranks.push_back({rank, client->answered, client->activities});
    if (!client) ranks.push_back({.rank = rank});
  }
  declare(watchdog_text(stuck_, stuck_rank_, ranks));
}

// What was said must arrive before the sockets close, but nobody may keep us.
void Coordinator::say_goodbye() {
  declare("rank 0 is lost: it ended before the job did");
  const auto end = Clock::now() + 500ms;
  for (const auto& client : clients_) client->wire.flush();
  for (const auto& client : clients_) {
    if (!client->wire.open() || client->rank < 0) continue;
    while (client->wire.has_output() && Clock::now() < end) {
      pollfd ready = {client->wire.fd(), POLLOUT, 0};
      ::poll(&ready, 1, 10);
      if (!client->wire.flush()) break;
    }
    ::shutdown(client->wire.fd(), SHUT_WR);
  }
  for (const auto& client : clients_) {  // a close with unread input would reset the connection
    while (client->wire.open() && client->rank >= 0 && Clock::now() < end) {
      pollfd ready = {client->wire.fd(), POLLIN, 0};
      ::poll(&ready, 1, 10);
      if (ready.revents && !client->wire.read_some()) break;
    }
  }
}

void Coordinator::broadcast(const Encoder& message) {
  for (const auto& client : clients_) {
    if (client->rank < 0 || !client->wire.open()) continue;
    client->wire.queue(message);
    client->wire.flush();  // a broken connection is noticed when it is read
  }
}

std::vector<int> Coordinator::missing_ranks() const {
  std::vector<bool> there(static_cast<size_t>(options_.world_size));
  for (const auto& client : clients_) {
    if (client->rank >= 0) there[static_cast<size_t>(client->rank)] = true;
  }
  std::vector<int> missing;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    if (!there[static_cast<size_t>(rank)]) missing.push_back(rank);
  }
  return missing;
}

Coordinator::Client* Coordinator::client_of(int rank) {
  for (const auto& client : clients_) {
    if (client->rank == rank && client->wire.open()) return client.get();
  }
  return nullptr;
}

namespace {

const Activity* in_group(const WatchedRank& rank, uint64_t group) {
  for (const Activity& activity : rank.activities) {
    if (activity.group == group) return &activity;
  }
  return nullptr;
}

// What a rank does outside of the call in question: "it waits in all_gather #4 of tp".
std::string elsewhere(const WatchedRank& rank, uint64_t group) {
  for (const Activity& activity : rank.activities) {
    if (activity.group != group && activity.waiting) return ", it waits in " + call_text(activity);
  }
  return "";
}

std::string absent_text(const WatchedRank& rank, const Activity& stuck) {
  if (!rank.answered) return fmt::format("rank {} does not answer", rank.rank);
  const Activity* activity = in_group(rank, stuck.group);
  std::string text = fmt::format("rank {} has not come", rank.rank);
  if (activity && activity->waiting) return text + fmt::format(", it waits in {}", call_text(*activity));
  if (activity && activity->number > 0) text += fmt::format(", its last was {}", call_text(*activity));
  return text + elsewhere(rank, stuck.group);
}

}  // namespace

std::string watchdog_text(const Activity& stuck, int stuck_rank, const std::vector<WatchedRank>& ranks) {
  std::vector<int> absent;
  std::vector<std::string> lines;
  for (const WatchedRank& rank : ranks) {
    const bool member = std::count(stuck.ranks.begin(), stuck.ranks.end(), rank.rank) > 0;
    const Activity* activity = rank.rank == stuck_rank ? &stuck : in_group(rank, stuck.group);
    const bool came =
        activity && (activity->number > stuck.number || (activity->number == stuck.number && activity->waiting));
    if (member && !came) {
      absent.push_back(rank.rank);
      lines.push_back(absent_text(rank, stuck));
    } else if (member) {
      lines.push_back(fmt::format("rank {} waits in {}, {} bytes, for {:.1f} s", rank.rank, call_text(*activity),
                                  activity->bytes, activity->seconds));
    } else if (const std::string other = elsewhere(rank, stuck.group); !other.empty()) {
      lines.push_back(fmt::format("rank {}: {}", rank.rank, other.substr(2)));
    }
  }
  const std::string who = absent.empty() ? "all of its ranks came" : ranks_text(absent) + " did not come";
  return fmt::format("{} took longer than {:.1f} s: {} ({})", call_text(stuck), stuck.seconds, who, join(lines, "; "));
}

}  // namespace assay::comm
