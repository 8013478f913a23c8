// One process of bench/comm under mpirun: MPI_Allreduce of float32, in place. Rank 0 prints one JSON line: bytes ->
// seconds from the first process's beginning to the last one's end, the median of all runs.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
}  // namespace

// arguments: ROUNDS BYTES...
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int rounds = std::atoi(argv[1]);
  if (rank == 0) std::printf("{");
  for (int i = 2; i < argc; ++i) {
    const long bytes = std::atol(argv[i]);
    std::vector<float> data(static_cast<size_t>(bytes / 4));
    std::vector<double> values;
    const int repeats = static_cast<int>(std::clamp(128L * (1 << 20) / bytes, 2L, 200L));
    for (int round = 0; round < rounds; ++round) {
      for (int k = -1; k < repeats; ++k) {
        std::fill(data.begin(), data.end(), 1.0f);
        MPI_Barrier(MPI_COMM_WORLD);
        double times[] = {-now(), 0};
        MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        times[1] = now();
        MPI_Allreduce(MPI_IN_PLACE, times, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (k >= 0) values.push_back(times[1] + times[0]);
      }
    }
    std::sort(values.begin(), values.end());
    if (rank == 0) std::printf("%s\"%ld\": %.9f", i > 2 ? ", " : "", bytes, values[values.size() / 2]);
  }
  if (rank == 0) std::printf("}\n");
  MPI_Finalize();
  return 0;
}
