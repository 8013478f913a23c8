#include "datasets/manifest.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/hash.h"

namespace assay {

namespace {

// What changes whenever someone writes or replaces a file; the time of the last status change cannot be set back.
std::string stamp_of(const struct stat& info) {
  return fmt::format("{} {}.{} {}.{} {}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                     info.st_ctim.tv_nsec, info.st_ino);
}

fs::path stamps_path(const fs::path& folder) {
  return folder.parent_path() / ".checked" / (folder.filename().string() + ".json");
}

// Stamps of files that were found right, for this content of the folder. {} when there are none: only a cache.
Json read_stamps(const fs::path& folder, const std::string& hash) {
  try {
    Json json = read_json_file(stamps_path(folder));
    if (json.is_object() && json.value("hash", "") == hash && json.contains("files") && json["files"].is_object()) {
      return json["files"];
    }
  } catch (const std::exception&) {
  }
  return Json::object();
}

void write_stamps(const fs::path& folder, const std::string& hash, const std::map<std::string, std::string>& stamps) {
  try {
    make_folder(stamps_path(folder).parent_path());
    write_file_atomic(stamps_path(folder), to_line({{"hash", hash}, {"files", stamps}}) + "\n");
  } catch (const InfrastructureError&) {  // a folder that others prepared for us: it is read again the next time
  }
}

// Paths of a manifest stay inside its folder.
bool is_inside(const std::string& path) {
  const fs::path parts(path);
  if (path.empty() || parts.is_absolute()) return false;
  for (const fs::path& part : parts) {
    if (part == "..") return false;
  }
  return true;
}

}  // namespace

int64_t Manifest::num_bytes() const {
  int64_t sum = 0;
  for (const auto& [path, file] : files) sum += file.num_bytes;
  return sum;
}

std::string Manifest::hash() const {
  Sha256 all;
  for (const auto& [path, file] : files) all.update(fmt::format("{} {}\n", file.sha256, path));
  return all.hex();
}

Json to_json(const Manifest& manifest) {
  Json files = Json::object();
  for (const auto& [path, file] : manifest.files) files[path] = {{"bytes", file.num_bytes}, {"sha256", file.sha256}};
  return {{"name", manifest.name},       {"licence", manifest.licence},
          {"layout", manifest.layout},   {"revision", manifest.revision},
          {"sources", manifest.sources}, {"counts", manifest.counts},
          {"sha256", manifest.hash()},   {"files", files}};
}

Manifest manifest_of(const Json& json, const std::string& where) {
  Manifest manifest;
  try {
    manifest.name = json.at("name").get<std::string>();
    manifest.licence = json.at("licence").get<std::string>();
    manifest.layout = json.at("layout").get<std::string>();
    manifest.revision = json.at("revision").get<int>();
    manifest.sources = json.at("sources");
    manifest.counts = json.at("counts");
    for (const auto& [path, file] : json.at("files").items()) {
      if (!is_inside(path)) throw DataError(fmt::format("{}: '{}' leads out of the folder", where, path));
      manifest.files[path] = {file.at("bytes").get<int64_t>(), file.at("sha256").get<std::string>()};
    }
    if (json.at("sha256").get<std::string>() != manifest.hash()) {
      throw DataError(fmt::format("{}: its list of files was changed", where));
    }
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: not a manifest of a data set: {}", where, error.what()));
  }
  return manifest;
}

std::map<std::string, ManifestFile> hash_files(const fs::path& folder) {
  std::map<std::string, ManifestFile> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[entry.path().lexically_relative(folder).string()] = {static_cast<int64_t>(entry.file_size()),
                                                               sha256_file(entry.path())};
  }
  return files;
}

std::string_view state_name(DataState state) {
  switch (state) {
    case DataState::Ready: return "ready";
    case DataState::NotPrepared: return "not prepared";
    case DataState::Damaged: break;
  }
  return "damaged";
}

DataCheck check_data(const fs::path& folder) {
  DataCheck check;
  std::error_code error;
  if (!fs::exists(folder, error)) return check;
  const auto damaged = [&](const std::string& problem) {
    check.state = DataState::Damaged;
    check.problem = problem;
    return check;
  };
  const fs::path manifest_path = folder / kManifestFile;
  if (!fs::exists(manifest_path, error)) return damaged(fmt::format("{}: no such file", manifest_path.string()));
  try {
    check.manifest = manifest_of(read_json_file(manifest_path), manifest_path.string());
  } catch (const DataError& bad) {
    return damaged(bad.what());
  }
  const std::string hash = check.manifest.hash();
  const Json known = read_stamps(folder, hash);
  std::map<std::string, std::string> stamps;
  bool any_read = false;
  for (const auto& [path, expected] : check.manifest.files) {
    const fs::path file = folder / path;
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0) return damaged(fmt::format("{}: no such file", file.string()));
    if (info.st_size != expected.num_bytes) {
      return damaged(fmt::format("{}: has {} bytes, not {}", file.string(), info.st_size, expected.num_bytes));
    }
    stamps[path] = stamp_of(info);
    const auto stamp = known.find(path);
    if (stamp != known.end() && *stamp == stamps[path]) continue;
    any_read = true;
    try {
      if (sha256_file(file) != expected.sha256) {
        return damaged(fmt::format("{}: its SHA-256 is not the one in {}", file.string(), kManifestFile));
      }
    } catch (const DataError& bad) {
      return damaged(bad.what());
    }
  }
  if (any_read) write_stamps(folder, hash, stamps);
  check.state = DataState::Ready;
  return check;
}

}  // namespace assay
