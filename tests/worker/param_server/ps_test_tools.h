// Servers in threads, and rows as plain numbers, for the tests of parameter servers.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "param_server/client.h"
#include "param_server/server.h"

namespace assay::ps {

inline constexpr const char* kTestJob = "secret of the test";

inline RowBlock block_of(uint32_t table, std::vector<int64_t> ids, const std::vector<double>& values) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {.table = table, .ids = std::move(ids), .values = {bytes, bytes + values.size() * sizeof(double)}};
}

inline std::vector<double> numbers_of(const std::vector<std::byte>& bytes) {
  std::vector<double> out(bytes.size() / sizeof(double));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

inline TableSpec f64_table(const std::string& name, int64_t width, UpdateOptions update = {}, InitRule init = {}) {
  return {.name = name, .width = width, .element = Element::F64, .init = init, .update = std::move(update)};
}

inline Client::Rows rows_of(uint32_t table, const std::vector<int64_t>& ids, std::vector<double>& values) {
  return {.table = table, .ids = ids, .values = values.data()};
}

struct TestJob {
  int num_servers = 1;
  int num_trainers = 1;
  Mode mode = Mode::Sync;
  double time_limit_s = 10;
  double return_limit_s = 0.3;
  fs::path folder = {};
  double idle_limit_s = 60;
  int64_t max_bytes = int64_t{1} << 30;
};

inline ServerOptions server_options(const TestJob& job, int index, int port = 0) {
  ServerOptions options{.endpoint = {"127.0.0.1", port}, .shard = {}, .idle_limit_s = job.idle_limit_s};
  options.shard.server = {index, job.num_servers};
  options.shard.num_trainers = job.num_trainers;
  options.shard.mode = job.mode;
  options.shard.job = kTestJob;
  options.shard.time_limit_s = job.time_limit_s;
  options.shard.return_limit_s = job.return_limit_s;
  options.shard.checkpoint_folder = job.folder;
  options.shard.max_bytes = job.max_bytes;
  return options;
}

inline ClientOptions client_options(const TestJob& job, std::vector<Endpoint> servers, int trainer) {
  return {.servers = std::move(servers),
          .trainer = trainer,
          .num_trainers = job.num_trainers,
          .mode = job.mode,
          .job = kTestJob,
          .time_limit_s = job.time_limit_s,
          .connect_limit_s = job.time_limit_s};
}

// Servers in threads of this process.
class TestServers {
 public:
  explicit TestServers(const TestJob& job) : job_(job) {
    for (int i = 0; i < job.num_servers; ++i) {
      servers_.push_back(std::make_unique<Server>(server_options(job, i)));
      endpoints_.push_back({"127.0.0.1", servers_.back()->port()});
    }
    for (auto& server : servers_) {
      threads_.emplace_back([this, &server] {
        try {
          server->run();
        } catch (const Error& error) {
          ended_with_ = error.what();
        }
      });
    }
  }
  ~TestServers() {
    for (auto& server : servers_) server->stop("the test ends");
    wait();
  }
  void wait() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  Server& server(int index) { return *servers_[index]; }
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  std::unique_ptr<Client> client(int trainer) const {
    return std::make_unique<Client>(client_options(job_, endpoints_, trainer));
  }
  const std::string& ended_with() const { return ended_with_; }  // after wait(), of one server

 private:
  TestJob job_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<Endpoint> endpoints_;
  std::vector<std::thread> threads_;
  std::string ended_with_;
};

// Runs one thread a trainer; returns what each threw, "" for nothing.
inline std::vector<std::string> run_trainers(int count, const std::function<void(int)>& work) {
  std::vector<std::string> failures(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        work(i);
      } catch (const std::exception& error) {
        failures[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

}  // namespace assay::ps
