#include "launch/ssh/ssh_host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/time.h"
#include "base/version.h"
#include "launch/host/device_addresses.h"
#include "launch/ssh/ssh_command.h"

namespace assay {

namespace {

constexpr double kCopySeconds = 6 * 3600;  // a data set may be large; a copy that stands still ends by itself before
constexpr int kStillSeconds = 60;
constexpr int kCannotCreate = 73;  // EX_CANTCREAT of sysexits.h

// On one line and without single quotes, so that every login shell hands it to sh unharmed. What it answers has a
// prefix, because profiles talk too. $1 work folder, $2 run id, $3 hash of the programs or nothing; input: the files'
// manifest.
constexpr const char* kAsk =
    "umask 077; w=$1; case \"$w\" in /*) ;; \"~/\"*) w=\"$HOME/${w#??}\" ;; \"\") w=\"$HOME/.assay\" ;; *) "
    "w=\"$HOME/$w\" ;; "
    "esac; mkdir -p \"$w/programs\" \"$w/$2\" || exit 73; w=$(cd \"$w\" && pwd -P) || exit 73; "
    "t=\"$w/$2/.assay-$$\"; echo x > \"$t\" || exit 73; rm -f \"$t\"; echo \"assay:work_dir:$w\"; "
    "if command -v rsync > /dev/null 2>&1; then echo assay:rsync:; fi; "
    "if [ -n \"$3\" ] && [ -d \"$w/programs/$3\" ]; then echo assay:programs:; fi; "
    "if cd \"$w/$2\" && sha256sum -c --quiet > /dev/null 2>&1; then echo assay:files:; fi; echo assay:end:";

// $1 a folder; input: the manifest of what must be in it.
constexpr const char* kCheck = "cd \"$1\" && sha256sum -c --quiet 2>&1";

// $1 a folder: whether it is there, and one to put it into if not.
constexpr int kAbsent = 3;
constexpr const char* kHave = "umask 077; mkdir -p \"${1%/*}\" || exit 73; if [ -d \"$1\" ]; then exit 0; fi; exit 3";

// $1 what was copied, $2 the name it gets, unless somebody else was quicker. What copies left that were cut off goes.
constexpr const char* kAccept =
    "find \"${2%/*}\" -maxdepth 1 -name \"*.part-*\" -mmin +1440 -exec rm -rf {} +; "
    "if mv -T \"$1\" \"$2\" 2> /dev/null; then :; else rm -rf \"$1\"; [ -d \"$2\" ]; fi";

// $1 the step's folder, then names in it: the hashes of all files below them.
constexpr const char* kList =
    "cd \"$1\" || exit 1; shift; echo assay:begin:; for n in \"$@\"; do if [ -e \"./$n\" ]; then find \"./$n\" -type f "
    "-exec sha256sum {} + "
    "|| exit 1; fi; done; echo assay:end:";

// A word of sftp's own command language.
std::string sftp_word(const std::string& path) {
  std::string out = "\"";
  for (const char c : path) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

bool have_rsync_here() {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "/usr/bin:/bin", ':')) {
    if (::access((fs::path(folder) / "rsync").c_str(), X_OK) == 0) return true;
  }
  return false;
}

// Folders of the files, parents first.
std::set<std::string> folders_of(const FileSet& files) {
  std::set<std::string> out;
  for (const auto& [name, hash] : files.files) {
    for (fs::path at = fs::path(name).parent_path(); !at.empty(); at = at.parent_path()) out.insert(at.string());
  }
  return out;
}

}  // namespace

SshHost::SshHost(std::shared_ptr<SshConnection> connection, std::string run_id)
    : connection_(std::move(connection)), host_(connection_->host()), run_id_(std::move(run_id)) {
  if (!is_inner_path(run_id_) || run_id_.find('/') != std::string::npos || run_id_[0] == '.') {
    throw ConfigError(fmt::format("'{}': no name for a run on other hosts", valid_utf8(run_id_)));
  }
}

CapturedOutput SshHost::script(const std::string& text, const std::vector<std::string>& arguments,
                               const std::string& doing, const std::string& input, double time_limit_s) {
  std::vector<std::string> words = {"sh", "-c", text, "sh"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return connection_->run(words, doing, input, time_limit_s);
}

SshHost::Answer SshHost::ask(const FileSet& files, const std::string& programs_hash) {
  const std::string doing = "making its work folder";
  const CapturedOutput out =
      script(kAsk, {host_.work_dir.string(), run_id_, programs_hash}, doing, files.manifest(), kCopySeconds);
  if (out.status.code == kCannotCreate && out.err.find("No space left") == std::string::npos) {
    throw HostError(HostProblem::NotWritable, fmt::format("{}: its work folder {} cannot be written to: {}", host_.name,
                                                          host_.work_dir.empty() ? "~/.assay" : host_.work_dir.string(),
                                                          valid_utf8(trim(out.err))));
  }
  Answer answer;
  bool whole = false;
  for (const std::string& line : split(out.out, '\n')) {
    if (line.rfind("assay:work_dir:/", 0) == 0) answer.work_dir = line.substr(15);
    if (line == "assay:rsync:") answer.has_rsync = true;
    if (line == "assay:programs:") answer.has_programs = true;
    if (line == "assay:files:") answer.has_files = true;
    if (line == "assay:end:") whole = true;
  }
  if (!whole || answer.work_dir.empty()) throw explain_failure(host_, doing, out.status.text(), out.err + out.out);
  return answer;
}

SshPlaces SshHost::prepare(const FileSet& files) {
  connection_->ensure();
  const FileSet programs = host_.program.empty() ? own_programs() : FileSet{};
  const std::string hash = programs.empty() ? "" : programs.hash();
  const Answer answer = ask(files, hash);
  has_rsync_ = answer.has_rsync && have_rsync_here();
  SshPlaces places{.run = answer.work_dir / run_id_, .program = host_.program};
  if (programs.empty()) {
    check_version(host_.program);
  } else {
    const fs::path folder = answer.work_dir / "programs" / hash;
    if (!answer.has_programs) copy_whole(programs, folder);
    places.program = folder / "assay";
  }
  if (!files.empty() && !answer.has_files) {
    copy_there(files, places.run);
    check_copy(files, places.run);
  }
  return places;
}

void SshHost::check_version(const fs::path& program) {
  const CapturedOutput out = connection_->run({program.string(), "--version"}, "asking for the version of assay");
  const std::string wanted = fmt::format("assay {} ({})", version(), commit());
  if (out.status.ok() && out.out.find(wanted) != std::string::npos) return;
  throw HostError(HostProblem::WrongVersion,
                  out.status.ok()
                      ? fmt::format("{}: {} is {}, and this is {}; install the same, or leave out 'program' "
                                    "to have this one copied there",
                                    host_.name, program.string(), valid_utf8(trim(out.out)), wanted)
                      : fmt::format("{}: {} does not run there: {}", host_.name, program.string(),
                                    valid_utf8(trim(out.err.empty() ? out.status.text() : out.err))));
}

// Under another name until it is whole: other controllers may do the same at this moment.
void SshHost::copy_whole(const FileSet& files, const fs::path& target) {
  static std::atomic<int> count{0};
  const fs::path part = fmt::format("{}.part-{}-{}-{}", target.string(), now_us(), ::getpid(), ++count);
  copy_there(files, part);
  check_copy(files, part);
  const CapturedOutput out = script(kAccept, {part.string(), target.string()}, "copying files there");
  if (!out.status.ok()) throw explain_failure(host_, "copying files there", out.status.text(), out.err);
}

bool SshHost::stage_data(const SshPlaces& places, const fs::path& folder, const std::string& hash) {
  const fs::path target = places.run.parent_path() / "data" / hash;
  const CapturedOutput out = script(kHave, {target.string()}, "looking for the data");
  if (out.status.ok()) return false;
  if (out.status.code != kAbsent) throw explain_failure(host_, "looking for the data", out.status.text(), out.err);
  FileSet files{.root = folder};
  files.add_all();
  if (files.hash() != hash) {
    throw ConfigError(fmt::format("{}: changed since the run was planned; start a new run", folder.string()));
  }
  copy_whole(files, target);
  return true;
}

void SshHost::copy_there(const FileSet& files, const fs::path& target) {
  const std::string doing = "copying files there";
  if (has_rsync_) {
    run_copier({"rsync", "-rptL", "-s", fmt::format("--timeout={}", kStillSeconds), "--files-from=-", "-e",
                rsync_shell(connection_->ssh_argv()), files.root.string() + "/",
                copy_address(host_) + ":" + target.string() + "/"},
               files.root, files.names(), doing);
    return;
  }
  std::string batch = "-mkdir " + sftp_word(target.string()) + "\n";
  for (const std::string& folder : folders_of(files)) batch += "-mkdir " + sftp_word((target / folder).string()) + "\n";
  for (const auto& [name, hash] : files.files) {
    batch += "put -p " + sftp_word(name) + " " + sftp_word((target / name).string()) + "\n";
  }
  std::vector<std::string> argv = {"sftp", "-q", "-b", "-"};
  for (std::string& option : connection_->options()) argv.push_back(std::move(option));
  argv.push_back(copy_address(host_));
  run_copier(argv, files.root, batch, doing);
}

void SshHost::copy_back(const FileSet& wanted, const fs::path& there) {
  const std::string doing = "bringing files back";
  for (const std::string& folder : folders_of(wanted)) make_folder(wanted.root / folder);
  if (has_rsync_) {
    run_copier({"rsync", "-rpt", "-s", fmt::format("--timeout={}", kStillSeconds), "--files-from=-", "-e",
                rsync_shell(connection_->ssh_argv()), copy_address(host_) + ":" + there.string() + "/",
                wanted.root.string() + "/"},
               wanted.root, wanted.names(), doing);
    return;
  }
  std::string batch;
  for (const auto& [name, hash] : wanted.files) {
    batch += "get -p " + sftp_word((there / name).string()) + " " + sftp_word(name) + "\n";
  }
  std::vector<std::string> argv = {"sftp", "-q", "-b", "-"};
  for (std::string& option : connection_->options()) argv.push_back(std::move(option));
  argv.push_back(copy_address(host_));
  run_copier(argv, wanted.root, batch, doing);
}

void SshHost::run_copier(const std::vector<std::string>& argv, const fs::path& cwd, const std::string& input,
                         const std::string& doing) {
  const FileDescriptor in = nameless_file(input);
  const CapturedOutput out = capture({.argv = argv, .cwd = cwd, .input_fd = in.get()}, kCopySeconds);
  if (!out.status.ok()) throw explain_failure(host_, doing, out.status.text(), out.err);
}

void SshHost::check_copy(const FileSet& files, const fs::path& target) {
  const std::string doing = "checking what was copied";
  const CapturedOutput out = script(kCheck, {target.string()}, doing, files.manifest(), kCopySeconds);
  if (out.status.ok()) return;
  throw HostError(HostProblem::Damaged, fmt::format("{}: what was copied to {} is not what it should be: {}",
                                                    host_.name, target.string(), valid_utf8(trim(out.out + out.err))));
}

std::vector<int> SshHost::free_ports(const SshPlaces& places, int count) {
  const std::string doing = "asking for a free port";
  const CapturedOutput out = connection_->run({places.program.string(), "free-ports", std::to_string(count)}, doing);
  std::vector<int> ports;
  for (const std::string& line : split(out.out, '\n')) {
    const auto port = parse_int(trim(line));
    if (port && *port > 0 && *port < 65536) ports.push_back(static_cast<int>(*port));
  }
  if (!out.status.ok() || ports.size() != static_cast<size_t>(count)) {
    throw explain_failure(host_, doing, out.status.text(), out.err);
  }
  return ports;
}

std::map<int, std::string> SshHost::device_addresses(const SshPlaces& places) {
  const std::string doing = "asking for the addresses of devices";
  const CapturedOutput out = connection_->run({places.program.string(), "device-addresses"}, doing);
  if (!out.status.ok()) throw explain_failure(host_, doing, out.status.text(), out.err);
  const std::string where = fmt::format("{}: the addresses of its devices", host_.name);
  try {
    // A login shell may have said something before.
    const auto lines = split(trim(out.out), '\n');
    return device_addresses_of(parse_json(lines.back(), where), where);
  } catch (const DataError& error) {
    throw HostError(HostProblem::Other, error.what());
  }
}

std::vector<std::string> SshHost::collect(const fs::path& there, const fs::path& here,
                                          const std::vector<std::string>& names) {
  const std::string doing = "looking for what is to be brought back";
  std::vector<std::string> arguments = {there.string()};
  arguments.insert(arguments.end(), names.begin(), names.end());
  const CapturedOutput out = script(kList, arguments, doing, "", kCopySeconds);
  constexpr std::string_view kBegin = "assay:begin:\n";
  const size_t begin = out.out.find(kBegin);
  const size_t end = out.out.find("assay:end:");
  if (!out.status.ok() || begin == std::string::npos || end == std::string::npos) {
    throw explain_failure(host_, doing, out.status.text(), out.err);
  }
  const std::string list = out.out.substr(begin + kBegin.size(), end - begin - kBegin.size());
  FileSet wanted{.root = here};
  std::set<std::string> found;
  for (const auto& [path, hash] : parse_manifest(list, host_.name)) {
    for (const std::string& name : names) {
      const std::string folder = fs::path(name).lexically_normal().string();
      if (path != folder && path.rfind(folder + "/", 0) != 0) continue;  // nothing that was not asked for
      wanted.files[path] = hash;
      found.insert(name);
    }
  }
  if (wanted.empty()) return {};
  copy_back(wanted, there);
  for (const auto& [path, hash] : wanted.files) {
    if (sha256_file(here / path) == hash) continue;
    throw HostError(HostProblem::Damaged,
                    fmt::format("{}: {} was brought back, and is not what it is there", host_.name, path));
  }
  return {found.begin(), found.end()};
}

}  // namespace assay
