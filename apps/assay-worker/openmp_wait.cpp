// How OpenMP threads wait. libgomp's default is to spin for milliseconds, which on a machine that also does something
// else takes the core from the very thread that is waited for. libgomp reads its settings in its constructor, long
// before main and while libc's own environment is not yet in place, so the program starts itself once more with the
// setting. This happens in a preinit function, which runs before the constructors of all libraries: libtorch's cost
// half a second, this costs the linking alone. A setting of the user is left alone.
#include <unistd.h>

#include <cstring>

namespace {

constexpr char kSetting[] = "OMP_WAIT_POLICY=passive";
constexpr int kMaxVariables = 65536;

bool is_set(const char* entry) {
  return std::strncmp(entry, "OMP_WAIT_POLICY=", 16) == 0 || std::strncmp(entry, "GOMP_SPINCOUNT=", 15) == 0;
}

void restart_with_wait_policy(int /*argc*/, char** argv, char** environment) {
  int count = 0;
  while (environment[count]) {
    if (is_set(environment[count]) || ++count == kMaxVariables) return;
  }
  char* extended[kMaxVariables + 2];
  std::memcpy(extended, environment, sizeof(char*) * static_cast<size_t>(count));
  extended[count] = const_cast<char*>(kSetting);
  extended[count + 1] = nullptr;
  ::execve("/proc/self/exe", argv, extended);
  // Returns only when it failed; then training is slower, not wrong.
}

__attribute__((section(".preinit_array"), used)) void (*const g_before_libraries)(int, char**,
                                                                                  char**) = restart_with_wait_policy;

}  // namespace
