// How processes find each other, and what they say when they cannot.
#include "comm/world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

#include "base/error.h"
#include "job.h"

using namespace assay;
using namespace assay::comm;
using namespace assay::comm_test;

namespace {

// What is said at once is said before this, on a busy machine too; joining may take 100 s.
constexpr double kLongBeforeTheLimit_s = 60;

FileDescriptor connect_to(int port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  for (int i = 0; i < 2000; ++i) {
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return socket;
    ::usleep(10000);
  }
  throw std::runtime_error("nobody listens at port " + std::to_string(port));
}

FileDescriptor listen_on(int port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(socket.get(), 8), 0);
  return socket;
}

void expect_error(const Job::End& end, const std::string& text) {
  EXPECT_EQ(end.status.code, 13) << end.status.text() << "\n" << end.output;
  EXPECT_NE(end.output.find(text), std::string::npos) << text << "\n" << end.output;
}

}  // namespace

TEST(World, NeedsNoNetworkForOneProcess) {
  auto world = World::join({});
  EXPECT_EQ(world->size(), 1);
  EXPECT_EQ(world->describe(), "1 process");
  auto group = world->group({0}, "dp");
  EXPECT_EQ(group->transport(), "none");
  int32_t in[2] = {1, 2}, out[2] = {0, 0};
  group->reduce_scatter(in, out, 2, DType::I32);
  EXPECT_EQ(out[1], 2);
  group->all_reduce(out, 2, DType::I32);
  EXPECT_EQ(out[1], 2);
  group->start_barrier().wait();
  EXPECT_EQ(group->allocate(12)->size(), 12);
  // Buffers are counted, each as it comes and as it goes.
  static std::vector<int64_t> counted;
  CommBuffer::set_counter([](int64_t bytes) { counted.push_back(bytes); });
  group->allocate(1 << 10);
  CommBuffer::set_counter([](int64_t) {});
  EXPECT_EQ(counted, (std::vector<int64_t>{1 << 10, -(1 << 10)}));
  EXPECT_THROW(group->send(in, 8, 0, 0), Error);
  world->leave();
}

TEST(World, NamesTransports) {
  EXPECT_EQ(transport_of("auto"), TransportKind::Auto);
  EXPECT_EQ(transport_of("shared_memory"), TransportKind::SharedMemory);
  EXPECT_EQ(transport_of("gloo"), TransportKind::Gloo);
  try {
    transport_of("shared_memry");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'shared_memory'"), std::string::npos) << error.what();
  }
}

TEST(World, NamesWrongOptions) {
  EXPECT_THROW(World::join({.rank = 2, .world_size = 2, .master_port = 4000}), ConfigError);
  EXPECT_THROW(World::join({.rank = 0, .world_size = 2, .master_port = 0}), ConfigError);
  EXPECT_THROW(World::join({.rank = 0, .world_size = 2, .master_port = 4000, .time_limit_s = 0}), ConfigError);
}

TEST(World, SaysHowItIsConnected) {
  for (const auto& [transport, text] : {std::pair<std::string, std::string>{"auto", "shared memory"},
                                        {"shared_memory", "shared memory"},
                                        {"gloo", "gloo over lo"}}) {
    Job job(2, {{"TRANSPORT", transport}});
    job.start_all({"describe"});
    for (int rank = 0; rank < 2; ++rank) {
      const Job::End end = job.end(rank);
      EXPECT_NE(end.output.find("2 processes on 1 host; " + text + "; local " + std::to_string(rank) + " of 2"),
                std::string::npos)
          << end.output;
    }
  }
}

TEST(World, WaitsForTheLastAtTheEnd) { expect_fine(3, {"late"}, {}); }

TEST(World, NamesABusyPortAtOnce) {
  Job job(2);
  const FileDescriptor other = listen_on(job.port());
  const Stopwatch watch;
  job.start_all({"describe"});
  expect_error(job.end(0), "port " + std::to_string(job.port()) + " of MASTER_ADDR 127.0.0.1 is in use");
  expect_error(job.end(1), "another MASTER_PORT?");
  EXPECT_LT(watch.seconds(), kLongBeforeTheLimit_s);
}

TEST(World, NamesAMissingRank) {
  Job job(4, {{"JOIN_LIMIT", "4"}});
  job.start(0, {"describe"});
  job.start(2, {"describe"});
  const Stopwatch watch;
  for (int process : {0, 1}) expect_error(job.end(process), "ranks 1 and 3 of 4 processes did not join within 4 s");
  EXPECT_LT(watch.seconds(), kLongBeforeTheLimit_s);
}

TEST(World, NamesAMissingRankZero) {
  Job job(2, {{"JOIN_LIMIT", "1"}});
  job.start(1, {"describe"});
  expect_error(job.end(0), "rank 0 did not join within 1 s");
}

TEST(World, NamesARankThatJoinsTwice) {
  Job job(3);
  for (const int rank : {0, 1, 1}) job.start(rank, {"describe"});
  const Stopwatch watch;
  for (int process : {0, 1, 2}) expect_error(job.end(process), "rank 1 came twice: process");
  EXPECT_LT(watch.seconds(), kLongBeforeTheLimit_s);
}

TEST(World, RejectsProcessesThatDisagreeAboutTheirNumber) {
  Job job(2);
  job.start(0, {"describe"});
  job.start(1, {"describe"}, {{"WORLD_SIZE", "3"}});
  for (int process : {0, 1}) expect_error(job.end(process), "says WORLD_SIZE is 3, rank 0 says 2");
}

TEST(World, RejectsProcessesThatDisagreeAboutTheTransport) {
  Job job(2);
  job.start(0, {"describe"});
  job.start(1, {"describe"}, {{"TRANSPORT", "gloo"}});
  for (int process : {0, 1}) expect_error(job.end(process), "transport");
}

TEST(World, NamesAWrongInterfaceAndThoseAvailable) {
  Job job(2, {{"INTERFACE", "nosuch7"}, {"TRANSPORT", "gloo"}});
  job.start_all({"describe"});
  const Stopwatch watch;
  for (int rank : {0, 1}) {
    const Job::End end = job.end(rank);
    expect_error(end, "network interface 'nosuch7' does not exist; those with an address: ");
    EXPECT_NE(end.output.find("lo 127.0.0.1"), std::string::npos) << end.output;
  }
  EXPECT_LT(watch.seconds(), kLongBeforeTheLimit_s);
}

TEST(World, NamesAnAddressOfAnotherHost) {
  Job job(2, {{"MASTER_ADDR", "192.0.2.1"}});  // of the block for documentation: nobody's
  job.start(0, {"describe"});
  expect_error(job.end(0), "MASTER_ADDR 192.0.2.1 (192.0.2.1) is not an address of this host");
}

TEST(World, IgnoresStrangersAtThePort) {
  Job job(2, {{"TIME_LIMIT", "5"}});
  job.start(0, {"loop", "small"});
  const std::string http = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(connect_to(job.port()));
  (void)!::write(strangers[0].get(), http.data(), http.size());
  const std::string huge(8, '\xff');
  (void)!::write(strangers[1].get(), huge.data(), huge.size());
  const std::string almost("\x05\0\0\0\0\0\0\0\x01garb", 13);
  (void)!::write(strangers[2].get(), almost.data(), almost.size());
  std::string noise(100000, '\0');
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * 7919 >> 3);
  (void)!::send(strangers[3].get(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  strangers[4].reset();
  job.start(1, {"loop", "small"});
  job.await("looping");
  // The same while the job runs, and a process that thinks it belongs to it.
  const FileDescriptor late = connect_to(job.port());
  (void)!::write(late.get(), http.data(), http.size());
  job.start(1, {"describe"}, {{"JOIN_LIMIT", "2"}});
  expect_error(job.end(2), "another job of 2 processes is running at port " + std::to_string(job.port()));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(job.output(0).find("error"), std::string::npos) << job.output(0);
  job.kill(1, SIGKILL);
  expect_error(job.end(0), "rank 1 is lost");
}

// A job that starts again on several hosts: its new ranks may meet the rank 0 that is about to end.
TEST(World, WaitsUntilAnEarlierJobIsGone) {
  Job job(2);
  for (const int rank : {0, 1}) job.start(rank, {"loop", "small"});
  job.await("looping");
  job.start(1, {"describe"});
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  job.kill(1, SIGKILL);
  expect_error(job.end(0), "rank 1 is lost");  // and the port is free
  job.start(0, {"describe"});
  for (const int process : {2, 3}) {
    const Job::End end = job.end(process);
    EXPECT_TRUE(end.status.ok()) << end.status.text() << "\n" << end.output;
  }
}
