#include "base/files.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <thread>

#include "base/error.h"

using namespace assay;

TEST(Files, NamesTheFileInReadErrors) {
  for (const char* path : {"/no/such/file", "/proc"}) {
    try {
      read_file(path);
      FAIL();
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos);
    }
  }
  EXPECT_FALSE(read_file("/proc/self/status").empty()) << "files that claim to have no size are read too";
}

TEST(Files, ReplacesAtomicallyWithoutHalfFiles) {
  const TempFolder folder;
  const auto path = folder.path() / "f";
  const std::string a(200'000, 'a');
  const std::string b(200'000, 'b');
  write_file_atomic(path, a);
  const pid_t writer = ::fork();
  if (writer == 0) {
    for (int i = 0;; ++i) write_file_atomic(path, i % 2 ? a : b);
  }
  for (int i = 0; i < 200; ++i) {
    const std::string seen = read_file(path);
    ASSERT_TRUE(seen == a || seen == b);
  }
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  const std::string left = read_file(path);
  EXPECT_TRUE(left == a || left == b);
}

TEST(Files, KeepsTheOldFileAfterAFailedReplacement) {
  const TempFolder folder;
  const auto target = folder.path() / "is-a-folder";
  make_folder(target / "child");
  EXPECT_THROW(write_file_atomic(target, "x"), InfrastructureError);
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path())) ++count;
  EXPECT_EQ(count, 1u);
  EXPECT_THROW(write_file_atomic(folder.path() / "no" / "folder" / "f", "x"), InfrastructureError);
}

TEST(Files, NamesAFolderInTheWay) {
  const TempFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_THROW(make_folder(folder.path() / "file" / "sub"), InfrastructureError);
  EXPECT_NO_THROW(make_folder(folder.path() / "a/b/c"));
  EXPECT_NO_THROW(make_folder(folder.path() / "a/b/c"));
}

TEST(Files, ReturnsTheLastLines) {
  const TempFolder folder;
  const auto path = folder.path() / "log";
  EXPECT_TRUE(tail_lines(path, 5).empty());
  std::ofstream(path) << "one\ntwo\nthree\nlast without end";
  EXPECT_EQ(tail_lines(path, 2), (std::vector<std::string>{"three", "last without end"}));
  EXPECT_EQ(tail_lines(path, 99).size(), 4u);
  {
    std::ofstream file(path);
    for (int i = 0; i < 100'000; ++i) file << "line " << i << "\n";
  }
  EXPECT_EQ(tail_lines(path, 1), std::vector<std::string>{"line 99999"});
  std::ofstream(path) << std::string(1'000'000, 'x');  // one line longer than what is read
  EXPECT_EQ(tail_lines(path, 3).size(), 1u);
}

TEST(Files, RemovesTheTempFolder) {
  fs::path path;
  {
    const TempFolder folder;
    path = folder.path();
    std::ofstream(path / "f") << "x";
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}
