#include "comm/net_fabric.h"

#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <set>
#include <thread>

#include "base/error.h"

namespace assay::comm {

namespace {

constexpr auto kPoke = std::chrono::milliseconds(25);  // how late a wait notices that it should end
constexpr auto kForever = std::chrono::hours(24 * 365);

// Gloo's rendezvous over the control channel.
class ControlStore : public gloo::rendezvous::Store {
 public:
  explicit ControlStore(Control& control) : control_(control) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    control_.set("gloo " + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = control_.get("gloo " + key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) control_.get("gloo " + key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

 private:
  Control& control_;
};

// Gloo writes to sockets without asking that a closed one be no signal.
void ignore_closed_pipes() {
  struct sigaction current = {};
  if (::sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

class GlooTransfer;

// Gloo's waits end at their own time limit, and then break all connections; so they get none, and this wakes them from
// time to time to look around.
class NetFabric::Impl {
 public:
  Impl(Control& control, const std::string& address);
  ~Impl();
  void add(GlooTransfer* transfer);
  void remove(GlooTransfer* transfer);

  Control& control_;
  std::shared_ptr<gloo::rendezvous::Context> context_;

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<GlooTransfer*> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

class GlooTransfer : public NetTransfer {
 public:
  GlooTransfer(std::shared_ptr<NetFabric::Impl> fabric, int rank, bool sends, uint64_t slot, void* data, size_t bytes)
      : fabric_(std::move(fabric)), rank_(rank), sends_(sends) {
    try {
      buffer_ = fabric_->context_->createUnboundBuffer(data, bytes);
      if (sends) {
        buffer_->send(rank, slot);
      } else {
        buffer_->recv(rank, slot);
      }
    } catch (const gloo::Exception& error) {
      broke(error.what());
    }
  }

  void wait(Guard& guard) override {
    guard.restart();
    fabric_->add(this);
    try {
      while (!wait_once()) guard.check();
    } catch (const gloo::Exception& error) {
      fabric_->remove(this);
      broke(error.what(), call_text(guard.describe()));
    } catch (...) {
      fabric_->remove(this);
      throw;
    }
    fabric_->remove(this);
  }

  void poke() { sends_ ? buffer_->abortWaitSend() : buffer_->abortWaitRecv(); }

 private:
  bool wait_once() {
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(kForever);
    return sends_ ? buffer_->waitSend(limit) : buffer_->waitRecv(limit);
  }

  // The control channel knows better what happened, as soon as it has heard of it.
  [[noreturn]] void broke(const std::string& what, const std::string& where = {}) {
    Health& health = fabric_->control_.health();
    health.wait_failed(2.0);
    health.fail(fmt::format("the connection to rank {} broke: {}", rank_, what));
    health.check(where);
    throw InternalError("a job that failed is whole");
  }

  const std::shared_ptr<NetFabric::Impl> fabric_;
  const int rank_;
  const bool sends_;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

NetFabric::Impl::Impl(Control& control, const std::string& address) : control_(control) {
  ignore_closed_pipes();
  const WorldOptions& options = control.options();
  try {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = address;
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attributes);
    context_ = std::make_shared<gloo::rendezvous::Context>(options.rank, options.world_size);
    // Gloo multiplies this by five while it connects, and our waits do not use it.
    const double patience_s = std::min(options.time_limit_s, 10.0) / 5;
    context_->setTimeout(std::chrono::milliseconds(static_cast<int64_t>(patience_s * 1000)));
    ControlStore store(control);
    context_->connectFullMesh(store, device);
  } catch (const gloo::Exception& error) {
    control.health().check("connecting");
    const std::string problem = fmt::format(
        "rank {} at address {} cannot connect to all others ({}); is that the "
        "network interface by which they reach each other?",
        options.rank, address, error.what());
    control.fail(problem);
    throw CommunicationError(problem);
  }
  thread_ = std::thread([this] { run(); });
}

NetFabric::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void NetFabric::Impl::add(GlooTransfer* transfer) {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) changed_.notify_all();
  waiting_.insert(transfer);
}

void NetFabric::Impl::remove(GlooTransfer* transfer) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(transfer);
}

void NetFabric::Impl::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (waiting_.empty()) {
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    } else {
      changed_.wait_for(lock, kPoke, [&] { return stopping_; });
      for (GlooTransfer* transfer : waiting_) transfer->poke();
    }
  }
}

NetFabric::NetFabric(Control& control, const std::string& address) : impl_(std::make_shared<Impl>(control, address)) {}

NetFabric::~NetFabric() = default;

std::unique_ptr<NetTransfer> NetFabric::send(int rank, uint64_t slot, const void* data, size_t bytes) {
  return std::make_unique<GlooTransfer>(impl_, rank, true, slot, const_cast<void*>(data), bytes);
}

std::unique_ptr<NetTransfer> NetFabric::receive(int rank, uint64_t slot, void* data, size_t bytes) {
  return std::make_unique<GlooTransfer>(impl_, rank, false, slot, data, bytes);
}

}  // namespace assay::comm
