#include "base/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace assay {

namespace {

// A signal handler can reach nothing but globals.
std::atomic<int> g_signal{0};
int g_pipe[2] = {-1, -1};
std::atomic<bool> g_patient{false};

void on_stop(int number) {
  int expected = 0;
  if (!g_signal.compare_exchange_strong(expected, number)) {
    if (g_patient) return;
    ::_exit(128 + number);
  }
  const char byte = 1;
  (void)!::write(g_pipe[1], &byte, 1);
}

}  // namespace

void catch_stop_signals() {
  if (g_pipe[0] < 0 && ::pipe2(g_pipe, O_CLOEXEC | O_NONBLOCK) != 0) return;
  struct sigaction action {};
  action.sa_handler = on_stop;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void end_in_peace() { g_patient = true; }
int stop_signal() { return g_signal.load(); }
int stop_fd() { return g_pipe[0]; }

}  // namespace assay
