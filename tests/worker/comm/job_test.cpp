// What the other tests of comm are made of: see job.h.
#include "job.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

namespace assay::comm_test {

int free_port() {
  const FileDescriptor probe(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ::bind(probe.get(), reinterpret_cast<sockaddr*>(&address), length);
  ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

Job::Job(int world_size, Environment environment)
    : world_size_(world_size), environment_(std::move(environment)), port_(free_port()) {}

void Job::start(int rank, const std::vector<std::string>& arguments, const Environment& more,
                const std::vector<std::string>& before) {
  ProcessOptions options;
  options.argv = before;
  options.argv.push_back(kRankProgram);
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.env = {{"RANK", std::to_string(rank)},
                 {"WORLD_SIZE", std::to_string(world_size_)},
                 {"MASTER_PORT", std::to_string(port_)}};
  for (const auto& [name, value] : environment_) options.env[name] = value;
  for (const auto& [name, value] : more) options.env[name] = value;
  options.output_file = folder_.path() / std::to_string(processes_.size());
  processes_[static_cast<int>(processes_.size())] = std::make_unique<Process>(Process::start(options));
}

void Job::start_all(const std::vector<std::string>& arguments) {
  for (int rank = 0; rank < world_size_; ++rank) start(rank, arguments);
}

std::string Job::output(int number) const {
  const auto file = folder_.path() / std::to_string(number);
  return fs::exists(file) ? read_file(file) : "";
}

void Job::await(const std::string& text) {
  const Stopwatch watch;
  for (const auto& [number, process] : processes_) {
    while (output(number).find(text) == std::string::npos) {
      ASSERT_LT(watch.seconds(), 200) << "process " << number << " says: " << output(number);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

void Job::kill(int number, int signal) { ::kill(processes_.at(number)->pid(), signal); }

Job::End Job::end(int number, double limit_s) {
  Process& process = *processes_.at(number);
  auto status = process.wait_for(limit_s);
  if (!status) {
    status = process.stop(0);
    status->timed_out = true;
  }
  return {*status, output(number)};
}

void expect_fine(int world_size, const std::vector<std::string>& arguments, const Environment& environment) {
  Job job(world_size, environment);
  job.start_all(arguments);
  for (int rank = 0; rank < world_size; ++rank) {
    const Job::End end = job.end(rank);
    EXPECT_TRUE(end.status.ok()) << "rank " << rank << " of " << world_size << ": " << end.status.text() << "\n"
                                 << end.output;
  }
}

}  // namespace assay::comm_test
