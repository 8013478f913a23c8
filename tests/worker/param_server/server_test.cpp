#include "param_server/server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "ps_test_tools.h"

namespace assay::ps {

namespace {

void send_raw(const Endpoint& endpoint, std::string_view bytes) {
  const FileDescriptor fd = connect_to(endpoint, after(5));
  (void)!::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

std::string whole_frame(uint16_t kind, std::string_view payload) {
  return frame_header(kind, 1, payload) + std::string(payload);
}

int64_t resident_kb() {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("VmRSS:", 0) == 0) return *parse_int(std::string(trim(line.substr(6, line.size() - 8))));
  }
  return 0;
}

}  // namespace

TEST(PsServer, EndsWhenAllTrainersHaveSaidGoodbye) {
  TestServers servers({.num_servers = 2, .num_trainers = 2});
  const auto failures = run_trainers(2, [&](int trainer) { servers.client(trainer)->goodbye(); });
  EXPECT_EQ(failures, (std::vector<std::string>{"", ""}));
  servers.wait();
  EXPECT_EQ(servers.ended_with(), "");
}

TEST(PsServer, GivesUpWithoutTrainersAndNamesThem) {
  TestServers servers({.num_trainers = 2, .idle_limit_s = 3});
  servers.client(1).reset();  // ends without a goodbye
  servers.wait();
  EXPECT_NE(servers.ended_with().find("trainer 0 has not come"), std::string::npos) << servers.ended_with();
  EXPECT_NE(servers.ended_with().find("trainer 1 was lost"), std::string::npos) << servers.ended_with();
}

TEST(PsServer, IgnoresGarbageOfStrangers) {
  const TestJob job{.num_trainers = 1};
  TestServers servers(job);
  const Endpoint endpoint = servers.endpoints()[0];
  const auto client = servers.client(0);
  client->create_tables({f64_table("t", 1, {}, {.kind = InitRule::Kind::Zero})});
  client->start(0);
  const int64_t before_kb = resident_kb();
  std::mt19937_64 random(3);
  const Hello wrong{.job = "guess"};
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 100, '\0');
    for (char& letter : bytes) letter = static_cast<char>(random());
    switch (round % 6) {
      case 0: break;
      case 1: bytes = whole_frame(static_cast<uint16_t>(random() % 20), bytes); break;
      case 2: bytes = whole_frame(2, encode(wrong)); break;
      case 3: bytes = whole_frame(2, encode(wrong)).substr(0, random() % 60); break;
      case 4:  // a header that claims more than a stranger may send
        bytes = frame_header(2, 1, std::string(kSmallFrame + 1, 'x'));
        break;
      case 5: bytes = "GET / HTTP/1.1\r\n\r\n"; break;
    }
    send_raw(endpoint, bytes);
  }
  std::vector<double> values = {5};
  client->pull(0, {rows_of(0, {3}, values)});
  EXPECT_EQ(values[0], 0);
  EXPECT_LT(resident_kb() - before_kb, 100'000);
  client->goodbye();
}

TEST(PsServer, ClosesOnlyTheConnectionThatSendsGarbage) {
  const TestJob job{.num_trainers = 2, .mode = Mode::Async};
  TestServers servers(job);
  const auto client = servers.client(0);
  client->create_tables({f64_table("t", 1, {}, {.kind = InitRule::Kind::Zero})});
  std::mt19937_64 random(4);
  const Hello hello{.trainer = 1, .num_trainers = 2, .mode = Mode::Async, .job = kTestJob, .instance = 5};
  for (int round = 0; round < 200; ++round) {
    std::string bytes = whole_frame(2, encode(hello));
    std::string payload(random() % 80, '\0');
    for (char& letter : payload) letter = static_cast<char>(random());
    if (round % 2) payload.replace(0, std::min<size_t>(payload.size(), 24), 24, '\xff');
    for (uint16_t kind = 3; kind < 15; ++kind) {
      if (kind != static_cast<uint16_t>(Request::Goodbye)) bytes += whole_frame(kind, payload);
    }
    send_raw(servers.endpoints()[0], bytes);
  }
  std::vector<double> values = {5};
  client->pull(0, {rows_of(0, {3}, values)});
  EXPECT_EQ(values[0], 0);
}

TEST(PsServer, LetsTrainersSaveAndLeaveBeforeItStops) {
  const TempFolder folder;
  const TestJob job{.num_trainers = 1, .folder = folder.path()};
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor reader(ends[0]), writer(ends[1]);
  Server server(server_options(job, 0));
  std::optional<Server::Ending> ending;
  std::thread thread([&] { ending = server.run(reader.get()); });
  Client client(client_options(job, {{"127.0.0.1", server.port()}}, 0));
  client.create_tables({f64_table("t", 1)});
  client.start(0);
  ASSERT_EQ(::write(writer.get(), "x", 1), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(client.save(0).size(), 1u);
  client.goodbye();
  thread.join();
  EXPECT_EQ(ending, Server::Ending::AllLeft);
}

TEST(PsServer, StopsWhenATrainerAsks) {
  TestServers servers({.num_servers = 2, .num_trainers = 1});
  servers.client(0)->stop_servers();
  servers.wait();
  EXPECT_EQ(servers.ended_with(), "");
}

}  // namespace assay::ps
