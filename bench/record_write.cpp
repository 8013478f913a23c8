// How many records a second reach a file on one core. A record is what a training loop logs: a step and four numbers.
// Prints one JSON line; bench/record puts it beside a Python logger.
#include <fmt/format.h>
#include <time.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "record/keys.h"
#include "record/stream.h"

namespace {

using namespace assay;

// Values with as many digits as measured ones have.
double loss_of(int64_t i) { return 2.3 / std::sqrt(1.0 + static_cast<double>(i)); }
double ips_of(int64_t i) { return 16000.0 + 997.0 / static_cast<double>(1 + i % 1013); }
double lr_of(int64_t i) { return 0.1 * std::exp(-1e-6 * static_cast<double>(i)); }
double time_of(int64_t i) { return 1e-3 + 1e-6 / static_cast<double>(1 + i % 97); }

void write_as_record(RecordWriter& writer, int64_t i) {
  Record record;
  record.type = Record::Type::Metrics;
  record.step = {{i / 1000, i % 1000}};
  record.data = {{keys::kTrainLoss, loss_of(i)},
                 {keys::kTrainIps, ips_of(i)},
                 {keys::kTrainLr, lr_of(i)},
                 {keys::kTrainDataTime, time_of(i)}};
  writer.write(std::move(record));
}

void write_as_metrics(RecordWriter& writer, int64_t i) {
  writer.write_metrics({i / 1000, i % 1000}, {{keys::kTrainLoss, loss_of(i)},
                                              {keys::kTrainIps, ips_of(i)},
                                              {keys::kTrainLr, lr_of(i)},
                                              {keys::kTrainDataTime, time_of(i)}});
}

using Write = void (*)(RecordWriter&, int64_t);

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Rates {
  double per_cpu_s = 0;  // of a core that does nothing else
  double per_s = 0;      // as it was, with whatever else the machine did
};

// The best of three rounds: what the machine does besides only ever makes it slower.
Rates rates(Write write, size_t flush_every, int64_t count) {
  const TempFolder folder("assay-bench");
  Rates best;
  for (int round = 0; round < 3; ++round) {
    const fs::path path = folder.path() / fmt::format("{}.jsonl", round);
    const Stopwatch watch;
    const double cpu_start = cpu_seconds();
    {
      RecordWriter writer(path, 0, flush_every);
      for (int64_t i = 0; i < count; ++i) write(writer, i);
      writer.flush();
    }
    best.per_cpu_s = std::max(best.per_cpu_s, static_cast<double>(count) / (cpu_seconds() - cpu_start));
    best.per_s = std::max(best.per_s, static_cast<double>(count) / watch.seconds());
    fs::remove(path);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t count = argc > 1 ? std::stoll(argv[1]) : 1'000'000;
  Json result{{"bench", "record_write"}, {"num_records", count}};
  const auto measure = [&](const char* name, Write write, size_t flush_every) {
    const Rates found = rates(write, flush_every, count);
    result["records_per_cpu_s"][name] = std::round(found.per_cpu_s);
    result["records_per_s"][name] = std::round(found.per_s);
  };
  measure("write_metrics, flush_every 64", write_as_metrics, 64);
  measure("write_metrics, flush_every 1", write_as_metrics, 1);
  measure("write(Record), flush_every 64", write_as_record, 64);
  measure("write(Record), flush_every 1", write_as_record, 1);
  fmt::print("{}\n", to_line(result));
}
