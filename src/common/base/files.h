// Files that are whole or absent: atomic replacement, reading with errors that name the file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

namespace fs = std::filesystem;

// Throws DataError "PATH: reason" when the file cannot be read.
std::string read_file(const fs::path& path);

// What a file survives: a crash of the program only, for what can be made again, or a power cut too.
enum class Durability { Crash, PowerCut };

// Writes beside the target, syncs, renames: a reader sees the old content or the new, a crash leaves one of them.
// Throws InfrastructureError.
void write_file_atomic(const fs::path& path, std::string_view content, Durability durability = Durability::PowerCut);

// Creates the folder and its parents; throws InfrastructureError naming what is in the way.
void make_folder(const fs::path& path);
// Syncs a folder, so that a rename or a new file in it survives a power cut.
void sync_folder(const fs::path& path);

// The last lines of a text file, at most `max_lines`, reading only its end; [] if there is no such file. Nothing before
// byte `from` is looked at.
std::vector<std::string> tail_lines(const fs::path& path, size_t max_lines, uintmax_t from = 0);

// The folder that holds this program, links resolved.
fs::path program_folder();

// A folder of its own under the system's temporary folder, removed with everything in it.
class TempFolder {
 public:
  explicit TempFolder(std::string_view name = "assay");
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// An open file descriptor that closes itself.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// write(2) until everything is written; throws InfrastructureError naming the path.
void write_all(int fd, std::string_view content, const fs::path& path);

}  // namespace assay
