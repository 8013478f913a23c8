#include "launch/multi_node/inbox.h"

#include <gtest/gtest.h>

#include <fstream>

#include "../job_support.h"
#include "base/error.h"

using namespace assay;

namespace {

const Inbox::Place kFarPlace{.host = "node1", .run = "/there/run-1", .program = "/there/assay"};

Frame bytes_at(int64_t offset, const std::string& bytes, const std::string& file = "rank0.log") {
  return {.kind = Frame::Kind::Bytes, .file = file, .offset = offset, .bytes = bytes};
}

}  // namespace

TEST(Inbox, TakesEachByteOnce) {
  const JobFolder folder;
  std::ofstream(folder.step() / "rank0.log") << "earlier;";
  Inbox inbox = Inbox::begin(folder.step(), folder.request("true"), kFarPlace);
  inbox.accept(bytes_at(0, "abc"));
  inbox.accept(bytes_at(1, "bcde"));
  inbox.accept(bytes_at(0, "ab"));
  EXPECT_EQ(folder.log(0), "earlier;abcde");
  EXPECT_EQ(inbox.have().at("rank0.log"), 5);
  EXPECT_THROW(inbox.accept(bytes_at(7, "x")), DataError) << "a gap";
  inbox.accept({.kind = Frame::Kind::Cut, .file = "rank0.log", .offset = 2});
  inbox.accept(bytes_at(2, "XY"));
  EXPECT_EQ(folder.log(0), "earlier;abXY");
}

TEST(Inbox, ContinuesWhereTheFilesEnd) {
  const JobFolder folder;
  LaunchRequest job = folder.request("true");
  EXPECT_FALSE(Inbox::resume(folder.step(), job));
  std::ofstream(folder.step() / "rank0.log") << "earlier;";
  Inbox::begin(folder.step(), job, kFarPlace).accept(bytes_at(0, "abc"));
  auto again = Inbox::resume(folder.step(), job);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->have().at("rank0.log"), 3);
  EXPECT_EQ(again->place().run, kFarPlace.run);
  again->accept(bytes_at(3, "d"));
  EXPECT_EQ(folder.log(0), "earlier;abcd");
  job.attempt = 2;
  EXPECT_FALSE(Inbox::resume(folder.step(), job)) << "another attempt";
}

TEST(Inbox, WritesOnlyFilesOfTheJob) {
  const JobFolder folder;
  Inbox inbox = Inbox::begin(folder.step(), folder.request("true"), kFarPlace);
  for (const char* name : {"rank1.log", "../../plan.json", "/tmp/x", "job.node0.json", "state.node0.json", ""}) {
    EXPECT_THROW(inbox.accept(bytes_at(0, "x", name)), DataError) << name;
  }
  std::ofstream(folder.top() / "precious") << "content";
  fs::create_symlink(folder.top() / "precious", folder.step() / "rank0.log");
  EXPECT_THROW(inbox.accept(bytes_at(0, "x")), InfrastructureError);
  EXPECT_EQ(read_file(folder.top() / "precious"), "content");
}

TEST(Inbox, RejectsADamagedNote) {
  const JobFolder folder;
  const LaunchRequest job = folder.request("true");
  Inbox::begin(folder.step(), job, kFarPlace);
  const fs::path note = folder.step() / "received.node0.json";
  std::string text = read_file(note);
  text.replace(text.find("\"rank0.log\": 0"), 14, "\"rank0.log\": \"x\"");
  std::ofstream(note) << text;
  EXPECT_TRUE(mentions(message_of<DataError>([&] { Inbox::resume(folder.step(), job); }), "base.rank0.log"));
}
