#include "base/file_set.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"

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
    throw ConfigError(fmt::format("'{}': not a valid name for a file to copy", valid_utf8(relative.string())));
  }
  const fs::path path = root / relative;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::directory_iterator(path)) add((relative / entry.path().filename()).lexically_normal());
  } else if (fs::is_regular_file(path)) {
    files[relative.string()] = remembered_hash(path);
  } else if (!fs::exists(path)) {
    throw DataError(fmt::format("{}: no such file to copy", path.string()));
  }  // sockets and pipes are nobody's data
}

void FileSet::add_all() {
  if (!fs::is_directory(root)) throw DataError(fmt::format("{}: no such folder to copy", root.string()));
  for (const auto& entry : fs::directory_iterator(root)) add(entry.path().filename());
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
    if (!is_inner_path(name)) throw DataError(fmt::format("{}: '{}' is not a line of hashes", where, valid_utf8(line)));
    out[name] = line.substr(0, 64);
  }
  return out;
}

}  // namespace assay
