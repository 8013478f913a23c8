#include "launch/host/device_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "../job_support.h"
#include "base/error.h"

using namespace assay;

namespace {

DeviceUse use_of(std::vector<int> devices, const std::string& run = "run-1") {
  return {.hardware = "A100/80GB", .devices = std::move(devices), .run_id = run};
}

}  // namespace

TEST(DeviceLock, NamesTheUserOfADevice) {
  const JobFolder folder;
  const fs::path where = folder.top() / "device-locks";
  const DeviceLocks first(where, use_of({0, 1}));
  const std::string message = message_of<InfrastructureError>([&] { DeviceLocks(where, use_of({1, 2}, "run-2")); });
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  for (const std::string& part : {std::string("A100/80GB 1"), std::string(host), std::string("run run-1"),
                                  std::string("user "), std::to_string(::getpid())}) {
    EXPECT_TRUE(mentions(message, part)) << message << " without " << part;
  }
  const DeviceLocks second(where, use_of({2}, "run-2"));  // what the failed one had taken is free again
  struct stat info {};
  ASSERT_EQ(::stat(where.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 01777u) << "for every user";
}

TEST(DeviceLock, EndsWithItsHolderHoweverThatEnds) {
  const JobFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const DeviceLocks held(folder.locks(), use_of({0}));
    (void)!::write(ready[1], "x", 1);
    ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THROW(DeviceLocks(folder.locks(), use_of({0})), InfrastructureError);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_NO_THROW(DeviceLocks(folder.locks(), use_of({0})));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(DeviceLock, LocksADeviceOfSeveralRanksOnce) {
  const JobFolder folder;
  EXPECT_NO_THROW(DeviceLocks(folder.locks(), use_of({0, 0, 1, 0})));
  EXPECT_NO_THROW(DeviceLocks(folder.locks(), use_of({})));
}

TEST(DeviceLock, DistrustsFilesOfOthers) {
  const JobFolder folder;
  const fs::path lock = folder.locks() / "A100_80GB-0.lock";
  const fs::path target = folder.top() / "precious";
  std::ofstream(target) << "content";
  fs::create_symlink(target, lock);
  EXPECT_THROW(DeviceLocks(folder.locks(), use_of({0})), InfrastructureError);
  EXPECT_EQ(read_file(target), "content");
  fs::remove(lock);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0666), 0);
  EXPECT_THROW(DeviceLocks(folder.locks(), use_of({0})), InfrastructureError);
  fs::remove(lock);
  const DeviceLocks held(folder.locks(), use_of({0}));
  std::ofstream(lock) << std::string(100'000, '[') << "\xff\x00";
  EXPECT_TRUE(
      mentions(message_of<InfrastructureError>([&] { DeviceLocks(folder.locks(), use_of({0})); }), "unknown run"));
  std::ofstream(folder.top() / "file") << "";
  EXPECT_TRUE(mentions(message_of<InfrastructureError>([&] { DeviceLocks(folder.top() / "file", use_of({0})); }),
                       "ASSAY_LOCKS"));
}
