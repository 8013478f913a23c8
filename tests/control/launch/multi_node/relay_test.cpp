#include "launch/multi_node/relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "../job_support.h"
#include "base/error.h"
#include "base/process.h"
#include "launch/host/job.h"
#include "launch/host/job_state.h"
#include "launch/multi_node/frames.h"

using namespace assay;

namespace {

// A relay of a job without a supervisor of its own: the test plays it.
class RelayTest : public ::testing::Test {
 protected:
  RelayTest() {
    ::signal(SIGPIPE, SIG_IGN);
    job_ = folder_.request("true", 2, 1);
    job_.ranks.node_rank = 1;
    write_job(folder_.step(), job_);
    lock_ = take_supervisor_lock(folder_.step(), 1);
    state_ = {.phase = JobState::Phase::Running,
              .run_id = "run-1",
              .node = 1,
              .host = "h",
              .pid = ::getpid(),
              .started_us = 1};
  }
  ~RelayTest() override { end_relay(); }

  void begin(const std::map<std::string, int64_t>& have) {
    write_state(folder_.step(), state_);
    int in[2], out[2];
    ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
    to_relay_ = FileDescriptor(in[1]);
    from_relay_ = FileDescriptor(out[0]);
    thread_ = std::thread([this, in_fd = in[0], out_fd = out[1]] {
      const FileDescriptor in(in_fd), out(out_fd);
      try {
        run_relay(folder_.step(), 1, in.get(), out.get());
      } catch (const Error& error) {
        failure_ = error.what();
      }
    });
    tell(encode_have(have));
  }
  void end_relay() {
    to_relay_.reset();
    from_relay_.reset();
    if (thread_.joinable()) thread_.join();
  }
  void tell(const std::string& line) { write_all(to_relay_.get(), line, "pipe"); }
  // Frames other than beats until `enough` is true of the last one.
  std::vector<Frame> hear_until(const std::function<bool(const Frame&)>& enough) {
    std::vector<Frame> got;
    const Stopwatch watch;
    while (watch.seconds() < 60) {
      while (auto frame = reader_.next()) {
        if (frame->kind == Frame::Kind::Beat) continue;
        got.push_back(*frame);
        if (enough(got.back())) return got;
      }
      pollfd watched{from_relay_.get(), POLLIN, 0};
      if (::poll(&watched, 1, 100) <= 0) continue;
      char block[4096];
      const ssize_t size = ::read(from_relay_.get(), block, sizeof block);
      if (size <= 0) break;
      reader_.add(std::string_view(block, static_cast<size_t>(size)));
    }
    ADD_FAILURE() << "the relay did not say it; it said " << got.size() << " frames; " << failure_;
    return got;
  }
  void append(const std::string& name, const std::string& text) {
    std::ofstream(folder_.step() / name, std::ios::app) << text;
  }

  JobFolder folder_;
  LaunchRequest job_;
  FileDescriptor lock_;
  JobState state_;
  FileDescriptor to_relay_;
  FileDescriptor from_relay_;
  FrameReader reader_;
  std::string failure_;
  std::thread thread_;
};

bool is_end(const Frame& frame) {
  return frame.kind == Frame::Kind::State && job_state_of(parse_json(frame.bytes, "state"), "state").ended();
}

std::string content_of(const std::vector<Frame>& frames, const std::string& file, size_t from = 0) {
  std::string out;
  for (const Frame& frame : frames) {
    if (frame.kind != Frame::Kind::Bytes || frame.file != file) continue;
    EXPECT_EQ(static_cast<size_t>(frame.offset), from + out.size());
    out += frame.bytes;
  }
  return out;
}

}  // namespace

TEST_F(RelayTest, SendsWhatIsMissingOnceAndTheEndLast) {
  append("rank1.log", "of an earlier attempt;");
  state_.base["rank1.log"] = 22;
  append("rank1.log", "0123456789");
  append("rank0.log", "another node's");
  append("secret.txt", "not for anybody");
  begin({{"rank1.log", 4}, {"secret.txt", 0}, {"../../plan.json", 0}});
  const std::string large(700'000, 'x');
  append("records.rank1.jsonl", large);
  append("rank1.log", "abc");
  state_.phase = JobState::Phase::Ended;
  state_.error_kind = "infrastructure";
  write_state(folder_.step(), state_);
  const auto got = hear_until(is_end);
  EXPECT_EQ(got[0].kind, Frame::Kind::Hello);
  EXPECT_EQ(content_of(got, "rank1.log", 4), "456789abc");
  EXPECT_EQ(content_of(got, "records.rank1.jsonl"), large);
  for (const Frame& frame : got) {
    EXPECT_NE(frame.file, "secret.txt");
    EXPECT_NE(frame.file, "rank0.log");
  }
}

TEST_F(RelayTest, ObeysItsInputAndEndsWithIt) {
  begin({});
  hear_until([](const Frame& frame) { return frame.kind == Frame::Kind::State; });
  const std::string before = read_lease(folder_.step(), 1);
  EXPECT_NE(before, "");
  tell("lease\n");
  EXPECT_TRUE(becomes_true(5, [&] { return read_lease(folder_.step(), 1) != before; }));
  tell("stop 2.5\n");
  EXPECT_TRUE(becomes_true(5, [&] { return read_stop(folder_.step(), 1) == 2.5; }));
  const Stopwatch watch;
  end_relay();
  EXPECT_LT(watch.seconds(), 2);
  EXPECT_EQ(failure_, "");
}

TEST_F(RelayTest, TellsWhenTheSupervisorIsGone) {
  begin({});
  hear_until([](const Frame& frame) { return frame.kind == Frame::Kind::State; });
  lock_.reset();
  const auto got = hear_until([](const Frame& frame) { return frame.kind == Frame::Kind::Gone; });
  EXPECT_TRUE(mentions(got.back().text, "was killed"));
}

TEST_F(RelayTest, CutsAFileThatBecomesShorter) {
  append("rank1.log", "0123456789");
  begin({});
  hear_until([](const Frame& frame) { return frame.kind == Frame::Kind::Bytes; });
  fs::resize_file(folder_.step() / "rank1.log", 3);
  const auto got = hear_until([](const Frame& frame) { return frame.kind == Frame::Kind::Cut; });
  EXPECT_EQ(got.back().offset, 3);
  append("rank1.log", "new");
  EXPECT_EQ(hear_until([](const Frame& frame) { return frame.kind == Frame::Kind::Bytes; }).back().bytes, "new");
}

TEST_F(RelayTest, EndsAtUnknownMessages) {
  begin({});
  tell("rm -rf\n");
  thread_.join();
  EXPECT_TRUE(mentions(failure_, "'rm -rf' is not known")) << failure_;
}
