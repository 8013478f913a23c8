// Command lines for the system's OpenSSH, and what its messages mean. Starts nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "launch/multi_node/host_error.h"

namespace assay {

inline constexpr int kSshConnectSeconds = 10;
inline constexpr int kSshAliveSeconds = 2;  // between two signs of life, of which three may fail

// Throws ConfigError for a host that cannot be on a command line: no name, control characters, a leading '-'.
void check_ssh_host(const Host& host);

// "-o", "BatchMode=yes", ...: the same for ssh, sftp and rsync's ssh. `control_path` is that of the shared connection.
std::vector<std::string> ssh_options(const Host& host, const std::filesystem::path& control_path);
// The command that rsync is to reach the host with: its own way of quoting, which is not the shell's.
std::string rsync_shell(const std::vector<std::string>& argv);
// "10.0.0.1" or "[::1]", before the colon of a remote path.
std::string copy_address(const Host& host);
// One command for the shell at the other end, whichever it is: every word quoted.
std::string remote_command(const std::vector<std::string>& words);

// Why ssh, sftp or rsync failed, out of what it said on standard error. `doing` says what was tried: "connecting".
HostError explain_failure(const Host& host, const std::string& doing, const std::string& exit_text,
                          const std::string& said);

}  // namespace assay
