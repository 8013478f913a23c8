#include "preflight/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/text.h"
#include "base/time.h"
#include "base/version.h"
#include "launch/host/device_lock.h"
#include "launch/host/port.h"

namespace assay {

namespace {

constexpr double kProbeCommandLimit = 30;  // seconds for a vendor's command or a version
constexpr size_t kMaxProbeOutput = 4096;

[[noreturn]] void reject_question(const std::string& key, const char* what) {
  throw DataError(fmt::format("probe: '{}' must be {}", key, what));
}

const Json* asked(const Json& question, const char* key, Json::value_t type, const char* what) {
  const auto found = question.find(key);
  if (found == question.end() || found->is_null()) return nullptr;
  if (found->type() != type) reject_question(key, what);
  return &*found;
}

std::string text_of(const Json& value, const std::string& key) {
  if (!value.is_string()) reject_question(key, "a text");
  return value.get<std::string>();
}

std::vector<std::string> argv_of(const Json& value, const std::string& key) {
  if (!value.is_array() || value.empty()) reject_question(key, "a list of words");
  std::vector<std::string> argv;
  for (const Json& word : value) argv.push_back(text_of(word, key));
  return argv;
}

bool path_exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) && !error;
}

Json probe_data(const Json& need) {
  if (!need.is_object() || !need.contains("path")) reject_question("data", "a list of objects with a path");
  const std::string path = text_of(need.at("path"), "data.path");
  Json out = {{"path", path}, {"exists", path_exists(path)}, {"bytes", 0}, {"wrong", Json::array()}};
  if (!out["exists"].get<bool>()) return out;
  const bool check = need.contains("check_hashes") && need.at("check_hashes") == true;
  const Json* files = asked(need, "sha256", Json::value_t::object, "an object");
  if (files == nullptr) return out;
  uintmax_t bytes = 0;
  for (const auto& [file, hash] : files->items()) {
    const fs::path whole = fs::path(path) / file;
    std::error_code unknown;
    const uintmax_t size = fs::file_size(whole, unknown);
    if (!unknown) bytes += size;
    if (!path_exists(whole.string())) {
      out["wrong"].push_back({{"file", file}, {"problem", "missing"}, {"found", nullptr}});
    } else if (check) {
      try {
        const std::string found = sha256_file(whole);
        if (found != hash) out["wrong"].push_back({{"file", file}, {"problem", "differs"}, {"found", found}});
      } catch (const DataError& error) {
        out["wrong"].push_back({{"file", file}, {"problem", error.what()}, {"found", nullptr}});
      }
    }
  }
  out["bytes"] = bytes;
  return out;
}

// As a shell finds it: null when there is none that may be run.
Json find_program(const std::string& name, const std::string& given_path) {
  const auto runs = [](const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.empty()) return nullptr;
  if (name.find('/') != std::string::npos) return runs(name) ? Json(name) : Json(nullptr);
  const char* own = std::getenv("PATH");
  for (const std::string& folder : split(given_path.empty() ? (own ? own : "/usr/bin:/bin") : given_path, ':')) {
    const fs::path path = fs::path(folder.empty() ? "." : folder) / name;
    if (runs(path)) return path.string();
  }
  return nullptr;
}

// A work folder as ssh_host.cpp understands it: in the home folder, and .assay there when there is none.
fs::path work_folder(const std::string& path) {
  if (path.starts_with('/')) return path;
  const char* home = std::getenv("HOME");
  const fs::path own = home && *home ? home : ".";
  if (path.empty()) return own / ".assay";
  return own / (path.starts_with("~/") ? path.substr(2) : path);
}

// The nearest folder that exists: the one that will be written to may yet have to be made.
Json probe_disk(const std::string& given) {
  const fs::path path = work_folder(given);
  fs::path at = fs::absolute(path);
  while (!path_exists(at.string()) && at.has_parent_path() && at != at.parent_path()) at = at.parent_path();
  std::error_code error;
  const fs::space_info space = fs::space(at, error);
  const bool writable = ::access(at.c_str(), W_OK) == 0;
  return {
      {"path", path.string()}, {"free_bytes", error ? Json(nullptr) : Json(space.available)}, {"writable", writable}};
}

Json probe_port(int64_t port) {
  if (port < 1 || port > 65535) return "not a port";
  try {
    check_port_free(static_cast<int>(port));
    return nullptr;
  } catch (const InfrastructureError& error) {
    return error.what();
  }
}

CapturedOutput run_for_probe(const std::vector<std::string>& argv) {
  return capture({.argv = argv}, kProbeCommandLimit);
}

Json probe_devices(const std::string& hardware, const Json* command) {
  Json out = {{"count", nullptr}, {"output", nullptr}, {"error", nullptr}};
  if (command == nullptr) {
    if (lower(hardware) != "cpu") return out;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (::sched_getaffinity(0, sizeof cores, &cores) == 0) out["count"] = CPU_COUNT(&cores);
    return out;
  }
  const auto argv = argv_of(*command, "device_command");
  try {
    const CapturedOutput said = run_for_probe(argv);
    out["output"] = valid_utf8(std::string_view(said.out).substr(0, kMaxProbeOutput));
    if (!said.status.ok()) out["error"] = fmt::format("{}: {} {}", argv[0], said.status.text(), trim(said.err));
  } catch (const InfrastructureError& error) {
    out["error"] = error.what();
  }
  return out;
}

Json probe_version(const std::vector<std::string>& argv) {
  try {
    const CapturedOutput said = run_for_probe(argv);
    if (!said.status.ok()) return nullptr;
    const std::string text = trim(said.out).empty() ? said.err : said.out;  // java and others use standard error
    return valid_utf8(trim(std::string_view(text).substr(0, kMaxProbeOutput)));
  } catch (const InfrastructureError&) {
    return nullptr;
  }
}

// Who asks by taking a lock for a moment keeps others from it in that moment; the kernel's list disturbs nobody.
std::set<std::pair<dev_t, ino_t>> locked_files() {
  std::set<std::pair<dev_t, ino_t>> out;
  std::ifstream file("/proc/locks");
  for (std::string line; std::getline(file, line);) {
    // 1: FLOCK  ADVISORY  WRITE 708 08:01:131073 0 EOF
    std::istringstream words(line);
    std::string number, kind, advisory, mode, pid, place;
    if (!(words >> number >> kind >> advisory >> mode >> pid >> place) || kind != "FLOCK" || mode != "WRITE") continue;
    unsigned major_number = 0, minor_number = 0;
    unsigned long inode = 0;
    if (std::sscanf(place.c_str(), "%x:%x:%lu", &major_number, &minor_number, &inode) != 3) continue;
    out.insert({::makedev(major_number, minor_number), inode});
  }
  return out;
}

std::string host_name_here() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace

Json held_locks(const fs::path& folder) {
  Json out = Json::array();
  const auto held = locked_files();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const size_t dash = name.rfind('-');
    if (dash == std::string::npos || entry.path().extension() != ".lock") continue;
    const auto index = parse_int(entry.path().stem().string().substr(dash + 1));
    const FileDescriptor file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file || !index) continue;
    struct stat info {};
    if (::fstat(file.get(), &info) != 0 || held.count({info.st_dev, info.st_ino}) == 0) continue;
    char text[4096];
    const ssize_t got = ::pread(file.get(), text, sizeof text, 0);
    const Json holder = Json::parse(text, text + std::max<ssize_t>(got, 0), nullptr, /*allow_exceptions=*/false);
    Json lock = {{"hardware", name.substr(0, dash)}, {"index", *index}};
    for (const char* key : {"run", "user", "pid", "host"}) {
      const bool known = holder.is_object() && holder.contains(key) && holder[key].is_string();
      lock[key] = known ? holder[key] : Json(nullptr);
    }
    out.push_back(std::move(lock));
  }
  return out;
}

Json answer_probe(const Json& question) {
  if (!question.is_object()) throw DataError("probe: the question must be a JSON object");
  Json out = {{"assay", {{"version", version()}, {"commit", commit()}}}, {"host", host_name_here()}};
  if (const Json* paths = asked(question, "paths", Json::value_t::array, "a list")) {
    out["paths"] = Json::object();
    for (const Json& path : *paths) {
      const std::string name = text_of(path, "paths");
      out["paths"][name] = path_exists(name);
    }
  }
  if (const Json* programs = asked(question, "programs", Json::value_t::object, "an object")) {
    out["programs"] = Json::object();
    for (const auto& [name, path] : programs->items()) {
      out["programs"][name] = find_program(name, text_of(path, "programs"));
    }
  }
  if (const Json* data = asked(question, "data", Json::value_t::array, "a list")) {
    out["data"] = Json::array();
    for (const Json& need : *data) out["data"].push_back(probe_data(need));
  }
  if (const Json* disk = asked(question, "disk", Json::value_t::string, "a path")) {
    out["disk"] = probe_disk(disk->get<std::string>());
  }
  if (const Json* ports = asked(question, "ports", Json::value_t::array, "a list")) {
    out["ports"] = Json::object();
    for (const Json& port : *ports) {
      if (!port.is_number_integer()) reject_question("ports", "a list of numbers");
      out["ports"][std::to_string(port.get<int64_t>())] = probe_port(port.get<int64_t>());
    }
  }
  if (const Json* hardware = asked(question, "hardware", Json::value_t::string, "a text")) {
    out["devices"] =
        probe_devices(hardware->get<std::string>(), asked(question, "device_command", Json::value_t::array, "a list"));
    const Json* folder = asked(question, "locks", Json::value_t::string, "a path");
    out["locks"] = held_locks(folder ? fs::path(folder->get<std::string>()) : lock_folder());
  }
  if (const Json* versions = asked(question, "versions", Json::value_t::object, "an object")) {
    out["versions"] = Json::object();
    for (const auto& [name, argv] : versions->items()) out["versions"][name] = probe_version(argv_of(argv, "versions"));
  }
  out["page_cache"] = ::access("/proc/sys/vm/drop_caches", W_OK) == 0;
  out["time_us"] = now_us();  // last: what took long above does not look like a clock that is wrong
  return out;
}

}  // namespace assay
