#include "launch/host/device_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "base/time.h"

namespace assay {

namespace {

std::string own_host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "this host";
}

std::string own_user_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry ? entry->pw_name : std::to_string(::geteuid());
}

// A name of hardware becomes a name of files.
std::string as_file_name(std::string_view hardware) {
  std::string out;
  for (const char c : hardware) out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ? c : '_';
  return out.empty() || out[0] == '.' ? "_" + out : out;
}

void prepare_lock_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0777) == 0) {
    ::chmod(folder.c_str(), 01777);  // for every user, and the umask had its say
    return;
  }
  const int error = errno;
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) {
    throw InfrastructureError(
        fmt::format("{}: cannot create the folder of device locks: {}; ASSAY_LOCKS may name another", folder.string(),
                    std::strerror(error)));
  }
  if (!S_ISDIR(info.st_mode)) {
    throw InfrastructureError(
        fmt::format("{}: must be a folder, for device locks; ASSAY_LOCKS may name another", folder.string()));
  }
}

// Opens it, made if there is none. Never with O_CREAT what may be there: in a folder for all users the kernel may
// forbid that for files of others.
FileDescriptor open_lock(const fs::path& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  for (int i = 0; i < 100; ++i) {
    FileDescriptor file(::open(path.c_str(), kFlags));
    if (!file && errno == EACCES) file = FileDescriptor(::open(path.c_str(), (kFlags & ~O_RDWR) | O_RDONLY));
    if (!file && errno == ENOENT) {
      file = FileDescriptor(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0666));
      if (file) ::fchmod(file.get(), 0666);
      if (!file && errno == EEXIST) continue;
    }
    struct stat info {};
    if (file && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode)) return file;
    throw InfrastructureError(fmt::format("{}: cannot open the lock of a device: {}", path.string(),
                                          file ? "no regular file" : std::strerror(errno)));
  }
  throw InfrastructureError(fmt::format("{}: the lock of a device comes and goes", path.string()));
}

// Whoever holds it wrote this; anybody may have, so it is only shown.
std::string holder_text(const FileDescriptor& file) {
  char text[4096];
  const ssize_t got = ::pread(file.get(), text, sizeof text, 0);
  try {
    const Json holder = parse_json(std::string_view(text, got > 0 ? static_cast<size_t>(got) : 0), "lock");
    const auto field = [&](const char* name) {
      return holder.is_object() && holder.contains(name) && holder[name].is_string()
                 ? valid_utf8(holder[name].get<std::string>())
                 : std::string("unknown");
    };
    return fmt::format("run {} of user {} (process {})", field("run"), field("user"), field("pid"));
  } catch (const DataError&) {
    return "an unknown run";
  }
}

void describe_holder(const FileDescriptor& file, const DeviceUse& use) {
  const std::string text = to_line({{"run", use.run_id},
                                    {"user", own_user_name()},
                                    {"pid", std::to_string(::getpid())},
                                    {"host", own_host_name()},
                                    {"since", utc_text(now_us())}}) +
                           "\n";
  // The lock is what counts; a text that cannot be written costs only the name in somebody's message.
  if (::ftruncate(file.get(), 0) == 0) (void)!::pwrite(file.get(), text.data(), text.size(), 0);
}

}  // namespace

fs::path lock_folder() {
  const char* given = std::getenv("ASSAY_LOCKS");
  return given && *given ? given : "/tmp/assay-locks";
}

DeviceLocks& DeviceLocks::operator=(DeviceLocks&& other) noexcept {
  release();
  files_ = std::move(other.files_);
  other.files_.clear();
  return *this;
}

void DeviceLocks::release() {
  for (const FileDescriptor& file : files_) ::flock(file.get(), LOCK_UN);
  files_.clear();
}

DeviceLocks::DeviceLocks(const fs::path& folder, const DeviceUse& use) {
  if (use.devices.empty()) return;
  prepare_lock_folder(folder);
  std::vector<int> devices = use.devices;
  // A device given to several ranks is one lock; everybody takes them in one order.
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  for (const int device : devices) {
    FileDescriptor file = open_lock(folder / fmt::format("{}-{}.lock", as_file_name(use.hardware), device));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      throw InfrastructureError(
          fmt::format("device {} {} of {} is in use by {}", use.hardware, device, own_host_name(), holder_text(file)));
    }
    describe_holder(file, use);
    files_.push_back(std::move(file));
  }
}

}  // namespace assay
