// What is done on a host that is reached by ssh before and after a job: folders, programs, files there and back, each
// copy checked by its hashes. Through the system's rsync, or sftp where the host has no rsync.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "launch/multi_node/file_set.h"
#include "launch/ssh/ssh_connection.h"

namespace assay {

// Where things are on the host.
struct SshPlaces {
  std::filesystem::path run;      // the mirror of the run folder
  std::filesystem::path program;  // assay
};

class SshHost {
 public:
  SshHost(std::shared_ptr<SshConnection> connection, std::string run_id);

  SshConnection& connection() const { return *connection_; }
  // Connects, makes the mirror with the files in it, and the programs be there. Throws HostError.
  SshPlaces prepare(const FileSet& files);
  // Data in a folder that runs share, under its hash: copied unless it is there. `places` are those of prepare().
  // Returns whether it was copied. Throws HostError, and ConfigError when the folder here has changed since `hash`.
  bool stage_data(const SshPlaces& places, const std::filesystem::path& folder, const std::string& hash);
  std::vector<int> free_ports(const SshPlaces& places, int count);
  // Of devices there that have a network of their own: launch/host/device_addresses.h.
  std::map<int, std::string> device_addresses(const SshPlaces& places);
  // Brings what the host has of `names`, which are relative to `there`, into `here`. Returns those that it has.
  std::vector<std::string> collect(const std::filesystem::path& there, const std::filesystem::path& here,
                                   const std::vector<std::string>& names);

 private:
  struct Answer {  // of the host, to what is asked first
    std::filesystem::path work_dir;
    bool has_rsync = false;
    bool has_programs = false;
    bool has_files = false;
  };
  Answer ask(const FileSet& files, const std::string& programs_hash);
  void copy_whole(const FileSet& files, const std::filesystem::path& target);
  void copy_there(const FileSet& files, const std::filesystem::path& target);
  void copy_back(const FileSet& wanted, const std::filesystem::path& there);
  void check_copy(const FileSet& files, const std::filesystem::path& target);
  void check_version(const std::filesystem::path& program);
  void run_copier(const std::vector<std::string>& argv, const std::filesystem::path& cwd, const std::string& input,
                  const std::string& doing);
  CapturedOutput script(const std::string& text, const std::vector<std::string>& arguments, const std::string& doing,
                        const std::string& input = "", double time_limit_s = 60);

  std::shared_ptr<SshConnection> connection_;
  const Host& host_;
  const std::string run_id_;
  bool has_rsync_ = false;
};

}  // namespace assay
