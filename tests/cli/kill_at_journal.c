/* Preloaded into assay by tests: kills the process right after line number ASSAY_TEST_KILL_AT of a run's journal is on the disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_journal(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0) return 0;
  path[size] = 0;
  const char* name = strrchr(path, '/');
  return name && strcmp(name, "/journal.jsonl") == 0;
}

int fdatasync(int fd) {
  static int count = 0;
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  const int result = real(fd);
  const char* limit = getenv("ASSAY_TEST_KILL_AT");
  if (limit && is_journal(fd) && ++count >= atoi(limit)) raise(SIGKILL);
  return result;
}
