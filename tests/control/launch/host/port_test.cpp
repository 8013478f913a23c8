#include "launch/host/port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <set>

#include "base/error.h"
#include "base/files.h"

using namespace assay;

namespace {

FileDescriptor listen_at(int port, uint32_t where) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(where);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(socket.get(), 1), 0);
  return socket;
}

}  // namespace

TEST(Port, FindsAFreeOne) {
  const int port = free_port();
  EXPECT_GT(port, 1023);
  EXPECT_NO_THROW(check_port_free(port));
  std::set<int> ports = {port};
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(ports.insert(free_port()).second) << "a job asks for several";
}

TEST(Port, SeesAListenerOnAnyAddress) {
  for (const uint32_t where : {INADDR_ANY, INADDR_LOOPBACK}) {
    const int port = free_port();
    const FileDescriptor taken = listen_at(port, where);
    EXPECT_THROW(check_port_free(port), InfrastructureError);
  }
}
