#include "param_server/shard.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/time.h"
#include "ps_test_tools.h"

namespace assay::ps {

namespace {

Hello hello_of(const TestJob& job, int trainer, uint64_t instance = 1) {
  return {.trainer = trainer,
          .num_trainers = job.num_trainers,
          .server = 0,
          .num_servers = job.num_servers,
          .mode = job.mode,
          .job = kTestJob,
          .instance = instance};
}

// A shard with one table of one column, all trainers there, rows 0 to 9 at 0.
std::unique_ptr<Shard> shard_with_zeros(const TestJob& job) {
  auto shard = std::make_unique<Shard>(server_options(job, 0).shard);
  for (int i = 0; i < job.num_trainers; ++i) shard->hello(hello_of(job, i));
  shard->create_tables({f64_table("t", 1, {}, {.kind = InitRule::Kind::Zero})});
  return shard;
}

double value_at(Shard& shard, int64_t step, int64_t id, int trainer = 0) {
  const auto parts = shard.pull({.step = step, .parts = {{.table = 0, .ids = {id}}}}, {.trainer = trainer});
  return numbers_of(parts.at(0).values).at(0);
}

PushRequest gradient_of_row(int64_t step, uint64_t sequence, double gradient) {
  return {.step = step, .sequence = sequence, .rate = 1, .blocks = {block_of(0, {4}, {gradient})}};
}

void start_at(Shard& shard, int trainer, int64_t step, uint64_t sequence, double limit_s = 10) {
  shard.start({.step = step, .barrier = {.sequence = sequence, .limit_s = limit_s}}, {.trainer = trainer});
}

std::string reason_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace

TEST(PsShard, WaitsForAllAndAddsInOrderWithSync) {
  const TestJob job{.num_trainers = 3};
  const auto shard = shard_with_zeros(job);
  // 1e17 + 1 is 1e17: only in the order of the trainers the sum is 1.
  const double gradients[] = {1e17, -1e17, 1};
  shard->push(2, gradient_of_row(0, 1, gradients[2]));
  shard->push(0, gradient_of_row(0, 1, gradients[0]));
  EXPECT_EQ(shard->step(), 0);
  double pulled = 7;
  std::thread early([&] { pulled = value_at(*shard, 1, 4, 0); });
  shard->push(1, gradient_of_row(0, 1, gradients[1]));
  early.join();
  EXPECT_EQ(pulled, -1);
  EXPECT_EQ(shard->step(), 1);
  shard->push(1, gradient_of_row(0, 1, gradients[1]));  // again, after its answer was lost: nothing
  EXPECT_EQ(value_at(*shard, 1, 4), -1);
  EXPECT_EQ(shard->stats().at("num_updates"), 1);
}

TEST(PsShard, NamesATrainerThatDoesNotCome) {
  const TestJob job{.num_trainers = 3, .time_limit_s = 0.2};
  const auto shard = shard_with_zeros(job);
  shard->push(0, gradient_of_row(0, 1, 1));
  shard->push(2, gradient_of_row(0, 1, 1));
  const std::string reason = reason_of([&] { value_at(*shard, 1, 4); });
  expect_has(reason, "parameters of step 1");
  expect_has(reason, "waited 0.2 s for trainer 1");
}

TEST(PsShard, NamesALostTrainerBeforeTheLimit) {
  const TestJob job{.num_trainers = 2, .time_limit_s = 200, .return_limit_s = 0.2};
  const auto shard = shard_with_zeros(job);
  shard->push(0, gradient_of_row(0, 1, 1));
  const Stopwatch watch;
  shard->disconnected(1, 1);
  expect_has(reason_of([&] { value_at(*shard, 1, 4); }), "trainer 1 was lost");
  EXPECT_LT(watch.seconds(), 0.5 * job.time_limit_s);
  // One that comes back in time is not.
  shard->hello(hello_of(job, 1, 1));
  shard->disconnected(1, 1);
  shard->hello(hello_of(job, 1, 1));
  shard->push(1, gradient_of_row(0, 1, 1));
  EXPECT_EQ(value_at(*shard, 1, 4), -2);
  // One that says why is quoted.
  shard->push(0, gradient_of_row(1, 2, 1));
  shard->fail(1, "the loss is not finite");
  expect_has(reason_of([&] { value_at(*shard, 2, 4); }), "trainer 1 failed: the loss is not finite");
}

TEST(PsShard, StopsWaitingForACallerThatIsGone) {
  const TestJob job{.num_trainers = 2, .time_limit_s = 200};
  const auto shard = shard_with_zeros(job);
  const Stopwatch watch;
  shard->push(0, gradient_of_row(0, 1, 1));
  EXPECT_THROW(shard->pull({.step = 1, .parts = {}}, {.trainer = 0, .gone = [] { return true; }}), ConnectionLost);
  EXPECT_LT(watch.seconds(), 0.5 * job.time_limit_s);
}

TEST(PsShard, AppliesAtOnceAndOnceWithAsync) {
  const TestJob job{.num_trainers = 2, .mode = Mode::Async};
  const auto shard = shard_with_zeros(job);
  shard->push(1, gradient_of_row(5, 1, 1));
  EXPECT_EQ(value_at(*shard, 0, 4), -1);
  shard->push(1, gradient_of_row(5, 1, 1));  // sent again
  EXPECT_EQ(value_at(*shard, 0, 4), -1);
  shard->push(0, gradient_of_row(0, 1, 1));
  EXPECT_EQ(value_at(*shard, 9, 4), -2);
  // A restarted trainer counts from 1 again.
  shard->disconnected(1, 1);
  shard->hello(hello_of(job, 1, 2));
  shard->push(1, gradient_of_row(6, 1, 1));
  EXPECT_EQ(value_at(*shard, 0, 4), -3);
}

TEST(PsShard, AddsDifferencesWithGeo) {
  const auto shard = shard_with_zeros({.num_trainers = 1, .mode = Mode::Geo});
  shard->add_deltas(0, gradient_of_row(0, 1, 0.25));
  shard->add_deltas(0, gradient_of_row(0, 1, 0.25));
  EXPECT_EQ(value_at(*shard, 0, 4), 0.25);
}

TEST(PsShard, RejectsStrangersAndMisfits) {
  const TestJob job{.num_trainers = 2};
  Shard shard(server_options(job, 0).shard);
  const auto refused = [&](const std::function<void(Hello&)>& change) {
    Hello hello = hello_of(job, 0);
    change(hello);
    EXPECT_THROW(shard.hello(hello), ConfigError);
  };
  refused([](Hello& h) { h.job = "guess"; });
  refused([](Hello& h) { h.trainer = 2; });
  refused([](Hello& h) { h.num_trainers = 3; });
  refused([](Hello& h) { h.server = 1; });
  refused([](Hello& h) { h.num_servers = 2; });
  refused([](Hello& h) { h.mode = Mode::Geo; });
  shard.hello(hello_of(job, 0, 1));
  EXPECT_THROW(shard.hello(hello_of(job, 0, 2)), CommunicationError);  // two with one number
  shard.disconnected(0, 1);
  EXPECT_NO_THROW(shard.hello(hello_of(job, 0, 2)));
}

TEST(PsShard, RejectsWrongRequestsAndChangesNothing) {
  const auto shard = shard_with_zeros({.num_servers = 2, .num_trainers = 1});
  const auto push_of = [](int64_t step, uint32_t table, std::vector<int64_t> ids) {
    const std::vector<double> values(ids.size(), 1);
    return PushRequest{.step = step, .sequence = 1, .rate = 1, .blocks = {block_of(table, std::move(ids), values)}};
  };
  EXPECT_THROW(shard->push(0, push_of(0, 1, {4})), CommunicationError);  // no such table
  EXPECT_THROW(shard->push(0, push_of(0, 0, {5})), CommunicationError);  // a row of the other server
  EXPECT_THROW(shard->push(0, push_of(3, 0, {4})), CommunicationError);  // a step of the future
  EXPECT_THROW(shard->create_tables({f64_table("t", 2)}), ConfigError);
  EXPECT_THROW(shard->create_tables({}), ConfigError);
  EXPECT_THROW(shard->pull({.step = 7, .parts = {}}, {}), CommunicationError);
  EXPECT_EQ(shard->step(), 0);
  EXPECT_EQ(value_at(*shard, 0, 4), 0);
}

TEST(PsShard, RequiresEqualLearningRates) {
  const auto shard = shard_with_zeros({.num_trainers = 2});
  PushRequest other = gradient_of_row(0, 1, 1);
  other.rate = 0.5;
  shard->push(0, other);
  expect_has(reason_of([&] { shard->push(1, gradient_of_row(0, 1, 1)); }), "learning rate");
}

TEST(PsShard, CountsAStepWithoutAnUpdateAsAStepOnly) {
  const auto shard = shard_with_zeros({.num_trainers = 2});
  for (const int trainer : {0, 1}) shard->push(trainer, {.step = 0, .sequence = 1, .skips = true});
  EXPECT_EQ(shard->step(), 1);
  EXPECT_EQ(shard->stats().at("num_updates"), 0);
  EXPECT_EQ(value_at(*shard, 1, 4), 0);
  for (const int trainer : {0, 1}) shard->push(trainer, gradient_of_row(1, 2, 1));
  EXPECT_EQ(shard->stats().at("num_updates"), 1);
  EXPECT_EQ(value_at(*shard, 2, 4), -2);
  shard->push(1, {.step = 2, .sequence = 3, .skips = true});
  expect_has(reason_of([&] { shard->push(0, gradient_of_row(2, 3, 1)); }), "trainer 1 makes no update, trainer 0 does");
}

TEST(PsShard, LimitsMemory) {
  const auto shard = shard_with_zeros({.num_trainers = 1, .max_bytes = 2 << 20});
  std::vector<int64_t> ids(100000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
  EXPECT_THROW(shard->pull({.step = 0, .parts = {{.table = 0, .ids = ids}}}, {}), OutOfMemoryError);
  ids.resize(1000);
  EXPECT_NO_THROW(shard->pull({.step = 0, .parts = {{.table = 0, .ids = ids}}}, {}));
}

TEST(PsShard, SaysThatItRestartedFromItsCheckpoint) {
  const TempFolder folder;
  const TestJob job{.num_trainers = 1, .folder = folder.path()};
  double after_two = 0;
  {
    const auto shard = shard_with_zeros(job);
    for (int64_t step = 0; step < 4; ++step) {
      if (step == 2) {
        EXPECT_EQ(shard->save(2, {}), "step_2.server_0_of_1.safetensors");
        after_two = value_at(*shard, 2, 4);
      }
      shard->push(0, gradient_of_row(step, step + 1, 1));
    }
  }
  Shard shard(server_options(job, 0).shard);
  const HelloReply reply = shard.hello(hello_of(job, 0));
  EXPECT_EQ(reply.step, 2);
  EXPECT_EQ(reply.restored_step, 2);
  const std::string reason = reason_of([&] { value_at(shard, 4, 4); });
  expect_has(reason, "started from its checkpoint of step 2");
  expect_has(reason, "trainer 0 at step 4");
  // Gradients for the update that the trainer waits for were lost with the old server.
  expect_has(reason_of([&] { value_at(shard, 3, 4); }), "is at step 2");
  start_at(shard, 0, 2, 1);
  EXPECT_EQ(value_at(shard, 2, 4), after_two);
  shard.push(0, gradient_of_row(2, 1, 1));
  start_at(shard, 0, 2, 2);  // from the file now
  EXPECT_EQ(value_at(shard, 2, 4), after_two);
  EXPECT_THROW(start_at(shard, 0, 3, 3), DataError);
  start_at(shard, 0, 0, 4);
  EXPECT_EQ(value_at(shard, 0, 4), 0);
}

TEST(PsShard, WaitsForNewTrainersAtTheStart) {
  const TestJob job{.num_trainers = 2, .return_limit_s = 0};
  const auto shard = shard_with_zeros(job);
  run_trainers(2, [&](int trainer) { start_at(*shard, trainer, 0, 1); });
  for (int i = 0; i < 2; ++i) shard->push(i, gradient_of_row(0, 1, 1));
  // Trainer 1 comes again while the old trainer 0 is there or just lost; the start of the old one does not count.
  shard->disconnected(1, 1);
  shard->hello(hello_of(job, 1, 2));
  EXPECT_EQ(reason_of([&] { start_at(*shard, 1, 0, 1, 0.1); }).find("start at step 0: waited 0.1 s for trainer 0"), 0u);
  shard->disconnected(0, 1);
  const auto failures = run_trainers(2, [&](int trainer) {
    if (trainer == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      shard->hello(hello_of(job, 0, 2));
    }
    start_at(*shard, trainer, 0, 1);
    EXPECT_EQ(value_at(*shard, 0, 4, trainer), 0);  // the server went back
  });
  EXPECT_EQ(failures, (std::vector<std::string>{"", ""}));
  start_at(*shard, 0, 0, 1);  // sent again: nothing
}

TEST(PsShard, RequiresTrainersToAgreeOnTheStart) {
  const auto shard = shard_with_zeros({.num_trainers = 2});
  const auto failures = run_trainers(2, [&](int trainer) { start_at(*shard, trainer, trainer * 5, 1); });
  for (const std::string& failure : failures) expect_has(failure, "trainer 0 starts at step 0, trainer 1 at step 5");
}

TEST(PsShard, HoldsBarriersUntilAllHaveJoined) {
  const auto shard = shard_with_zeros({.num_trainers = 3});
  std::atomic<int> arrived = 0;
  const auto failures = run_trainers(3, [&](int trainer) {
    for (uint64_t round = 1; round <= 20; ++round) {
      ++arrived;
      shard->barrier({.sequence = round, .limit_s = 10}, {.trainer = trainer});
      EXPECT_GE(arrived, static_cast<int>(3 * round));
    }
  });
  EXPECT_EQ(failures, std::vector<std::string>(3));
  expect_has(reason_of([&] { shard->barrier({.sequence = 21, .limit_s = 0.1}, {.trainer = 1}); }), "trainers 0, 2");
}

TEST(PsShard, GathersTheTextsOfAll) {
  const auto shard = shard_with_zeros({.num_trainers = 3});
  const auto failures = run_trainers(3, [&](int trainer) {
    for (uint64_t round = 1; round <= 20; ++round) {
      const auto own = [&](int who) { return fmt::format("{} in {}", who, round); };
      const GatherRequest request{.barrier = {.sequence = round, .limit_s = 10}, .text = own(trainer)};
      const std::vector<std::string> wanted = {own(0), own(1), own(2)};
      EXPECT_EQ(shard->gather(request, {.trainer = trainer}), wanted);
      EXPECT_EQ(shard->gather(request, {.trainer = trainer}), wanted);  // sent again
    }
  });
  EXPECT_EQ(failures, std::vector<std::string>(3));
}

TEST(PsShard, WakesWaitingCallsAtAStop) {
  const auto shard = shard_with_zeros({.num_trainers = 2, .time_limit_s = 60});
  shard->push(0, gradient_of_row(0, 1, 1));
  std::thread stopper([&] { shard->stop("it was told to"); });
  expect_has(reason_of([&] { value_at(*shard, 1, 4); }), "it was told to");
  stopper.join();
  EXPECT_THROW(shard->hello(hello_of({.num_trainers = 2}, 0)), CommunicationError);
}

}  // namespace assay::ps
