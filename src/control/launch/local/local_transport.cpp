#include "launch/local/local_transport.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "launch/host/device_addresses.h"
#include "launch/host/job.h"
#include "launch/host/lease_keeper.h"
#include "launch/host/port.h"

namespace assay {

namespace {

constexpr double kLocalStartSeconds = 60;  // an earlier attempt may have to end first

class LocalSession : public NodeSession {
 public:
  LocalSession(const LaunchRequest& request, int node)
      : host_(request.placement.nodes.at(static_cast<size_t>(node)).host), folder_(request.folder), node_(node) {}

  void prepare() override { make_folder(folder_); }

  std::vector<int> free_ports(int count) override {
    std::vector<int> ports;
    for (int i = 0; i < count; ++i) ports.push_back(free_port());
    return ports;
  }

  std::map<int, std::string> device_addresses() override { return read_device_addresses().addresses; }

  fs::path there(const fs::path& path) const override { return path; }

  void start(const LaunchRequest& job) override {
    job_ = job;
    write_job(folder_, job);
    keeper_ = std::make_unique<LeaseKeeper>(folder_, std::vector<int>{node_}, job.site.lease_s);
    const fs::path program = host_.program.empty() ? program_folder() / "assay" : host_.program;
    const CapturedOutput said =
        capture({.argv = {program.string(), "supervise", folder_.string(), "--node", std::to_string(node_)}},
                kLocalStartSeconds);
    if (said.status.ok()) return;
    std::string why(trim(said.err));
    if (why.rfind("error: ", 0) == 0) why = why.substr(7);
    throw InfrastructureError(fmt::format("{}: {}", host_.name, why.empty() ? said.status.text() : why));
  }

  bool attach(const LaunchRequest& job) override {
    job_ = job;
    job_->folder = folder_;
    if (!state_of_attempt(*job_)) return false;
    keeper_ = std::make_unique<LeaseKeeper>(folder_, std::vector<int>{node_}, job.site.lease_s);
    return true;
  }

  NodeReport look() override {
    NodeReport report;
    if (!job_) return {.gone = "it was not started"};
    report.state = state_of_attempt(*job_);
    if (report.state && report.state->ended()) return report;
    if (supervisor_lives(folder_, node_)) return report;
    report.state = state_of_attempt(*job_);  // its last word comes before it lets go of its lock
    if (report.state && report.state->ended()) return report;
    end_leftovers(*job_);
    report.gone = report.state ? fmt::format("its supervisor (process {}) was killed", report.state->pid)
                               : "it has no supervisor";
    return report;
  }

  void request_stop(double grace_s) override {
    try {
      write_stop(folder_, node_, grace_s);
    } catch (const InfrastructureError&) {
      keeper_.reset();  // without a lease it ends too
    }
  }

  std::vector<std::string> collect(const std::vector<std::string>& names) override {
    std::vector<std::string> found;
    for (const std::string& name : names) {
      if (fs::exists(folder_ / name)) found.push_back(name);
    }
    return found;
  }

 private:
  const Host host_;
  const fs::path folder_;
  const int node_;
  std::optional<LaunchRequest> job_;
  std::unique_ptr<LeaseKeeper> keeper_;
};

}  // namespace

std::string LocalTransport::master_address(const LaunchRequest&) const { return "127.0.0.1"; }

std::unique_ptr<NodeSession> LocalTransport::open(const LaunchRequest& request, int node) {
  return std::make_unique<LocalSession>(request, node);
}

}  // namespace assay
