#include "launch/ssh/ssh_command.h"

#include <fmt/format.h>

#include "base/text.h"

namespace assay {

namespace {

// A path as the value of an option of ssh: blanks need quotes, and '%' begins a placeholder.
std::string option_path(const std::filesystem::path& path) {
  std::string out = "\"";
  for (const char c : path.string()) {
    if (c == '"' || c == '\\' || c == '\n' || c == '$') {
      throw ConfigError(fmt::format("{}: ssh cannot be told of a path with this character", path.string()));
    }
    out += c == '%' ? "%%" : std::string(1, c);
  }
  return out + "\"";
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 127; });
}

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// What a person reads: the last lines, on one line.
std::string gist(const std::string& said) {
  std::vector<std::string> lines;
  for (const std::string& line : split(said, '\n')) {
    const std::string text = valid_utf8(trim(line));
    if (!text.empty() && text.find_first_not_of("@ ") != std::string::npos) lines.push_back(text);
  }
  constexpr size_t kMostLines = 4;
  if (lines.size() > kMostLines) lines.erase(lines.begin(), lines.end() - kMostLines);
  return lines.empty() ? "it said nothing" : join(lines, " / ");
}

std::string keyscan(const Host& host) {
  return fmt::format("ssh-keyscan {}{} >> {}", host.port ? fmt::format("-p {} ", host.port) : "",
                     shell_quote(host.reached_at()),
                     host.known_hosts.empty() ? "~/.ssh/known_hosts" : shell_quote(host.known_hosts.string()));
}

std::string where(const Host& host) {
  return host.port ? fmt::format("{} port {}", host.reached_at(), host.port) : host.reached_at();
}

std::string known_hosts_name(const Host& host) {
  return host.known_hosts.empty() ? "your known_hosts" : host.known_hosts.string();
}

}  // namespace

void check_ssh_host(const Host& host) {
  const auto check = [&](const std::string& text, const char* what) {
    if (text.empty() || text[0] == '-' || has_control(text)) {
      throw ConfigError(fmt::format("host '{}': '{}' is no {}", valid_utf8(host.name), valid_utf8(text), what));
    }
  };
  check(host.name, "name of a host");
  check(host.reached_at(), "address of a host");
  if (!host.user.empty()) check(host.user, "name of a user");
  if (host.port < 0 || host.port > 65535) throw ConfigError(fmt::format("host '{}': no port {}", host.name, host.port));
}

std::vector<std::string> ssh_options(const Host& host, const std::filesystem::path& control_path) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& option) {
    out.push_back("-o");
    out.push_back(option);
  };
  add("BatchMode=yes");
  add("StrictHostKeyChecking=yes");
  add(fmt::format("ConnectTimeout={}", kSshConnectSeconds));
  add(fmt::format("ServerAliveInterval={}", kSshAliveSeconds));
  add("ServerAliveCountMax=3");
  add("ClearAllForwardings=yes");
  add("ForwardAgent=no");
  add("PermitLocalCommand=no");
  add("RemoteCommand=none");
  add("RequestTTY=no");
  add("LogLevel=ERROR");
  add("ControlPath=" + option_path(control_path));
  if (!host.known_hosts.empty()) {
    add("UserKnownHostsFile=" + option_path(std::filesystem::absolute(host.known_hosts)));
    add("GlobalKnownHostsFile=/dev/null");
  }
  if (!host.identity_file.empty()) {
    add("IdentityFile=" + option_path(std::filesystem::absolute(host.identity_file)));
    add("IdentitiesOnly=yes");
  }
  if (!host.user.empty()) add("User=" + host.user);
  if (host.port > 0) add(fmt::format("Port={}", host.port));
  return out;
}

std::string rsync_shell(const std::vector<std::string>& argv) {
  std::string out;
  for (const std::string& word : argv) {
    if (!out.empty()) out += ' ';
    out += '\'';
    for (const char c : word) out += c == '\'' ? "''" : std::string(1, c);
    out += '\'';
  }
  return out;
}

std::string copy_address(const Host& host) {
  const std::string& address = host.reached_at();
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

std::string remote_command(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_quote(word));
  return join(quoted, " ");
}

HostError explain_failure(const Host& host, const std::string& doing, const std::string& exit_text,
                          const std::string& said) {
  const auto error = [&](HostProblem problem, const std::string& text) {
    return HostError(problem, fmt::format("{}: {}", host.name, text));
  };
  if (says(said, "No space left on device") || says(said, "Disk quota exceeded")) {
    return error(HostProblem::NoSpace, fmt::format("no space left on its disk while {}: {}", doing, gist(said)));
  }
  if (says(said, "Could not resolve hostname")) {
    return error(HostProblem::UnknownHost,
                 fmt::format("no host is known by the name '{}'; give its address", host.reached_at()));
  }
  if (says(said, "HOST IDENTIFICATION HAS CHANGED")) {
    return error(
        HostProblem::KeyChanged,
        fmt::format("its key is not the one in {}. Either the host was set up anew, or somebody stands between. "
                    "If you know why: ssh-keygen -R, then {}",
                    known_hosts_name(host), keyscan(host)));
  }
  if (says(said, "host key is known for") || says(said, "Host key verification failed")) {
    return error(HostProblem::KeyUnknown, fmt::format("the key of {} is not in {}; if you trust it: {}", host.name,
                                                      known_hosts_name(host), keyscan(host)));
  }
  if (says(said, "Permission denied (")) {
    return error(HostProblem::PermissionDenied,
                 fmt::format("does not let {} in ({}): is the public key of {} in its authorized_keys?",
                             host.user.empty() ? "this user" : "user " + host.user, gist(said),
                             host.identity_file.empty() ? "this user" : host.identity_file.string()));
  }
  if (says(said, "Connection refused")) {
    return error(HostProblem::Refused,
                 fmt::format("connection refused at {}: nobody listens there; is sshd running?", where(host)));
  }
  if (says(said, "timed out") || says(said, "No route to host") || says(said, "Network is unreachable") ||
      says(said, "not responding")) {
    return error(HostProblem::Timeout, fmt::format("no answer from {}: {}", where(host), gist(said)));
  }
  return error(HostProblem::Other,
               exit_text == "exit code 255"
                   ? fmt::format("{} failed with exit code 255: no connection, or the shell there was killed. {}",
                                 doing, gist(said))
                   : fmt::format("{} failed, {}: {}", doing, exit_text, gist(said)));
}

}  // namespace assay
