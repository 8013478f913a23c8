#include "launch/ssh/ssh_transport.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "launch/host/job.h"
#include "launch/host/lease_keeper.h"
#include "launch/multi_node/frames.h"
#include "launch/multi_node/inbox.h"
#include "launch/ssh/ssh_command.h"
#include "launch/ssh/ssh_host.h"

namespace assay {

namespace {

constexpr double kSshStartSeconds = 90;  // of a supervisor; an earlier attempt may have to end first
constexpr double kDeafSeconds = 10;      // a relay that says nothing for so long is not worth waiting for
constexpr double kFirstRetry = 0.2;      // seconds until a lost connection is tried again, twice as long each time
constexpr double kLongestRetry = 5;
constexpr long kJobsAConnection = 4;  // sshd allows ten sessions on one, by default

// $1 the step's folder there, $2 the job's file, $3 assay, $4 the node; input: the job.
constexpr const char* kStartJob =
    "umask 077; mkdir -p \"$1\" && cat > \"$1/$2.tmp\" && mv \"$1/$2.tmp\" \"$1/$2\" && exec \"$3\" supervise \"$1\" "
    "--node \"$4\"";

std::string without_error_mark(const std::string& said) {
  const std::string text = valid_utf8(trim(said));
  return text.rfind("error: ", 0) == 0 ? text.substr(7) : text;
}

// One node of one job. A thread of its own holds the relay: it brings files and states, keeps the lease, and connects
// again when the connection is lost.
class SshSession : public NodeSession {
 public:
  SshSession(std::shared_ptr<SshConnection> connection, const LaunchRequest& request, int node)
      : host_(std::move(connection), request.run_id),
        request_(request),
        name_(request.placement.nodes.at(static_cast<size_t>(node)).host.name),
        node_(node),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    request_.ranks.node_rank = node;
  }
  ~SshSession() override {
    ending_ = true;
    wake();
    if (thread_.joinable()) thread_.join();
  }

  void prepare() override { places_ = host_.prepare(files_of_step(request_)); }
  std::vector<int> free_ports(int count) override { return host_.free_ports(places_, count); }
  std::map<int, std::string> device_addresses() override { return host_.device_addresses(places_); }
  fs::path there(const fs::path& path) const override {
    return (places_.run / path.lexically_relative(request_.command.cwd)).lexically_normal();
  }

  void start(const LaunchRequest& job) override {
    inbox_ = Inbox::begin(request_.folder, job, {.host = name_, .run = places_.run, .program = places_.program});
    lease_s_ = job.site.lease_s;
    write_job(request_.folder, job);
    const std::string file = job_file_name(JobFile::Job, node_);
    try {
      const CapturedOutput out = host_.connection().run(
          {"sh", "-c", kStartJob, "sh", job.folder.string(), file, places_.program.string(), std::to_string(node_)},
          "starting the job", read_limited(request_.folder / file, 64 << 20), kSshStartSeconds);
      if (!out.status.ok()) throw refusal(out);
    } catch (const HostError&) {
      begin_following();  // it may run all the same, and is to be stopped then
      throw;
    }
    begin_following();
    wait_for_word();
  }

  bool attach(const LaunchRequest& job) override {
    auto inbox = Inbox::resume(request_.folder, job);
    if (!inbox || inbox->place().host != name_) return false;
    places_ = {.run = inbox->place().run, .program = inbox->place().program};
    inbox_ = std::move(inbox);
    lease_s_ = job.site.lease_s;
    begin_following();
    wait_for_word();
    return true;
  }

  NodeReport look() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!thread_.joinable()) return {.gone = "it was not started"};
    NodeReport report = report_;
    report.silent_s = heard_.seconds();
    return report;
  }

  void request_stop(double grace_s) override {
    stop_grace_ = grace_s;
    wake();
  }

  std::vector<std::string> collect(const std::vector<std::string>& names) override {
    for (const std::string& name : names) {
      if (!is_inner_path(name))
        throw ConfigError(fmt::format("'{}': no path in the folder of a step", valid_utf8(name)));
    }
    host_.connection().ensure();
    try {
      return host_.collect(there(request_.folder), request_.folder, names);
    } catch (const DataError& error) {
      throw HostError(HostProblem::Damaged, fmt::format("{}: {}", name_, error.what()));
    }
  }

 private:
  HostError refusal(const CapturedOutput& out) const {
    const bool by_assay = out.status.code == kExitInfrastructure || out.status.code == kExitUsage;
    if (by_assay && out.err.rfind("error: ", 0) == 0) {
      return HostError(HostProblem::Other, fmt::format("{}: {}", name_, without_error_mark(out.err)));
    }
    return explain_failure(host_.connection().host(), "starting the job", out.status.text(), out.err);
  }

  void begin_following() {
    const std::lock_guard<std::mutex> lock(mutex_);
    heard_.restart();
    thread_ = std::thread([this] { follow(); });
  }

  // Until the relay has told how things stand. A connection that is lost is tried again while the lease lasts.
  void wait_for_word() {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto known = [this] { return report_.state.has_value() || !report_.gone.empty(); };
    if (told_.wait_for(lock, std::chrono::duration<double>(std::max(lease_s_, kDeafSeconds)), known)) return;
    throw HostError(HostProblem::Timeout,
                    fmt::format("{}: nothing was heard of the job there: {}", name_,
                                report_.trouble.empty() ? "its relay says nothing" : report_.trouble));
  }

  void wake() {
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  // Sleeps until the time is over, or something is asked for.
  void nap(double seconds) {
    pollfd watched{wake_.get(), POLLIN, 0};
    if (!ending_) ::poll(&watched, 1, static_cast<int>(seconds * 1000));
    calm();
  }
  void calm() {
    uint64_t count;
    (void)!::read(wake_.get(), &count, sizeof count);
  }

  bool finished() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return !report_.gone.empty() || (report_.state && report_.state->ended());
  }

  void follow() {
    double retry_s = kFirstRetry;
    while (!ending_ && !finished()) {
      try {
        host_.connection().ensure(&ending_);
        if (serve_relay()) retry_s = kFirstRetry;
      } catch (const std::exception& error) {
        set_trouble(error.what());
      }
      if (ending_ || finished()) return;
      nap(retry_s);
      retry_s = std::min(2 * retry_s, kLongestRetry);
    }
  }

  void set_trouble(const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    report_.trouble = text;
  }

  // One relay, as long as it lasts. True: it said something.
  bool serve_relay() {
    RemoteProcess relay = host_.connection().start(
        {places_.program.string(), "relay", there(request_.folder).string(), "--node", std::to_string(node_)});
    FrameReader reader;
    tell(relay, encode_have(have()));
    const Stopwatch begun;
    Stopwatch heard, leased;
    double told_grace = -1;
    while (!ending_ && !finished()) {
      if (const double grace = stop_grace_; grace >= 0 && grace != told_grace) {
        tell(relay, fmt::format("stop {}\n", grace));
        told_grace = grace;
      }
      if (leased.seconds() >= lease_period_s(lease_s_)) {
        tell(relay, "lease\n");
        leased.restart();
      }
      pollfd watched[2] = {{relay.from.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      ::poll(watched, 2, std::max(1, static_cast<int>(1000 * (lease_period_s(lease_s_) - leased.seconds()))));
      if (watched[1].revents != 0) calm();
      if (watched[0].revents != 0) {
        if (!hear(relay, reader)) break;
        heard.restart();
      }
      if (heard.seconds() > kDeafSeconds) break;
    }
    if (!ending_ && !finished()) note_loss(relay, reader.greeted());
    relay.to.reset();
    return reader.greeted();
  }

  std::map<std::string, int64_t> have() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return inbox_->have();
  }

  // What does not fit into the pipe now is said again in a moment, or nobody is there to hear it.
  static void tell(RemoteProcess& relay, const std::string& line) {
    (void)!::write(relay.to.get(), line.data(), line.size());
  }

  // False: the relay has ended.
  bool hear(RemoteProcess& relay, FrameReader& reader) {
    char block[64 << 10];
    const ssize_t got = ::read(relay.from.get(), block, sizeof block);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    reader.add(std::string_view(block, static_cast<size_t>(got)));
    while (const auto frame = reader.next()) take(*frame);
    return true;
  }

  void take(const Frame& frame) {
    const std::lock_guard<std::mutex> lock(mutex_);
    heard_.restart();
    report_.trouble.clear();
    switch (frame.kind) {
      case Frame::Kind::Hello:
      case Frame::Kind::Beat: return;
      case Frame::Kind::Bytes:
      case Frame::Kind::Cut: inbox_->accept(frame); return;
      case Frame::Kind::Gone: report_.gone = valid_utf8(frame.text); break;
      case Frame::Kind::State: take_state(frame); break;
    }
    told_.notify_all();
  }

  void take_state(const Frame& frame) {
    const std::string where = fmt::format("the state of {}", name_);
    JobState state = job_state_of(parse_json(frame.bytes, where), where);
    if (state.run_id == request_.run_id && state.attempt == request_.attempt && state.node == node_) {
      keep_copy(state);
      report_.state = std::move(state);
    }
  }

  // For the results, which tell what the host is. Without one they lack that, and nothing else.
  void keep_copy(const JobState& state) const {
    try {
      write_state(request_.folder, state);
    } catch (const InfrastructureError&) {
    }
  }

  void note_loss(RemoteProcess& relay, bool greeted) {
    const auto ended = relay.process.wait_for(1);
    const std::string said = relay.errors();
    const std::lock_guard<std::mutex> lock(mutex_);
    // Its own refusal is final: the job's file is not there, or no program is.
    const bool refused = !greeted && ended && ended->code && *ended->code != 255 && *ended->code != 0;
    if (refused) {
      report_.gone = fmt::format("the job cannot be followed there ({}): {}", ended->text(), without_error_mark(said));
      told_.notify_all();
      return;
    }
    report_.trouble = !ended
                          ? std::string("its relay does not answer")
                          : explain_failure(host_.connection().host(), "following the job", ended->text(), said).what();
  }

  SshHost host_;
  LaunchRequest request_;
  const std::string name_;
  const int node_;
  SshPlaces places_;
  double lease_s_ = 60;
  FileDescriptor wake_;
  std::atomic<bool> ending_{false};
  std::atomic<double> stop_grace_{-1};  // negative: not asked to stop

  std::mutex mutex_;
  std::condition_variable told_;
  // Guarded by mutex_.
  std::optional<Inbox> inbox_;
  NodeReport report_;
  Stopwatch heard_;

  std::thread thread_;
};

std::string connection_key(const Host& host) {
  return join({host.name, host.reached_at(), host.user, std::to_string(host.port), host.identity_file.string(),
               host.known_hosts.string()},
              "\n");
}

}  // namespace

SshTransport::SshTransport() : sockets_(std::make_shared<SocketFolder>()) {
  ::signal(SIGPIPE, SIG_IGN);  // a relay may end while it is told something
}

std::string SshTransport::master_address(const LaunchRequest& request) const {
  return request.ranks.nnodes == 1 ? "127.0.0.1" : request.placement.nodes.at(0).host.reached_at();
}

std::unique_ptr<NodeSession> SshTransport::open(const LaunchRequest& request, int node) {
  return std::make_unique<SshSession>(connection_to(request.placement.nodes.at(static_cast<size_t>(node)).host),
                                      request, node);
}

std::shared_ptr<SshConnection> SshTransport::connection_to(const Host& host) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto& known = connections_[connection_key(host)];
  for (const auto& connection : known) {
    if (connection.use_count() <= kJobsAConnection) return connection;
  }
  known.push_back(std::make_shared<SshConnection>(host, sockets_));
  return known.back();
}

}  // namespace assay
