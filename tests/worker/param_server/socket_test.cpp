#include "param_server/socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/time.h"

namespace assay::ps {

namespace {

struct SocketPair {
  FileDescriptor ours, theirs;
  SocketPair() {
    const FileDescriptor listener = listen_at({"127.0.0.1", 0});
    ours = connect_to({"127.0.0.1", port_of(listener)}, after(5));
    std::string peer;
    theirs = accept_peer(listener, after(5), -1, peer);
  }
};

}  // namespace

TEST(PsSocket, DeliversLargeFramesWhole) {
  SocketPair pair;
  std::string payload(5'000'000, 'x');
  for (size_t i = 0; i < payload.size(); i += 1000) payload[i] = static_cast<char>(i / 1000);
  std::thread sender([&] { send_frame(pair.ours.get(), 9, 77, payload, after(10)); });
  const Frame frame = receive_frame(pair.theirs.get(), {.first = after(10), .stall_s = 10, .max_payload = 1 << 30});
  sender.join();
  EXPECT_EQ(frame.header.kind, 9);
  EXPECT_EQ(frame.header.request_id, 77u);
  EXPECT_TRUE(frame.payload == payload);
}

TEST(PsSocket, LimitsWaiting) {
  SocketPair pair;
  EXPECT_THROW(receive_frame(pair.theirs.get(), {.first = after(0.05)}), TimeoutError);
  // A frame that begins and stalls: its header claims a megabyte that does not come.
  const std::string payload(1 << 20, 'x');
  const std::string head = frame_header(1, 1, payload);
  ASSERT_EQ(::send(pair.ours.get(), head.data(), head.size(), 0), static_cast<ssize_t>(head.size()));
  EXPECT_THROW(receive_frame(pair.theirs.get(), {.first = after(5), .stall_s = 0.05, .max_payload = 1 << 21}),
               TimeoutError);
}

TEST(PsSocket, NoticesAClosedPeerAndAWake) {
  SocketPair pair;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  ASSERT_EQ(::write(writer.get(), "x", 1), 1);
  EXPECT_THROW(receive_frame(pair.theirs.get(), {.wake_fd = reader.get()}), InterruptedError);
  pair.ours.reset();
  EXPECT_THROW(receive_frame(pair.theirs.get(), {}), ConnectionLost);
  EXPECT_THROW(
      {
        const std::string big(1 << 24, 'x');
        for (int i = 0; i < 10; ++i) send_frame(pair.theirs.get(), 1, 1, big, after(5));
      },
      ConnectionLost);
}

TEST(PsSocket, NamesTakenPortsAndDeafHosts) {
  const FileDescriptor listener = listen_at({"127.0.0.1", 0});
  const Endpoint taken{"127.0.0.1", port_of(listener)};
  try {
    listen_at(taken);
    FAIL();
  } catch (const InfrastructureError& error) {
    EXPECT_NE(std::string(error.what()).find(taken.text()), std::string::npos);
  }
  int free_port = 0;
  { free_port = port_of(listen_at({"127.0.0.1", 0})); }
  EXPECT_THROW(connect_to({"127.0.0.1", free_port}, after(5)), ConnectionLost);
  EXPECT_THROW(connect_to({"no such host", 1}, after(5)), ConnectionLost);
}

}  // namespace assay::ps
