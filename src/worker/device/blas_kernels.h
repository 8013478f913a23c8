// OpenBLAS chooses its kernels by a list of processors. One that is newer than the list gets those of 2004, and matrix
// products a sixth of their speed. The choice is made while the library is loaded, so a program that wants another one
// says so before: ASSAY_CHOOSE_BLAS_KERNELS in the file of its main(). A choice of the user's (OPENBLAS_CORETYPE)
// stays.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace assay {

// The kernels for what the processor can do, by OpenBLAS's names; nullptr: leave the choice to OpenBLAS.
inline const char* blas_kernels_for_this_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (has_avx512) return "SkylakeX";
#endif
  return nullptr;
}

// Starts this program anew, with the choice in its environment: at this moment nothing has run but the loader, and what
// is put into the environment in any other way is forgotten when the C library sets itself up.
inline void choose_blas_kernels(int /*argc*/, char** argv, char** environment) {
  constexpr char kVariable[] = "OPENBLAS_CORETYPE=";
  constexpr size_t kLongestName = 64;
  const char* kernels = blas_kernels_for_this_processor();
  if (!kernels || std::strlen(kernels) >= kLongestName) return;
  size_t count = 0;
  for (; environment[count]; ++count) {
    if (std::strncmp(environment[count], kVariable, sizeof(kVariable) - 1) == 0) return;
  }
  auto** extended = static_cast<char**>(std::malloc((count + 2) * sizeof(char*)));
  if (!extended) return;
  char choice[sizeof(kVariable) + kLongestName];
  std::strcpy(choice, kVariable);
  std::strcat(choice, kernels);
  std::memcpy(extended, environment, count * sizeof(char*));
  extended[count] = choice;
  extended[count + 1] = nullptr;
  ::execve("/proc/self/exe", argv, extended);
  std::free(extended);  // without /proc: slower, but right
}

}  // namespace assay

// The functions of this section run before those by which libraries set themselves up.
#define ASSAY_CHOOSE_BLAS_KERNELS                                                                             \
  __attribute__((section(".preinit_array"), used)) static void (*const choose_kernels)(int, char**, char**) = \
      assay::choose_blas_kernels;
