#include "launch/file_set.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <mutex>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "launch/launcher.h"

namespace assay {

namespace {

// Hashes of files that have not changed since: programs and data sets are large and go to many hosts.
std::string remembered_hash(const fs::path& path) {
  struct Known {
    int64_t size, seconds, nanoseconds;
    std::string hash;
  };
  static std::map<std::string, Known> known;
  static std::mutex mutex;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return sha256_file(path);  // says why
  const std::string name = fs::absolute(path).string();
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = known.find(name);
    if (found != known.end() && found->second.size == info.st_size && found->second.seconds == info.st_mtim.tv_sec &&
        found->second.nanoseconds == info.st_mtim.tv_nsec) {
      return found->second.hash;
    }
  }
  std::string hash = sha256_file(path);
  const std::lock_guard<std::mutex> lock(mutex);
  known[name] = {info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, hash};
  return hash;
}

// What is written by ranks, supervisors and launchers, and so never goes to a host.
bool is_made_by_job(const std::string& name) {
  for (const char* prefix : {"job.node", "state.node", "lease.node", "stop.node", "monitor.node", "supervisor.node",
                             "received.node", "records.", "rank_table.node"}) {
    if (name.rfind(prefix, 0) == 0) return true;
  }
  return name.rfind("rank", 0) == 0 && name.size() > 4 && name.substr(name.size() - 4) == ".log";
}

bool is_collected(const LaunchRequest& request, const std::string& name) {
  return std::any_of(request.collect.begin(), request.collect.end(), [&](const std::string& collected) {
    const std::string folder = fs::path(collected).lexically_normal().string();
    return name == folder || name.rfind(folder + "/", 0) == 0;
  });
}

std::string inside_run_folder(const LaunchRequest& request, const fs::path& path) {
  const fs::path relative = (path.is_absolute() ? path.lexically_relative(request.cwd) : path).lexically_normal();
  if (!is_inner_path(relative.string())) {
    throw ConfigError(
        fmt::format("{}: only files of the run folder {} can be staged", path.string(), request.cwd.string()));
  }
  return relative.string();
}

}  // namespace

bool is_inner_path(const std::string& path) {
  if (path.empty() || path[0] == '/' || path[0] == '\\') return false;
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\\' || c == 127) return false;
  }
  const fs::path parts(path);
  return std::none_of(parts.begin(), parts.end(), [](const fs::path& part) { return part == ".."; });
}

void FileSet::add(const fs::path& relative) {
  if (!is_inner_path(relative.string())) {
    throw ConfigError(fmt::format("'{}': no name for a file that is to be copied", valid_utf8(relative.string())));
  }
  const fs::path path = root / relative;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::directory_iterator(path)) add((relative / entry.path().filename()).lexically_normal());
  } else if (fs::is_regular_file(path)) {
    files[relative.string()] = remembered_hash(path);
  } else if (!fs::exists(path)) {
    throw DataError(fmt::format("{}: there is no such file to be copied", path.string()));
  }  // sockets and pipes are nobody's data
}

std::string FileSet::manifest() const {
  std::string out;
  for (const auto& [name, hash] : files) out += hash + "  " + name + "\n";
  return out;
}

std::string FileSet::names() const {
  std::string out;
  for (const auto& [name, hash] : files) out += name + "\n";
  return out;
}

std::string FileSet::hash() const { return sha256(manifest()); }

std::map<std::string, std::string> parse_manifest(const std::string& text, const std::string& where) {
  std::map<std::string, std::string> out;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    const bool whole = line.size() > 66 && line.find_first_not_of("0123456789abcdef") == 64 && line[64] == ' ';
    std::string name = whole ? line.substr(66) : "";
    if (name.rfind("./", 0) == 0) name = name.substr(2);
    if (!is_inner_path(name)) throw DataError(fmt::format("{}: '{}' is no line of hashes", where, valid_utf8(line)));
    out[name] = line.substr(0, 64);
  }
  return out;
}

FileSet own_programs() {
  FileSet out{.root = program_folder()};
  out.add("assay");
  for (const char* name : {"assay-worker", "assay_sentencepiece.so", "plugins"}) {
    if (fs::exists(out.root / name)) out.add(name);
  }
  return out;
}

FileSet files_of_step(const LaunchRequest& request) {
  FileSet out{.root = request.cwd};
  const std::string folder = inside_run_folder(request, request.folder);
  if (fs::is_directory(request.folder)) {
    for (const auto& entry : fs::directory_iterator(request.folder)) {
      const std::string name = entry.path().filename().string();
      if (!is_made_by_job(name) && !is_collected(request, name)) out.add(fs::path(folder) / name);
    }
  }
  std::erase_if(out.files,
                [&](const auto& file) { return is_collected(request, file.first.substr(folder.size() + 1)); });
  for (const fs::path& path : request.staged) out.add(inside_run_folder(request, path));
  return out;
}

}  // namespace assay
