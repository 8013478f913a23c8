#include "launch/multi_node/file_set.h"

#include <gtest/gtest.h>

#include <fstream>

#include "../job_support.h"
#include "base/error.h"
#include "base/hash.h"

using namespace assay;

TEST(FileSet, TakesTheFilesOfAStepAndNotItsOutput) {
  const JobFolder folder;
  const auto put = [&](const fs::path& path) {
    make_folder((folder.run() / path).parent_path());
    std::ofstream(folder.run() / path) << path.string();
  };
  const fs::path step = "steps/1-train";
  for (const char* name : {"config.json", "parts/more.json", "rank0.log", "records.jsonl", "records.rank1.jsonl",
                           "job.node0.json", "state.node0.json", "monitor.node0.jsonl", "supervisor.node0.log",
                           "received.node0.json", "output/model.bin", "output/keep.txt"}) {
    put(step / name);
  }
  put("steps/0-prepare/output/tokens.bin");
  put("journal.jsonl");
  LaunchRequest request = folder.request("true");
  request.staging.collect = {"output/model.bin"};
  request.staging.staged = {"steps/0-prepare/output", folder.run() / "steps/1-train/config.json"};
  const FileSet files = files_of_step(request);
  EXPECT_EQ(files.names(),
            "steps/0-prepare/output/tokens.bin\nsteps/1-train/config.json\nsteps/1-train/output/keep.txt\n"
            "steps/1-train/parts/more.json\n");
  EXPECT_EQ(files.files.at("steps/1-train/config.json"), sha256("steps/1-train/config.json"));
  request.staging.staged = {"/etc/passwd"};
  EXPECT_THROW(files_of_step(request), ConfigError);
  request.staging.staged = {"../x"};
  EXPECT_THROW(files_of_step(request), ConfigError);
  request.staging.staged = {"not-there"};
  EXPECT_THROW(files_of_step(request), DataError);
}

TEST(FileSet, ChangesTheHashOfAChangedFile) {
  const JobFolder folder;
  FileSet files{.root = folder.top()};
  std::ofstream(folder.top() / "a") << "one";
  files.add("a");
  const std::string before = files.hash();
  EXPECT_EQ(files.manifest(), sha256("one") + "  a\n");
  std::ofstream(folder.top() / "a") << "other";
  files.add("a");
  EXPECT_NE(files.hash(), before);
}

TEST(FileSet, ChecksTheListOfAHost) {
  const std::string hash(64, 'a');
  const auto read = [](const std::string& text) { return parse_manifest(text, "node1"); };
  EXPECT_EQ(read(hash + "  ./a/b c\n").at("a/b c"), hash);
  for (const std::string& bad :
       {std::string("x  a\n"), hash + "  ../a\n", hash + "  /etc/passwd\n", hash + "  a/../../b\n",
        "\\" + hash + "  a\\nb\n", hash + "\n", hash + "  \n", hash + "b  a\n"}) {
    EXPECT_THROW(read(bad), DataError) << bad;
  }
  for (const char* bad : {"", "/a", "..", "a/..", "a/../b", "a\nb", "a\\b"}) EXPECT_FALSE(is_inner_path(bad)) << bad;
  for (const char* good : {"a", "a/b", "..a", "a b", "ä"}) EXPECT_TRUE(is_inner_path(good)) << good;
}

TEST(FileSet, HasOurTwoPrograms) {
  const FileSet programs = own_programs();
  EXPECT_TRUE(programs.files.count("assay"));
  EXPECT_EQ(programs.files.count("assay_control_tests"), 0u);
  EXPECT_EQ(programs.hash().size(), 64u);
}
