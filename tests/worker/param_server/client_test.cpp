// Whole jobs: servers and trainers, in threads and in processes.
#include "param_server/client.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cmath>
#include <future>

#include "base/error.h"
#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "base/time.h"
#include "param_server/update.h"
#include "ps_test_tools.h"

namespace assay::ps {

namespace {

constexpr int kNumIds = 40;
constexpr int kWidth = 3;

// A gradient that depends on the weights, the step and the trainer, so that any wrong order or stale row shows.
double gradient_at(double weight, int64_t id, int k, int64_t step, int trainer) {
  return 0.3 * weight + std::sin(static_cast<double>(id + 5 * k + 7 * step + 11 * trainer));
}

std::vector<int64_t> batch_of(int64_t step, int trainer) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 6; ++i) ids.push_back((step * 5 + trainer * 3 + i * i) % kNumIds);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// A signal takes a moment, in which a thread may still answer: returns when none runs any more.
void stop_process(int pid) {
  ::kill(pid, SIGSTOP);
  const auto is_stopped = [](const fs::path& task) {
    const std::string stat = read_file(task / "stat");
    return stat.at(stat.rfind(')') + 2) == 'T';
  };
  const fs::path tasks = fs::path("/proc") / std::to_string(pid) / "task";
  while (!std::all_of(fs::directory_iterator(tasks), fs::directory_iterator(), is_stopped)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::vector<TableSpec> job_tables() {
  return {f64_table("rows", kWidth, {.name = "Adam", .weight_decay = 0.01}),
          f64_table("drawn", 1, {.name = "Adagrad"}, {.kind = InitRule::Kind::Normal, .scale = 1, .seed = 3})};
}

double first_value(int64_t id, int k) { return std::cos(static_cast<double>(id * kWidth + k)); }

// Trains from the step that `client` starts at. Returns nothing: the servers have the result.
void train_steps(Client& client, int64_t begin, int64_t end, int64_t save_at = -1) {
  const int trainer = client.options().trainer;
  client.create_tables(job_tables());
  client.start(begin);
  for (int64_t step = begin; step < end; ++step) {
    const auto ids = batch_of(step, trainer);
    std::vector<double> rows, drawn(ids.size());
    for (const int64_t id : ids) {
      for (int k = 0; k < kWidth; ++k) rows.push_back(first_value(id, k));
    }
    client.pull(step, {rows_of(0, ids, rows), rows_of(1, ids, drawn)});
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = gradient_at(rows[i], ids[i / kWidth], static_cast<int>(i % kWidth), step, trainer);
    }
    for (size_t i = 0; i < ids.size(); ++i) drawn[i] = gradient_at(drawn[i], ids[i], 9, step, trainer);
    client.push(step, 0.1 / static_cast<double>(step + 1), {rows_of(0, ids, rows), rows_of(1, ids, drawn)});
    if (step + 1 == save_at && trainer == 0) client.save(step + 1);
  }
  client.barrier();
}

using AllRows = std::map<std::pair<uint32_t, int64_t>, std::vector<double>>;

AllRows rows_on_servers(Client& client) {
  AllRows all;
  for (const uint32_t table : {0u, 1u}) {
    client.pull_all(table, [&](const RowBlock& block) {
      const auto values = numbers_of(block.values);
      const size_t width = values.size() / block.ids.size();
      for (size_t i = 0; i < block.ids.size(); ++i) {
        all[{table, block.ids[i]}] = {values.begin() + i * width, values.begin() + (i + 1) * width};
      }
    });
  }
  return all;
}

// The same training in one process with one table each and plain sums.
AllRows trained_alone(int num_trainers, int64_t num_steps) {
  std::vector<std::unique_ptr<Table>> tables;
  for (const TableSpec& spec : job_tables()) tables.push_back(Table::make(spec));
  for (int64_t id = 0; id < kNumIds; ++id) {
    std::vector<double> values;
    for (int k = 0; k < kWidth; ++k) values.push_back(first_value(id, k));
    const RowBlock block = block_of(0, {id}, values);
    tables[0]->init(block.ids, block.values.data());
  }
  std::vector<bool> used(kNumIds, false);
  for (int64_t step = 0; step < num_steps; ++step) {
    for (int t = 0; t < 2; ++t) {
      const int width = t == 0 ? kWidth : 1;
      std::vector<RowBlock> blocks;
      for (int trainer = 0; trainer < num_trainers; ++trainer) {
        const auto ids = batch_of(step, trainer);
        std::vector<std::byte> bytes(ids.size() * width * sizeof(double));
        std::vector<uint8_t> present(ids.size());
        tables[t]->pull(ids, bytes.data(), present.data());
        auto values = numbers_of(bytes);
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = gradient_at(values[i], ids[i / width], t == 0 ? static_cast<int>(i % width) : 9, step, trainer);
        }
        for (const int64_t id : ids) used[id] = true;
        blocks.push_back(block_of(0, ids, values));
      }
      std::vector<const RowBlock*> pointers;
      for (const RowBlock& block : blocks) pointers.push_back(&block);
      tables[t]->update(pointers, {0.1 / static_cast<double>(step + 1), step + 1});
    }
  }
  AllRows all;
  for (uint32_t t = 0; t < 2; ++t) {
    const TableState state = tables[t]->state();
    const auto values = numbers_of(state.weights);
    const size_t width = t == 0 ? kWidth : 1;
    for (size_t i = 0; i < state.ids.size(); ++i) {
      if (used[state.ids[i]]) all[{t, state.ids[i]}] = {values.begin() + i * width, values.begin() + (i + 1) * width};
    }
  }
  return all;
}

// --- servers as processes: this program again, which serves instead of testing

constexpr const char* kServeVariable = "ASSAY_TEST_PS_SERVER";

class ServeInstead final : public ::testing::Environment {
  void SetUp() override {
    const char* description = std::getenv(kServeVariable);
    if (!description) return;
    const auto words = split(description, ' ');
    const TestJob job{.num_servers = std::stoi(words[1]), .num_trainers = std::stoi(words[2]), .folder = words[4]};
    Server(server_options(job, std::stoi(words[0]), std::stoi(words[3]))).run();
    std::_Exit(0);
  }
};
[[maybe_unused]] const auto* const kServeInstead = ::testing::AddGlobalTestEnvironment(new ServeInstead);

Process start_server_process(const TestJob& job, int index, int port, const fs::path& log) {
  return Process::start({.argv = {"/proc/self/exe", "--gtest_filter=PsTypes.NamesModes"},
                         .env = {{"ASSAY_TEST_PS_SERVER", fmt::format("{} {} {} {} {}", index, job.num_servers,
                                                                      job.num_trainers, port, job.folder.string())}},
                         .output_file = log});
}

int unused_port() { return port_of(listen_at({"127.0.0.1", 0})); }

}  // namespace

TEST(PsClient, TrainsAsOneProcessWithAnyNumberOfServers) {
  const AllRows wanted = trained_alone(3, 12);
  for (const int num_servers : {1, 2, 3}) {
    TestServers servers({.num_servers = num_servers, .num_trainers = 3});
    AllRows got;
    const auto failures = run_trainers(3, [&](int trainer) {
      const auto client = servers.client(trainer);
      train_steps(*client, 0, 12);
      if (trainer == 1) got = rows_on_servers(*client);
      client->goodbye();
    });
    EXPECT_EQ(failures, std::vector<std::string>(3));
    EXPECT_EQ(got, wanted) << num_servers << " servers";  // bit for bit
  }
}

TEST(PsClient, ContinuesAfterAServerWasKilledAndRestarted) {
  const TempFolder folder;
  const TestJob job{.num_servers = 2, .num_trainers = 3, .folder = folder.path() / "checkpoints"};
  std::vector<Endpoint> endpoints;
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 2; ++i) {
    endpoints.push_back({"127.0.0.1", unused_port()});
    processes.push_back(
        std::make_unique<Process>(start_server_process(job, i, endpoints[i].port, folder.path() / "log")));
  }
  // Eight steps with a checkpoint at five; then server 1 is killed and starts again from the checkpoint.
  std::promise<void> trained, restarted;
  const std::shared_future<void> may_go_on = restarted.get_future().share();
  auto trainers = std::async(std::launch::async, [&] {
    return run_trainers(3, [&](int trainer) {
      Client client(client_options(job, endpoints, trainer));
      train_steps(client, 0, 8, 5);
      if (trainer == 0) trained.set_value();
      may_go_on.wait();
      client.pull(8, {});
    });
  });
  ASSERT_EQ(trained.get_future().wait_for(std::chrono::seconds(200)), std::future_status::ready);
  ::kill(processes[1]->pid(), SIGKILL);
  processes[1]->wait();
  restarted.set_value();  // trainers meet a closed port first
  processes[1] = std::make_unique<Process>(start_server_process(job, 1, endpoints[1].port, folder.path() / "log"));
  auto failures = trainers.get();
  for (const std::string& failure : failures) {
    EXPECT_NE(failure.find("parameter server 1"), std::string::npos) << failure;
    EXPECT_NE(failure.find("started from its checkpoint of step 5"), std::string::npos) << failure;
  }
  // The trainers come again from their checkpoint: both servers are at step 5, and the end is the same.
  AllRows got;
  failures = run_trainers(3, [&](int trainer) {
    Client client(client_options(job, endpoints, trainer));
    train_steps(client, 5, 12);
    if (trainer == 0) got = rows_on_servers(client);
    client.goodbye();
  });
  EXPECT_EQ(failures, std::vector<std::string>(3));
  EXPECT_EQ(got, trained_alone(3, 12));
  for (const auto& process : processes) EXPECT_EQ(process->wait().code, 0);
}

TEST(PsClient, NamesADeadTrainerToTheOthers) {
  TestServers servers({.num_servers = 2, .num_trainers = 3, .time_limit_s = 200});
  const Stopwatch watch;
  const auto failures = run_trainers(3, [&](int trainer) {
    const auto client = servers.client(trainer);
    client->create_tables(job_tables());
    client->start(0);
    if (trainer == 1) return;  // closes its connections without a word
    client->push(0, 1, {});
    client->pull(1, {});
  });
  EXPECT_EQ(failures[1], "");
  for (const int other : {0, 2}) {
    EXPECT_NE(failures[other].find("trainer 1 was lost"), std::string::npos) << failures[other];
  }
  EXPECT_LT(watch.seconds(), 150);
}

TEST(PsClient, NamesASlowTrainerAtTheLimit) {
  TestServers servers({.num_servers = 1, .num_trainers = 2, .time_limit_s = 3});
  std::promise<void> named;
  const auto failures = run_trainers(2, [&](int trainer) {
    const auto client = servers.client(trainer);
    client->create_tables(job_tables());
    client->start(0);
    if (trainer == 1) return (void)named.get_future().wait_for(std::chrono::seconds(60));
    client->push(0, 1, {});
    try {
      client->pull(1, {});
    } catch (const CommunicationError&) {
      named.set_value();
      throw;
    }
  });
  EXPECT_NE(failures[0].find("waited 3 s for trainer 1"), std::string::npos) << failures[0];
}

// A server that is stopped still has its connections; who waits for an answer names it.
TEST(PsClient, NamesAStoppedServer) {
  const TempFolder folder;
  const TestJob job{.num_servers = 2, .num_trainers = 2, .time_limit_s = 4, .folder = folder.path() / "checkpoints"};
  std::vector<Endpoint> endpoints;
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 2; ++i) {
    endpoints.push_back({"127.0.0.1", unused_port()});
    processes.push_back(
        std::make_unique<Process>(start_server_process(job, i, endpoints[i].port, folder.path() / "log")));
  }
  ClientOptions options = client_options(job, endpoints, 0);
  options.connect_limit_s = 20;
  std::atomic<int> num_ready = 0;
  std::promise<void> stopped;
  const std::shared_future<void> may_go_on = stopped.get_future().share();
  auto trainers = std::async(std::launch::async, [&] {
    return run_trainers(2, [&](int trainer) {
      ClientOptions own = options;
      own.trainer = trainer;
      Client client(own);
      train_steps(client, 0, 3);
      ++num_ready;
      may_go_on.wait();
      const Stopwatch watch;
      try {
        client.pull(3, {});
      } catch (const CommunicationError&) {
        EXPECT_LT(watch.seconds(), 10 * job.time_limit_s);  // 1.3 of it, and a busy machine
        throw;
      }
    });
  });
  const Stopwatch watch;
  while (num_ready < 2 && watch.seconds() < 200) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  stop_process(processes[1]->pid());
  stopped.set_value();
  for (const std::string& failure : trainers.get()) {
    EXPECT_NE(failure.find("parameter server 1 at"), std::string::npos) << failure;
    EXPECT_NE(failure.find("does not answer"), std::string::npos) << failure;
  }
  for (const auto& process : processes) ::kill(process->pid(), SIGKILL);
}

TEST(PsClient, ReportsWhyATrainerFailed) {
  TestServers servers({.num_servers = 2, .num_trainers = 2});
  const auto failures = run_trainers(2, [&](int trainer) {
    const auto client = servers.client(trainer);
    client->create_tables(job_tables());
    client->start(0);
    if (trainer == 1) return client->fail("the loss is NaN");
    client->push(0, 1, {});
    client->pull(1, {});
  });
  EXPECT_NE(failures[0].find("trainer 1 failed: the loss is NaN"), std::string::npos) << failures[0];
}

TEST(PsClient, LoadsCheckpointsOfAnotherNumberOfServers) {
  const TempFolder folder;
  const AllRows wanted = trained_alone(2, 9);
  {
    TestServers servers({.num_servers = 3, .num_trainers = 2, .folder = folder.path()});
    run_trainers(2, [&](int trainer) {
      const auto client = servers.client(trainer);
      train_steps(*client, 0, 4, 4);
      client->goodbye();
    });
  }
  TestServers servers({.num_servers = 2, .num_trainers = 2, .folder = folder.path()});
  AllRows got;
  const auto failures = run_trainers(2, [&](int trainer) {
    const auto client = servers.client(trainer);
    train_steps(*client, 4, 9);
    if (trainer == 0) got = rows_on_servers(*client);
    client->goodbye();
  });
  EXPECT_EQ(failures, std::vector<std::string>(2));
  EXPECT_EQ(got, wanted);
}

namespace {

// A least-squares problem: rows w with f(w) = |w - target|^2 / 2 seen through noise, which all trainers share.
double target_of(int64_t id) { return 0.1 * static_cast<double>(id) - 1; }

double mean_error(const std::vector<double>& values) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += std::abs(values[i] - target_of(static_cast<int64_t>(i)));
  return sum / static_cast<double>(values.size());
}

const std::vector<int64_t>& convex_ids() {
  static const std::vector<int64_t> kIds = [] {
    std::vector<int64_t> ids(30);
    for (int64_t i = 0; i < 30; ++i) ids[i] = i;
    return ids;
  }();
  return kIds;
}

}  // namespace

TEST(PsClient, ConvergesWithAsync) {
  TestServers servers({.num_servers = 2, .num_trainers = 3, .mode = Mode::Async});
  std::vector<double> result(30);
  const auto failures = run_trainers(3, [&](int trainer) {
    const auto client = servers.client(trainer);
    client->create_tables({f64_table("w", 1, {.name = "SGD"}, {.kind = InitRule::Kind::Zero})});
    client->start(0);
    std::vector<double> values(30);
    for (int64_t step = 0; step < 100; ++step) {
      client->pull(step, {rows_of(0, convex_ids(), values)});
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] += 0.1 * std::sin(static_cast<double>(step * 31 + trainer + i)) - target_of(static_cast<int64_t>(i));
      }
      client->push(step, 0.05, {rows_of(0, convex_ids(), values)});
    }
    client->barrier();
    if (trainer == 0) client->pull(100, {rows_of(0, convex_ids(), result)});
    client->goodbye();
  });
  EXPECT_EQ(failures, std::vector<std::string>(3));
  EXPECT_LT(mean_error(result), 0.05);  // from 0.9
}

TEST(PsClient, ConvergesWithGeo) {
  TestServers servers({.num_servers = 2, .num_trainers = 3, .mode = Mode::Geo});
  std::vector<double> result(30);
  const auto failures = run_trainers(3, [&](int trainer) {
    const auto client = servers.client(trainer);
    client->create_tables({f64_table("w", 1)});
    client->start(0);
    std::vector<double> local(30, 0.0), base = local;
    client->pull(0, {rows_of(0, convex_ids(), local)});
    for (int64_t step = 0; step < 100; ++step) {
      // Each trainer sees two thirds of the rows.
      for (size_t i = 0; i < local.size(); ++i) {
        if (i % 3 == static_cast<size_t>(trainer)) continue;
        local[i] -= 0.05 * (local[i] - target_of(static_cast<int64_t>(i)));
      }
      if (step % 10 != 9) continue;
      std::vector<double> deltas;
      for (size_t i = 0; i < local.size(); ++i) deltas.push_back((local[i] - base[i]) / 3);
      client->add_deltas(step, {rows_of(0, convex_ids(), deltas)});
      client->pull_changed(0, [&](const RowBlock& block) {
        const auto values = numbers_of(block.values);
        for (size_t i = 0; i < block.ids.size(); ++i) local[block.ids[i]] = base[block.ids[i]] = values[i];
      });
    }
    client->barrier();
    if (trainer == 0) client->pull(100, {rows_of(0, convex_ids(), result)});
    client->goodbye();
  });
  EXPECT_EQ(failures, std::vector<std::string>(3));
  EXPECT_LT(mean_error(result), 0.1);
}

TEST(PsClient, ContinuesAsyncWithARestartedServer) {
  const TempFolder folder;
  const TestJob job{.num_servers = 2, .num_trainers = 1, .mode = Mode::Async, .folder = folder.path()};
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<std::thread> threads;
  std::vector<Endpoint> endpoints;
  const auto start = [&](int index, int port) {
    servers[index].reset();  // leaves the port
    servers[index] = std::make_unique<Server>(server_options(job, index, port));
    threads[index] = std::thread([server = servers[index].get()] { server->run(); });
  };
  servers.resize(2);
  threads.resize(2);
  for (int i = 0; i < 2; ++i) {
    start(i, 0);
    endpoints.push_back({"127.0.0.1", servers[i]->port()});
  }
  Client client(client_options(job, endpoints, 0));
  client.create_tables({f64_table("w", 1)});
  client.start(0);
  std::vector<double> values = {1, 2, 3, 4};
  const std::vector<int64_t> ids = {0, 1, 2, 3};
  client.pull(0, {rows_of(0, ids, values)});
  client.save(0);
  client.push(0, 1, {rows_of(0, ids, values)});  // all are 0 now
  servers[1]->stop("restart");
  threads[1].join();
  start(1, endpoints[1].port);
  std::vector<double> seen(4);
  client.pull(1, {rows_of(0, ids, seen)});
  EXPECT_EQ(seen, (std::vector<double>{0, 2, 0, 4}));  // server 1 has odd rows as they were saved
  EXPECT_EQ(client.num_reconnects(), 1);
  client.goodbye();
  for (std::thread& thread : threads) thread.join();
}

TEST(PsClient, ReportsWhatServersHave) {
  TestServers servers({.num_servers = 2, .num_trainers = 1});
  const auto client = servers.client(0);
  train_steps(*client, 0, 3);
  const auto stats = client->stats();
  ASSERT_EQ(stats.size(), 2u);
  EXPECT_EQ(stats[1].at("server"), 1);
  EXPECT_EQ(stats[0].at("step"), 3);
  EXPECT_EQ(stats[0].at("tables").at(1).at("name"), "drawn");
  EXPECT_GT(stats[0].at("tables").at(0).at("rows").get<int>(), 0);
  EXPECT_GT(client->bytes_moved(), 1000);
  client->goodbye();
}

}  // namespace assay::ps
