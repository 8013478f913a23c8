#include "preflight/preflight.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "base/version.h"

namespace assay {

namespace {

constexpr size_t kMostAskedAtOnce = 64;
constexpr double kGigabyte = 1e9;
constexpr double kAnswerSeconds = 120;  // vendors' commands and copies of assay included
constexpr double kHashRate = 20e6;      // bytes a second that every disk and processor manages

// Collects the problems of one host.
class HostJudge {
 public:
  HostJudge(const PreflightNeeds& needs, const NodePlace& place, const Json& answer)
      : needs_(needs), host_(place.host), devices_(place.devices), answer_(answer) {}

  void add(const std::string& what, const std::string& fix,
           PreflightProblem::Severity severity = PreflightProblem::Severity::Error) {
    problems_.push_back({.severity = severity, .host = host_.name, .what = what, .fix = fix});
  }
  std::vector<PreflightProblem> take() { return std::move(problems_); }

  void check_version() {
    const std::string there = fmt::format("{} ({})", text("/assay/version"), text("/assay/commit"));
    const std::string here = fmt::format("{} ({})", version(), commit());
    if (!needs_.same_version || there == here) return;
    add(fmt::format("assay there is {}, here it is {}", there, here),
        "stage this one (leave out `program` of the host), or install the same version there");
  }

  void check_paths() {
    for (const std::string& path : needs_.paths) {
      const Json paths = answer_.value("paths", Json::object());
      if (paths.contains(path) && paths[path] == true) continue;
      add(fmt::format("{} does not exist", path), "create or mount it there, or correct the campaign");
    }
  }

  void check_programs() {
    const Json programs = answer_.value("programs", Json::object());
    for (const auto& [name, path] : needs_.programs) {
      if (programs.contains(name) && programs[name].is_string()) continue;
      const bool is_path = name.find('/') != std::string::npos;
      add(fmt::format("{} is no program{}", name, is_path ? "" : " in its PATH"),
          is_path ? "install it there, or correct the case" : "install it there, or set PATH in `environment`");
    }
  }

  void check_data() {
    const Json list = answer_.value("data", Json::array());
    for (size_t i = 0; i < needs_.data.size(); ++i) {
      const std::string& path = needs_.data[i].path;
      const Json found = list.is_array() && i < list.size() ? list[i] : Json::object();
      if (!found.is_object() || found.value("exists", Json(false)) != true) {
        add(fmt::format("data {}: does not exist", path), "copy or mount the data there, or correct its path");
        continue;
      }
      const Json wrong = found.value("wrong", Json::array());
      for (const Json& file : wrong) check_file(path, needs_.data[i], file);
    }
  }

  void check_disk() {
    if (needs_.min_free_bytes <= 0) return;
    const auto free = number("/disk/free_bytes");
    const std::string path = text("/disk/path");
    if (!free) {
      add(fmt::format("the free space of {} is not known", path), "see that the path is right and may be read");
    } else if (*free < static_cast<double>(needs_.min_free_bytes)) {
      add(fmt::format("{} has {:.2f} GB free, and {:.2f} GB are needed", path, *free / kGigabyte,
                      static_cast<double>(needs_.min_free_bytes) / kGigabyte),
          "free some space, or choose another work_dir");
    }
    if (answer_.value("/disk/writable"_json_pointer, Json(true)) == false) {
      add(fmt::format("{} may not be written to", path), "choose another work_dir, or change its owner");
    }
  }

  void check_ports(bool is_first) {
    if (!is_first) return;
    const Json ports = answer_.value("ports", Json::object());
    for (const int port : needs_.master_ports) {
      const Json why = ports.value(std::to_string(port), Json("was not looked at"));
      if (why.is_null()) continue;
      add(fmt::format("port {}: {}", port, why.is_string() ? why.get<std::string>() : "unknown"),
          "choose another MASTER_PORT, or leave it out so that a free one is found");
    }
  }

  void check_devices() {
    if (devices_.empty()) return;
    const std::string error = text("/devices/error", "");
    if (!error.empty()) {
      return add(fmt::format("the number of {} devices is not known: {}", needs_.hardware, error),
                 "install the vendor's driver and tools there, or correct its vendor.yaml");
    }
    const auto count = device_count();
    if (!count) {
      return add(fmt::format("the number of {} devices is not known", needs_.hardware),
                 "give the hardware a command `devices` in vendor.yaml", PreflightProblem::Severity::Warning);
    }
    const int last = *std::max_element(devices_.begin(), devices_.end());
    if (*count <= last) {
      const bool from_first = static_cast<size_t>(last) + 1 == devices_.size();
      add(from_first
              ? fmt::format("{} {} devices, and {} are needed", *count, needs_.hardware, last + 1)
              : fmt::format("{} {} devices, and number {} is wanted; the first is 0", *count, needs_.hardware, last),
          from_first ? "use a case with a smaller nproc, or another host" : "correct `devices`, or use another host");
    }
  }

  // Also where nobody knows how many there are.
  void check_locks() {
    const Json locks = answer_.value("locks", Json::array());
    const auto word = [](const Json& lock, const char* key) {
      return lock.contains(key) && lock[key].is_string() ? valid_utf8(lock[key].get<std::string>()) : "unknown";
    };
    for (const Json& lock : locks) {
      if (!lock.is_object() || word(lock, "hardware") != needs_.hardware) continue;
      if (!needs_.own_run.empty() && word(lock, "run") == needs_.own_run) continue;
      const Json index = lock.value("index", Json());
      if (std::none_of(devices_.begin(), devices_.end(), [&](int device) { return index == device; })) continue;
      add(fmt::format("device {} {} of {} is in use by run {} of user {} (process {})", needs_.hardware, index.dump(),
                      text("/host"), word(lock, "run"), word(lock, "user"), word(lock, "pid")),
          "wait until that run has ended, stop it there with assay stop, or use other devices");
    }
  }

  void check_versions() {
    const Json versions = answer_.value("versions", Json::object());
    for (const auto& [name, argv] : needs_.versions) {
      if (versions.contains(name) && versions[name].is_string()) continue;
      add(fmt::format("{} does not run ({})", name, shell_line(argv)), fmt::format("install {} there", name));
    }
    if (needs_.page_cache && answer_.value("page_cache", Json(false)) != true) {
      add("the page cache may not be dropped", "leave out clear_caches, or run as root there",
          PreflightProblem::Severity::Warning);
    }
  }

  void check_clock(int64_t asked_us, int64_t answered_us) {
    const auto shown = number("/time_us");
    if (!shown) return add("said nothing about its time", "use the same version of assay there");
    const double early = (static_cast<double>(asked_us) - *shown) * 1e-6;
    const double late = (*shown - static_cast<double>(answered_us)) * 1e-6;
    const double skew = std::max({0.0, early, late});
    if (skew <= kClockSkewWarning) return;
    add(fmt::format("its clock is {} {} ours", duration_text(skew), early > late ? "behind" : "ahead of"),
        "set the clocks (chrony, ntp): times of hosts are put beside each other",
        skew > kClockSkewError ? PreflightProblem::Severity::Error : PreflightProblem::Severity::Warning);
  }

 private:
  std::string text(const char* pointer, const std::string& otherwise = "unknown") const {
    const Json::json_pointer at(pointer);
    return answer_.contains(at) && answer_.at(at).is_string() ? valid_utf8(answer_.at(at).get<std::string>())
                                                              : otherwise;
  }
  std::optional<double> number(const char* pointer) const {
    const Json::json_pointer at(pointer);
    return answer_.contains(at) && answer_.at(at).is_number() ? std::optional(answer_.at(at).get<double>())
                                                              : std::nullopt;
  }

  void check_file(const std::string& path, const DataNeed& need, const Json& file) {
    if (!file.is_object()) return;
    const std::string name = file.value("file", Json("?")).is_string() ? file["file"].get<std::string>() : "?";
    const Json problem = file.value("problem", Json());
    if (problem == "missing") {
      add(fmt::format("data {}: {} is missing", path, name), "copy the whole data set there");
    } else if (problem == "differs") {
      const auto expected = need.sha256.find(name);
      const Json found = file.value("found", Json());
      add(fmt::format("data {}: {} is not the file it should be (SHA-256 {}, expected {})", path, name,
                      found.is_string() ? found.get<std::string>().substr(0, 12) : "unknown",
                      expected == need.sha256.end() ? "unknown" : expected->second.substr(0, 12)),
          "copy it again, and find out who changed it");
    } else {
      add(fmt::format("data {}: {}: {}", path, name,
                      problem.is_string() ? problem.get<std::string>() : "cannot be read"),
          "see who may read it");
    }
  }

  std::optional<int> device_count() const {
    if (const auto count = number("/devices/count")) return static_cast<int>(*count);
    const std::string output = text("/devices/output", "");
    if (needs_.count_devices) return needs_.count_devices(output);
    for (size_t i = 0; i < output.size(); ++i) {
      if (!std::isdigit(static_cast<unsigned char>(output[i]))) continue;
      const size_t end = std::find_if(output.begin() + static_cast<long>(i), output.end(),
                                      [](unsigned char c) { return !std::isdigit(c); }) -
                         output.begin();
      const auto count = parse_int(output.substr(i, end - i));
      return count && *count < 1'000'000 ? std::optional(static_cast<int>(*count)) : std::nullopt;
    }
    return std::nullopt;
  }

  const PreflightNeeds& needs_;
  const Host& host_;
  const std::vector<int>& devices_;
  const Json& answer_;
  std::vector<PreflightProblem> problems_;
};

struct HostAnswer {
  Json answer = nullptr;
  std::vector<PreflightProblem> problems;
};

Json data_question(const PreflightNeeds& needs, bool with_hashes) {
  Json data = Json::array();
  for (const DataNeed& need : needs.data) {
    data.push_back({{"path", need.path}, {"sha256", need.sha256}, {"check_hashes", with_hashes && need.check_hashes}});
  }
  return data;
}

// How much there is to be hashed, as the host says.
double bytes_to_hash(const PreflightNeeds& needs, const Json& answer) {
  double total = 0;
  const Json list = answer.value("data", Json::array());
  for (size_t i = 0; i < needs.data.size() && list.is_array() && i < list.size(); ++i) {
    if (!needs.data[i].check_hashes || !list[i].is_object()) continue;
    const Json bytes = list[i].value("bytes", Json());
    if (bytes.is_number()) total += std::max(0.0, bytes.get<double>());
  }
  return total;
}

HostAnswer ask_host(const PreflightNeeds& needs, const NodePlace& place, bool is_first, const HostRunner& run) {
  HostAnswer out;
  const Host& host = place.host;
  const auto unreachable = [&](const std::string& what, const std::string& fix) {
    out.problems.push_back({.host = host.name, .what = what, .fix = fix});
  };
  const auto ask = [&](const Json& question, double time_limit_s) -> Json {
    const CapturedOutput said = run(host, {"assay", "probe", to_line(question)}, time_limit_s);
    if (!said.status.ok()) {
      const std::string words(trim(said.err));
      unreachable(
          fmt::format("cannot be asked: {}{}", said.status.text(), words.empty() ? "" : ": " + valid_utf8(words)),
          "try the same by hand: address, port, user, key, known_hosts, and whether assay runs there");
      return nullptr;
    }
    Json answer = parse_json(trim(said.out), "the answer of " + host.name);
    if (!answer.is_object()) throw DataError("it is no object");
    return answer;
  };
  try {
    out.answer = ask(probe_request(needs, place, is_first), kAnswerSeconds);
    if (out.answer.is_null()) return out;
    if (const double bytes = bytes_to_hash(needs, out.answer); bytes > 0) {
      const Json hashes = ask({{"data", data_question(needs, true)}}, kAnswerSeconds + bytes / kHashRate);
      if (hashes.is_null()) return out;
      out.answer["data"] = hashes.value("data", Json());
    }
    // The clock alone, over what is connected by now: what took long above hides a clock that is behind.
    const int64_t asked_us = now_us();
    const Json clock = ask(Json::object(), kAnswerSeconds);
    const int64_t answered_us = now_us();
    if (clock.is_null()) return out;
    out.answer["time_us"] = clock.value("time_us", Json());
    out.problems = judge_probe(needs, place, is_first, out.answer, asked_us, answered_us);
  } catch (const InfrastructureError& error) {
    unreachable(error.what(), "try the same by hand: address, port, user, key, known_hosts");
  } catch (const std::exception& error) {
    unreachable(fmt::format("its answer is not one of assay: {}", error.what()),
                "see that its shell prints nothing at login, and use the same version of assay there");
  }
  return out;
}

}  // namespace

std::string PreflightProblem::text() const {
  return fmt::format("{}: {}{}", host, what, fix.empty() ? "" : "; " + fix);
}

bool PreflightReport::ok() const {
  return std::none_of(problems.begin(), problems.end(), [](const PreflightProblem& problem) {
    return problem.severity == PreflightProblem::Severity::Error;
  });
}

Json probe_request(const PreflightNeeds& needs, const NodePlace& place, bool is_first) {
  Json out = {{"paths", needs.paths},
              {"programs", needs.programs},
              {"data", data_question(needs, false)},
              {"versions", needs.versions}};
  if (needs.min_free_bytes > 0) out["disk"] = needs.disk_path.empty() ? place.host.work_dir.string() : needs.disk_path;
  if (is_first) out["ports"] = needs.master_ports;
  if (!place.devices.empty()) {
    out["hardware"] = needs.hardware;
    if (!needs.device_command.empty()) out["device_command"] = needs.device_command;
  }
  for (const char* key : {"programs", "versions"}) {
    if (out[key].is_null()) out[key] = Json::object();
  }
  return out;
}

std::vector<PreflightProblem> judge_probe(const PreflightNeeds& needs, const NodePlace& place, bool is_first,
                                          const Json& answer, int64_t asked_us, int64_t answered_us) {
  HostJudge judge(needs, place, answer);
  judge.check_version();
  judge.check_paths();
  judge.check_programs();
  judge.check_data();
  judge.check_disk();
  judge.check_ports(is_first);
  judge.check_devices();
  judge.check_locks();
  judge.check_versions();
  judge.check_clock(asked_us, answered_us);
  return judge.take();
}

PreflightReport run_preflight(const std::vector<NodePlace>& hosts, const PreflightNeeds& needs, const HostRunner& run) {
  std::vector<HostAnswer> answers(hosts.size());
  std::atomic<size_t> next{0};
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < std::min(hosts.size(), kMostAskedAtOnce); ++i) {
      threads.emplace_back([&] {
        for (size_t h = next++; h < hosts.size(); h = next++) answers[h] = ask_host(needs, hosts[h], h == 0, run);
      });
    }
  }
  PreflightReport report;
  for (size_t h = 0; h < hosts.size(); ++h) {
    if (!answers[h].answer.is_null()) report.hosts[hosts[h].host.name] = std::move(answers[h].answer);
    for (PreflightProblem& problem : answers[h].problems) report.problems.push_back(std::move(problem));
  }
  return report;
}

}  // namespace assay
