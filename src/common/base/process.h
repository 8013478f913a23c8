// Processes: argument arrays only, no shell. A process gets its own group; stopping it stops everything it started.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"

namespace assay {

struct ProcessOptions {
  std::vector<std::string> argv;                // argv[0] is looked up in PATH
  std::map<std::string, std::string> env = {};  // added to, or replacing, the inherited environment
  std::filesystem::path cwd = {};               // empty: ours
  std::filesystem::path output_file = {};       // standard output and error are appended here; empty: inherited
  int input_fd = -1;                            // its standard input; -1: nothing to read
  int output_fd = -1;                           // instead of output_file, as error_fd; they stay the caller's
  int error_fd = -1;
  bool die_with_parent = true;  // SIGKILL when the thread that started it ends, however it ends
  // Marks the whole tree: every process that inherits ASSAY_TREE with this value belongs to it, even one that left the
  // process group. Empty: a fresh unique mark.
  std::string tree_mark = {};
};

struct ExitStatus {
  std::optional<int> code;  // exactly one of code and signal is set
  std::optional<int> signal;
  bool timed_out = false;  // ended by us, at its time limit
  double seconds = 0;
  int64_t max_rss_bytes = 0;  // the largest of the process and its waited-for children
  bool ok() const { return code == 0 && !timed_out; }
  int shell_code() const { return code ? *code : 128 + signal.value_or(0); }
  std::string text() const;  // "exit code 3", "killed by signal 9 (Killed)", "stopped at its time limit"
};

// Not thread-safe; the destructor kills what still runs.
class Process {
 public:
  // Throws InfrastructureError naming the program when it cannot be started.
  static Process start(const ProcessOptions& options);
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  pid_t pid() const { return pid_; }
  const std::string& tree_mark() const { return tree_mark_; }
  std::optional<ExitStatus> poll();
  // Waits at most this long; nullopt when it still runs then, or earlier when wake_fd becomes readable.
  std::optional<ExitStatus> wait_for(double seconds, int wake_fd = -1);
  ExitStatus wait();
  // SIGTERM to the whole tree, once: a second one would tell it to give up its clean end.
  void request_stop();
  // request_stop(), then SIGKILL to what is left after the grace time. Returns when the tree is gone.
  ExitStatus stop(double grace_seconds);

 private:
  Process() = default;
  pid_t pid_ = -1;
  std::string tree_mark_;
  FileDescriptor pid_fd_;
  std::chrono::steady_clock::time_point started_;
  std::optional<ExitStatus> status_;
  bool stop_requested_ = false;
};

// Starts, waits, and stops the tree at the time limit (seconds; none when nullopt).
ExitStatus run_process(const ProcessOptions& options, std::optional<double> time_limit_s = std::nullopt);

struct CapturedOutput {
  ExitStatus status;
  std::string out;
  std::string err;
};
// Runs and collects both outputs; for short commands.
CapturedOutput capture(const ProcessOptions& options, std::optional<double> time_limit_s = std::nullopt);

// Every live process that carries the mark. Needs no parent relation, so it finds what an earlier, killed run left.
std::vector<pid_t> find_tree(const std::string& tree_mark);
// Kills all of them; returns how many there were.
size_t kill_tree(const std::string& tree_mark);

}  // namespace assay
