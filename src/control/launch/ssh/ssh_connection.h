// A connection to one host, shared by everything that is done there: one OpenSSH process holds it, others use it
// through its control socket. When this process dies, however it dies, the connection ends too.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "launch/launcher.h"

namespace assay {

// A private folder with a short path for control sockets, removed with what is in it.
class SocketFolder {
 public:
  SocketFolder();
  ~SocketFolder();
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;
  std::filesystem::path next();  // a path that was not given before; from several threads

 private:
  std::filesystem::path path_;
  std::atomic<int> count_{0};
};

// A command at the other end, with its three streams.
struct RemoteProcess {
  Process process;
  FileDescriptor to;    // its standard input, not blocking
  FileDescriptor from;  // its standard output, not blocking
  FileDescriptor said;  // a file with its standard error
  std::string errors() const;
};

// May be used by several threads.
class SshConnection {
 public:
  SshConnection(Host host, std::shared_ptr<SocketFolder> sockets);
  ~SshConnection();
  const Host& host() const { return host_; }

  // Connects unless it is connected. Throws HostError; gives up when *cancel becomes true.
  void ensure(const std::atomic<bool>* cancel = nullptr);
  // Runs a command there to its end, `input` on its standard input. Its exit code is the caller's to judge, but for 255
  // and a time limit, which throw HostError.
  CapturedOutput run(const std::vector<std::string>& words, const std::string& doing, const std::string& input = "",
                     double time_limit_s = 60);
  RemoteProcess start(const std::vector<std::string>& words);
  // ssh and its options, without a destination: for programs that start it themselves.
  std::vector<std::string> ssh_argv() const;
  std::vector<std::string> options() const;

 private:
  bool connected();
  void connect(const std::atomic<bool>* cancel);
  void disconnect();
  std::vector<std::string> with_destination(std::vector<std::string> argv, const std::string& command) const;

  const Host host_;
  const std::shared_ptr<SocketFolder> sockets_;
  const std::filesystem::path socket_;
  std::mutex mutex_;  // guards master_
  std::optional<RemoteProcess> master_;
};

// A file without a name that holds `content`, at its beginning: for standard inputs.
FileDescriptor nameless_file(const std::string& content);

}  // namespace assay
