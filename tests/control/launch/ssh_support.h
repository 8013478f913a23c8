// Hosts for tests of ssh: real sshd, one a host, on loopback addresses, as the user who runs the test.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <deque>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "job_support.h"
#include "launch/host/port.h"
#include "launch/launcher.h"

namespace assay {

class SshHosts {
 public:
  // Why there can be none here; "" when there can.
  static std::string missing() {
    for (const char* program : {"/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen"}) {
      if (!fs::exists(program)) return std::string(program) + " is missing (packages openssh-server, openssh-client)";
    }
    return "";
  }

  explicit SshHosts(int count) {
    if (::geteuid() == 0) fs::create_directories("/run/sshd");  // sshd of root insists on it
    for (const char* name : {"host_key", "id"}) {
      EXPECT_TRUE(capture({.argv = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", (top() / name).string()}}, 20)
                      .status.ok());
    }
    fs::copy_file(top() / "id.pub", top() / "authorized_keys");
    const auto key = split(read_file(top() / "host_key.pub"), ' ');
    std::ofstream known(known_hosts());
    for (int i = 0; i < count; ++i) {
      hosts_.push_back({.name = "node" + std::to_string(i + 1),
                        .address = "127.0.0." + std::to_string(2 + i),
                        .port = free_port(),
                        .identity_file = top() / "id",
                        .known_hosts = known_hosts(),
                        .work_dir = top() / ("home" + std::to_string(i + 1))});
      known << "[" << hosts_.back().address << "]:" << hosts_.back().port << " " << key[0] << " " << key[1] << "\n";
      more_.emplace_back();
      servers_.emplace_back();
    }
    known.close();
    for (int i = 0; i < count; ++i) start(i);
  }
  ~SshHosts() {
    for (size_t i = 0; i < hosts_.size(); ++i) stop(static_cast<int>(i));
  }

  fs::path top() const { return folder_.path(); }
  fs::path known_hosts() const { return top() / "known_hosts"; }
  Host& host(int i) { return hosts_.at(static_cast<size_t>(i)); }
  // Variables of what runs there, from the next start of its sshd on: "PATH=/x".
  void set_variable(int i, const std::string& variable) { more_.at(static_cast<size_t>(i)) = variable; }

  void start(int i) {
    const Host& host = hosts_.at(static_cast<size_t>(i));
    const fs::path config = top() / ("sshd" + std::to_string(i));
    std::ofstream(config) << "ListenAddress " << host.address << ":" << host.port << "\nHostKey "
                          << (top() / "host_key").string() << "\nPidFile none\nAuthorizedKeysFile "
                          << (top() / "authorized_keys").string()
                          << "\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nUseDNS no\n"
                             "StrictModes no\nPermitRootLogin prohibit-password\nPrintMotd no\nMaxStartups 100\n"
                             "Subsystem sftp internal-sftp\nSetEnv SHLVL=1 ASSAY_LOCKS="  // one line; SHLVL keeps bash
                                                                                          // from reading .bashrc
                          << (top() / ("locks" + std::to_string(i))).string() << " " << more_.at(static_cast<size_t>(i))
                          << "\n";
    const fs::path log = top() / ("sshd" + std::to_string(i) + ".log");
    std::ofstream(log, std::ios::trunc) << "";
    servers_.at(static_cast<size_t>(i))
        .emplace(Process::start({.argv = {"/usr/sbin/sshd", "-D", "-e", "-f", config.string()},
                                 .output_file = log,
                                 .die_with_parent = true}));
    EXPECT_TRUE(becomes_true(10, [&] { return read_file(log).find("Server listening") != std::string::npos; }))
        << read_file(log);
  }
  // The host no longer answers, and everything that is connected to it is cut off. What it runs goes on.
  void stop(int i) {
    cut(i);
    servers_.at(static_cast<size_t>(i)).reset();
  }
  // Only what is connected is cut off.
  void cut(int i) {
    const auto& server = servers_.at(static_cast<size_t>(i));
    if (!server) return;
    for (const pid_t pid : descendants(server->pid())) ::kill(pid, SIGKILL);
  }

 private:
  static std::set<pid_t> descendants(pid_t root) {
    std::map<pid_t, pid_t> parents;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const auto pid = parse_int(entry.path().filename().string());
      if (!pid) continue;
      std::ifstream file(entry.path() / "stat");
      std::string text;
      std::getline(file, text);
      const size_t end = text.rfind(')');
      if (end == std::string::npos) continue;
      const auto words = split(text.substr(end + 2), ' ');
      parents[static_cast<pid_t>(*pid)] = static_cast<pid_t>(parse_int(words.at(1)).value_or(0));
    }
    std::set<pid_t> out;
    for (const auto& [pid, parent] : parents) {
      for (pid_t at = parent; at > 1; at = parents.count(at) ? parents.at(at) : 0) {
        if (at == root) out.insert(pid);
      }
    }
    return out;
  }

  TempFolder folder_{"assay-sshd"};
  std::vector<Host> hosts_;
  std::vector<std::string> more_;
  std::deque<std::optional<Process>> servers_;
};

}  // namespace assay
