#include "doctor/machine.h"

#include <fmt/format.h>

#include "base/text.h"

namespace assay {

namespace {

constexpr double kGigabyte = 1e9;
// OpenBLAS reaches 0.8 to 0.95 of what the vector units can do; the reference BLAS about 0.02. Half is a wide margin
// for a machine that is busy with something else.
constexpr double kMinBlasShare = 0.5;
constexpr double kMinFreeDisk = 2 * kGigabyte;

using State = Finding::State;

std::string text_at(const Json& value, const char* pointer, const std::string& otherwise = "unknown") {
  const Json::json_pointer at(pointer);
  if (!value.is_object() || !value.contains(at) || !value.at(at).is_string()) return otherwise;
  return value.at(at).get<std::string>();
}

std::optional<double> number_at(const Json& value, const char* pointer) {
  const Json::json_pointer at(pointer);
  if (!value.is_object() || !value.contains(at) || !value.at(at).is_number()) return std::nullopt;
  return value.at(at).get<double>();
}

std::string bytes_text(std::optional<double> bytes) {
  return bytes ? fmt::format("{:.1f} GB", *bytes / kGigabyte) : "unknown";
}

void examine_host(const MachineFacts& facts, std::vector<Finding>& out) {
  out.push_back(
      {"assay", fmt::format("{} ({})", text_at(facts.host, "/assay/version"), text_at(facts.host, "/assay/commit"))});
  out.push_back({"system", fmt::format("{}, kernel {}", text_at(facts.host, "/host/system"),
                                       text_at(facts.host, "/host/kernel"))});
  const auto cores = number_at(facts.host, "/processor/cores");
  std::string simd = text_at(facts.worker, "/cpu/simd", "");
  out.push_back(
      {"processor", fmt::format("{}, {} cores{}", text_at(facts.host, "/processor/model"),
                                cores ? fmt::format("{}", *cores) : "unknown", simd.empty() ? "" : ", " + simd)});
  out.push_back({"memory", bytes_text(number_at(facts.host, "/memory/total_bytes"))});
  const auto free =
      facts.disk_free_bytes.is_number() ? std::optional(facts.disk_free_bytes.get<double>()) : std::nullopt;
  Finding disk{"disk for runs", bytes_text(free) + " free"};
  if (free && *free < kMinFreeDisk) {
    disk.state = State::Problem;
    disk.fix = "free some space, or put runs elsewhere: export ASSAY_RUNS=/path/with/space";
  }
  out.push_back(disk);
}

void examine_libraries(const Json& worker, std::vector<Finding>& out) {
  out.push_back(
      {"compiler", fmt::format("{} {}", text_at(worker, "/compiler/name"), text_at(worker, "/compiler/version"))});
  out.push_back({"libtorch", text_at(worker, "/libtorch/version")});
  out.push_back({"oneDNN", text_at(worker, "/onednn/version")});
  const bool has_gloo = worker.value("/gloo/present"_json_pointer, false);
  Finding gloo{"gloo", has_gloo ? text_at(worker, "/gloo/version", "present") : "missing"};
  if (!has_gloo) {
    gloo.state = State::Problem;
    gloo.fix = "sudo apt-get install libgloo-dev";
  }
  out.push_back(gloo);
}

void examine_blas(const Json& worker, std::vector<Finding>& out) {
  const bool openblas = worker.value("/blas/openblas"_json_pointer, false);
  Finding blas{"BLAS", openblas ? text_at(worker, "/blas/config") : text_at(worker, "/blas/library")};
  const auto gflops = number_at(worker, "/blas/sgemm_gflops");
  const auto peak = number_at(worker, "/cpu/fma_gflops");
  if (gflops) blas.value += fmt::format(", {:.0f} GFLOPS", *gflops);
  if (gflops && peak && *peak > 0) {
    blas.value += fmt::format(" of {:.0f} the processor can do ({:.0f} %)", *peak, 100 * *gflops / *peak);
  }
  const std::string problem = text_at(worker, "/blas/problem", "");
  if (!openblas || !problem.empty()) {
    blas.state = State::Problem;
    blas.value += problem.empty() ? "; not OpenBLAS: training is many times slower" : "; " + problem;
    blas.fix = "script/bootstrap, which installs OpenBLAS and chooses it; then build again";
  } else if (gflops && peak && *gflops < kMinBlasShare * *peak) {
    blas.state = State::Problem;
    blas.value += "; slower than it should be";
    blas.fix =
        "stop other programs and run assay doctor again; check that ASSAY_THREADS and OMP_NUM_THREADS are not set";
  }
  out.push_back(blas);
}

void examine_threads_and_devices(const Json& worker, std::vector<Finding>& out) {
  const auto threads = number_at(worker, "/threads/compute");
  const auto cores = number_at(worker, "/cpu/usable_cores");
  Finding found{"threads", fmt::format("{} for {} usable cores", threads ? fmt::format("{}", *threads) : "unknown",
                                       cores ? fmt::format("{}", *cores) : "unknown")};
  if (threads && cores && *threads < *cores) {
    found.state = State::Problem;
    found.fix = "unset ASSAY_THREADS OMP_NUM_THREADS";
  }
  out.push_back(found);
  const Json devices = worker.value("/devices/list"_json_pointer, Json::array());
  if (devices.empty()) {
    const std::string why = text_at(worker, "/devices/detail", "");
    out.push_back({"accelerators", "none" + (why.empty() ? "" : ": " + why), State::Note});
  }
  for (const Json& device : devices) {
    out.push_back({"accelerator",
                   fmt::format("{}, {}", text_at(device, "/name"), bytes_text(number_at(device, "/memory_bytes")))});
  }
}

}  // namespace

std::vector<Finding> examine_machine(const MachineFacts& facts) {
  std::vector<Finding> out;
  examine_host(facts, out);
  if (facts.worker.is_object()) {
    examine_libraries(facts.worker, out);
    examine_blas(facts.worker, out);
    examine_threads_and_devices(facts.worker, out);
  } else {
    out.push_back(
        {"assay-worker", facts.worker_error.empty() ? "missing" : facts.worker_error, State::Problem,
         "script/bootstrap && cmake --preset release && cmake --build --preset release --target assay-worker"});
  }
  for (const Json& data : facts.data) {
    const bool found = data.value("found", false);
    const std::string package = text_at(data, "/package", "");
    Finding finding{fmt::format("data {}", text_at(data, "/name")), text_at(data, "/path")};
    if (!found) {
      finding.state = State::Problem;
      finding.value += ", missing";
      finding.fix = package.empty() ? "put it there, or give --dataset_path" : "sudo apt-get install " + package;
    }
    out.push_back(finding);
  }
  return out;
}

}  // namespace assay
