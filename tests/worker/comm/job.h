// Several processes of assay_comm_rank as one job, for the tests of comm.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "base/time.h"

namespace assay::comm_test {

using Environment = std::map<std::string, std::string>;
inline const std::string kRankProgram = std::string(ASSAY_BINARY_DIR) + "/bin/assay_comm_rank";

int free_port();

class Job {
 public:
  // Starts nothing yet; ranks find each other at 127.0.0.1 and a free port.
  explicit Job(int world_size, Environment environment = {});
  int port() const { return port_; }

  // `before` is put in front of the program: "nsenter ...".
  void start(int rank, const std::vector<std::string>& arguments, const Environment& more = {},
             const std::vector<std::string>& before = {});
  void start_all(const std::vector<std::string>& arguments);

  // Until the output of all ranks holds this text; a failure of the test when it does not come.
  void await(const std::string& text);
  void kill(int rank, int signal);

  struct End {
    ExitStatus status;
    std::string output;
  };
  // Waits for the end, and kills what does not end: only what hangs takes so long, on however busy a machine.
  End end(int rank, double limit_s = 200);
  std::string output(int rank) const;

 private:
  const int world_size_;
  const Environment environment_;
  const int port_;
  TempFolder folder_;
  std::map<int, std::unique_ptr<Process>> processes_;
};

// All ranks end with 0; their outputs otherwise.
void expect_fine(int world_size, const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace assay::comm_test
