#include "comm/messages.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"

namespace assay::comm {

namespace {

struct MessageHead {
  int64_t tag = 0;
  int64_t bytes = 0;
};

using State = std::shared_ptr<Pending::State>;

struct Outgoing {
  const void* data = nullptr;
  int64_t bytes = 0;
  int tag = 0;
  State state;
};

struct Wanted {
  void* data = nullptr;
  int64_t bytes = 0;
  int tag = 0;
  State state;
  std::chrono::steady_clock::time_point since;
};

struct Early {  // came before it was asked for
  int tag = 0;
  std::vector<std::byte> bytes;
};

}  // namespace

struct Messenger::Link {
  int peer = 0;
  std::unique_ptr<ByteStream> stream;

  std::mutex send_mutex;  // held while writing
  std::condition_variable send_changed;
  std::deque<Outgoing> outgoing;
  bool writing = false;

  std::mutex receive_mutex;
  std::list<Wanted> wanted;
  std::list<Early> early;
  std::exception_ptr broken;

  std::thread outbox, inbox;
};

Messenger::Messenger(Setup setup) : setup_(std::move(setup)) {}

Messenger::~Messenger() {
  for (auto& [peer, link] : links_) {
    {
      const std::lock_guard lock(link->send_mutex);
      link->send_changed.notify_all();
    }
    if (link->outbox.joinable()) link->outbox.join();
    link->inbox.join();
  }
}

void Messenger::open(int peer) {
  auto created = std::make_unique<Link>();
  created->peer = peer;
  created->stream = setup_.open(peer);
  Link& link = *created;
  links_[peer] = std::move(created);
  link.inbox = std::thread([this, &link] { run_inbox(link); });
}

// Messages of all peers are taken in from the first message on, whoever it is for: in a ring of members that all send
// first, nobody has asked for anything yet.
Messenger::Link& Messenger::link_to(int peer) {
  if (links_.empty()) {
    const int num_members = static_cast<int>(setup_.group.ranks.size()) - 1;
    for (int member = 0; member < num_members; ++member) {
      if (setup_.group.ranks[static_cast<size_t>(member) + 1] != setup_.group.ranks[0]) open(member);
    }
  }
  return *links_.at(peer);
}

Activity Messenger::describe(const char* what, int peer, int tag, int64_t bytes) const {
  Activity activity = setup_.group;
  const int me = activity.ranks.front();  // [0]: this process; then the members
  const int other = activity.ranks[static_cast<size_t>(peer) + 1];
  activity.ranks = {me, other};
  activity.group = ~activity.group;  // not the group's numbered calls
  activity.kind = fmt::format("{} rank {} with tag {}", what, other, tag);
  activity.number = 0;
  activity.bytes = bytes;
  activity.waiting = true;
  return activity;
}

Pending Messenger::send(const void* data, int64_t bytes, int to, int tag) {
  Link& link = link_to(to);
  auto state = std::make_shared<Pending::State>(setup_.clock);
  const MessageHead head = {tag, bytes};
  const std::lock_guard lock(link.send_mutex);
  if (link.outgoing.empty() && !link.writing &&
      link.stream->try_write(&head, sizeof head, data, static_cast<size_t>(bytes))) {
    state->finish();
  } else {
    if (!link.outbox.joinable()) link.outbox = std::thread([this, &link] { run_outbox(link); });
    link.outgoing.push_back({data, bytes, tag, state});
    link.send_changed.notify_one();
  }
  return Pending(state);
}

Pending Messenger::receive(void* data, int64_t bytes, int from, int tag) {
  Link& link = link_to(from);
  auto state = std::make_shared<Pending::State>(setup_.clock);
  const std::lock_guard lock(link.receive_mutex);
  for (auto early = link.early.begin(); early != link.early.end(); ++early) {
    if (early->tag != tag) continue;
    if (static_cast<int64_t>(early->bytes.size()) != bytes) {
      throw CommunicationError(fmt::format("a message of {} bytes was sent where one of {} is received ({})",
                                           early->bytes.size(), bytes,
                                           call_text(describe("receive from", from, tag, bytes))));
    }
    if (bytes > 0) std::memcpy(data, early->bytes.data(), static_cast<size_t>(bytes));
    link.early.erase(early);
    state->finish();
    return Pending(state);
  }
  if (link.broken) {
    state->finish(link.broken);
  } else {
    link.wanted.push_back({data, bytes, tag, state, std::chrono::steady_clock::now()});
  }
  return Pending(state);
}

void Messenger::run_outbox(Link& link) {
  while (true) {
    Outgoing next;
    {
      std::unique_lock lock(link.send_mutex);
      while (link.outgoing.empty() && !setup_.stop->load()) {
        link.send_changed.wait_for(lock, std::chrono::milliseconds(500));
      }
      if (link.outgoing.empty()) return;
      next = std::move(link.outgoing.front());
      link.outgoing.pop_front();
      link.writing = true;
    }
    std::exception_ptr problem;
    try {
      Guard guard(*setup_.control, *setup_.stop, [&] { return describe("send to", link.peer, next.tag, next.bytes); });
      const MessageHead head = {next.tag, next.bytes};
      link.stream->write(&head, sizeof head, guard);
      link.stream->write(next.data, static_cast<size_t>(next.bytes), guard);
    } catch (...) {
      problem = std::current_exception();
    }
    {
      const std::lock_guard lock(link.send_mutex);
      link.writing = false;
    }
    next.state->finish(problem);
  }
}

void Messenger::run_inbox(Link& link) {
  try {
    while (true) {
      // Between messages the wait is as long as nobody asks for one.
      Guard guard(*setup_.control, *setup_.stop, [&] {
        const std::lock_guard lock(link.receive_mutex);
        if (link.wanted.empty()) return describe("receive from", link.peer, 0, 0);
        const Wanted& first = link.wanted.front();
        return describe("receive from", link.peer, first.tag, first.bytes);
      });
      take_message(link, guard);
    }
  } catch (...) {
    const std::lock_guard lock(link.receive_mutex);
    link.broken = std::current_exception();
    for (Wanted& wanted : link.wanted) wanted.state->finish(link.broken);
    link.wanted.clear();
  }
}

void Messenger::take_message(Link& link, Guard& guard) {
  MessageHead head;
  guard.limit_by([&] {  // the oldest receive decides how long is too long
    const std::lock_guard lock(link.receive_mutex);
    return link.wanted.empty() ? Guard::Clock::now() : link.wanted.front().since;
  });
  link.stream->read(&head, sizeof head, guard);
  guard.limit_by(nullptr);
  const auto take_wanted = [&]() -> std::optional<Wanted> {
    for (auto wanted = link.wanted.begin(); wanted != link.wanted.end(); ++wanted) {
      if (wanted->tag != head.tag) continue;
      Wanted taken = std::move(*wanted);
      link.wanted.erase(wanted);
      return taken;
    }
    return std::nullopt;
  };
  std::optional<Wanted> target;
  {
    const std::lock_guard lock(link.receive_mutex);
    target = take_wanted();
  }
  if (target && target->bytes == head.bytes) {
    try {
      link.stream->read(target->data, static_cast<size_t>(head.bytes), guard);
    } catch (...) {
      target->state->finish(std::current_exception());
      throw;
    }
    return target->state->finish();
  }
  Early early = {static_cast<int>(head.tag), std::vector<std::byte>(static_cast<size_t>(head.bytes))};
  if (head.bytes > 0) link.stream->read(early.bytes.data(), static_cast<size_t>(head.bytes), guard);
  const std::lock_guard lock(link.receive_mutex);
  if (!target) target = take_wanted();  // asked for while it was read
  if (!target) {
    link.early.push_back(std::move(early));
    return;
  }
  if (target->bytes != head.bytes) {
    target->state->finish(std::make_exception_ptr(CommunicationError(
        fmt::format("a message of {} bytes was sent where one of {} is received ({})", head.bytes, target->bytes,
                    call_text(describe("receive from", link.peer, target->tag, target->bytes))))));
    return;
  }
  if (head.bytes > 0) std::memcpy(target->data, early.bytes.data(), early.bytes.size());
  target->state->finish();
}

}  // namespace assay::comm
