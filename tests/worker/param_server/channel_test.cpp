#include "param_server/channel.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/time.h"
#include "ps_test_tools.h"

namespace assay::ps {

namespace {

ChannelOptions channel_options(int port, double time_limit_s) {
  return {.endpoint = {"127.0.0.1", port},
          .hello = {.job = kTestJob, .instance = 3},
          .time_limit_s = time_limit_s,
          .connect_limit_s = time_limit_s};
}

std::string channel_failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const CommunicationError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(PsChannel, WaitsForAServerThatComesLate) {
  int port = 0;
  { port = port_of(listen_at({"127.0.0.1", 0})); }
  Channel channel(channel_options(port, 5));
  std::unique_ptr<Server> server;
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    server = std::make_unique<Server>(server_options({}, 0, port));
    server->run();
  });
  channel.connect();
  EXPECT_EQ(channel.last_hello().step, 0);
  channel.request(Request::Goodbye, {});
  late.join();
}

TEST(PsChannel, NamesAServerThatNeverComes) {
  int port = 0;
  { port = port_of(listen_at({"127.0.0.1", 0})); }
  Channel channel(channel_options(port, 0.3));
  const std::string reason = channel_failure([&] { channel.connect(); });
  EXPECT_NE(reason.find("parameter server 0 at 127.0.0.1:" + std::to_string(port)), std::string::npos) << reason;
}

TEST(PsChannel, ContinuesWithARestartedServer) {
  auto server = std::make_unique<Server>(server_options({.mode = Mode::Async}, 0));
  const int port = server->port();
  std::thread thread([&] { server->run(); });
  ChannelOptions options = channel_options(port, 5);
  options.hello.mode = Mode::Async;
  Channel channel(options);
  channel.connect();
  channel.create_tables({f64_table("t", 1, {}, {.kind = InitRule::Kind::Zero})});
  server->stop("restart");
  thread.join();
  server.reset();  // leaves the port
  server = std::make_unique<Server>(server_options({.mode = Mode::Async}, 0, port));
  thread = std::thread([&] { server->run(); });
  // The tables are made again before the request goes out.
  EXPECT_NO_THROW(channel.request(Request::Pull, encode(PullRequest{.step = 0, .parts = {{0, {1}}}})));
  EXPECT_EQ(channel.num_reconnects(), 1);
  channel.request(Request::Goodbye, {});
  thread.join();
}

TEST(PsChannel, NamesASilentServer) {
  const FileDescriptor listener = listen_at({"127.0.0.1", 0});  // takes connections, says nothing
  Channel channel(channel_options(port_of(listener), 0.3));
  const std::string reason = channel_failure([&] { channel.connect(); });
  EXPECT_NE(reason.find("cannot be reached"), std::string::npos) << reason;
}

TEST(PsChannel, DoesNotSendAMessageAboveTheLimit) {
  Server server(server_options({}, 0));
  std::thread thread([&] { server.run(); });
  ChannelOptions options = channel_options(server.port(), 5);
  options.max_frame_bytes = 100;
  Channel channel(options);
  channel.connect();
  EXPECT_THROW(channel.request(Request::Init, std::string(200, 'x')), ConfigError);
  channel.request(Request::Goodbye, {});
  thread.join();
}

}  // namespace assay::ps
