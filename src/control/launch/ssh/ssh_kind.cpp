#include "launch/ssh/ssh_kind.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "base/error.h"
#include "launch/multi_node/hosts.h"
#include "launch/ssh/ssh_host.h"
#include "launch/ssh/ssh_transport.h"

namespace assay {

namespace {

constexpr int64_t kMaxSlots = 4096;

// Connects to a host and brings assay there once, however often it is asked.
class SshProbe {
 public:
  CapturedOutput operator()(const Host& host, std::vector<std::string> words, double time_limit_s) const {
    const std::shared_ptr<Known> known = of(host);
    if (known->program.empty()) known->program = known->remote.prepare({}).program.string();
    words[0] = known->program;
    return known->remote.connection().run(words, "looking at the host", "", time_limit_s);
  }

 private:
  struct Known {  // used by one thread at a time: that which asks the host
    SshHost remote;
    std::string program = {};
  };
  struct Shared {
    std::shared_ptr<SocketFolder> sockets = std::make_shared<SocketFolder>();
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Known>> hosts;  // guarded by mutex
  };
  std::shared_ptr<Known> of(const Host& host) const {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    auto& known = shared_->hosts[host.name];
    if (!known) {
      known = std::make_shared<Known>(
          Known{.remote = SshHost(std::make_shared<SshConnection>(host, shared_->sockets), "preflight")});
    }
    return known;
  }
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

// What is given replaces what the host has.
void read_login(const SiteFile& file, Reader reader, Host& host) {
  host.user = reader.get_string("user", host.user);
  const int64_t port = reader.get_int("port", host.port);
  if (port < 0 || port > 65535) reader.fail("port", "is not a port");
  host.port = static_cast<int>(port);
  if (reader.has("identity_file")) host.identity_file = file.located(reader.get_string("identity_file"));
  if (reader.has("known_hosts")) host.known_hosts = file.located(reader.get_string("known_hosts"));
  host.work_dir = reader.get_string("work_dir", host.work_dir.string());
  host.program = reader.get_string("program", host.program.string());
  reader.finish();
}

void read_slots(const Value& item, Host& host) {
  if (const Value* slots = item.child("slots")) {
    if (!slots->is_int() || slots->as_int() < 1 || slots->as_int() > kMaxSlots) {
      fail_at(*slots, fmt::format("slots is how many devices the host has, found {}", slots->text()));
    }
    host.slots = static_cast<int>(slots->as_int());
  }
  if (const Value* devices = item.child("devices")) {
    host.devices = device_numbers_of(*devices);
    if (host.slots > 0) fail_at(item, "a host has slots or devices, not both");
    host.slots = static_cast<int>(host.devices.size());
  }
}

// A host that says more than its name.
void read_described_host(const SiteFile& file, const Value& item, Host& host) {
  check_keys(
      item,
      {"name", "address", "slots", "devices", "user", "port", "identity_file", "known_hosts", "work_dir", "program"},
      "a host");
  if (!item.child("name")) fail_at(item, "a host needs a name");
  host.name = text_of(*item.child("name"), "name");
  if (const Value* address = item.child("address")) host.address = text_of(*address, "address");
  read_slots(item, host);
  Json login = item.to_json();
  for (const char* other : {"name", "address", "slots", "devices"}) login.erase(other);
  try {
    read_login(file, Reader(login), host);
  } catch (const ConfigError& error) {
    fail_at(item, error.what());
  }
}

Host read_host(const SiteFile& file, const Value& item, const Host& usual) {
  Host host = usual;
  if (item.is_map()) {
    read_described_host(file, item, host);
  } else {
    host.name = text_of(item, "a host");
  }
  // A name that begins with '-' would be an option of ssh.
  for (const std::string& word : {host.name, host.address}) {
    if (word.starts_with('-') || word.find_first_of(" \t\n/@'\"\\") != std::string::npos) {
      fail_at(item, fmt::format("'{}' is not the name or address of a host", word));
    }
  }
  if (host.name.empty()) fail_at(item, "a host needs a name");
  return host;
}

class SshKind : public LauncherKind {
 public:
  std::string name() const override { return "ssh"; }
  bool shares_files() const override { return false; }
  std::vector<std::string> keys() const override { return {"hosts", "ssh"}; }

  void read(const SiteFile& file, Site& site) const override {
    Host usual;  // of every host that does not say otherwise
    read_login(file, file.section("ssh"), usual);
    const Value* list = file.child("hosts");
    if (!list || list->is_null()) {
      if (site.launcher == name()) fail_at(file.root(), "launcher ssh needs hosts");
      return;
    }
    if (!list->is_list()) fail_at(*list, "hosts is a list");
    if (site.launcher != name()) {
      fail_at(*list, fmt::format("hosts are those of launcher ssh; this is {}", site.launcher));
    }
    std::set<std::string> names;
    for (const Value& item : list->items()) {
      site.hosts.push_back(read_host(file, item, usual));
      const std::string& added = site.hosts.back().name;
      if (!names.insert(added).second) fail_at(item, fmt::format("host '{}' is there twice", added));
    }
    if (site.hosts.empty()) fail_at(*list, "launcher ssh needs hosts");
  }

  HostRunner probe(const Site&) const override { return SshProbe(); }

  void stage(const Site& site, const std::function<void(const std::string&)>& say) const override {
    const auto sockets = std::make_shared<SocketFolder>();
    for (const auto& [folder, hash] : site.staged) {
      const size_t count = site.hosts.size();
      say(fmt::format("data: {} to {} host{} ...", folder.string(), count, count == 1 ? "" : "s"));
      std::atomic<int> copies = 0;
      for_all(count, [&, &folder = folder, &hash = hash](size_t i) {
        SshHost remote(std::make_shared<SshConnection>(site.hosts[i], sockets), "staging");
        copies += remote.stage_data(remote.prepare({}), folder, hash);
      });
      say(copies > 0 ? fmt::format("data: copied to {} and checked", copies.load()) : "data: all have it");
    }
  }

  std::unique_ptr<Launcher> make(const Site&) const override {
    return std::make_unique<HostsLauncher>(std::make_unique<SshTransport>());
  }
};

}  // namespace

const LauncherKind* ssh_kind() {
  static const SshKind kKind;
  return &kKind;
}

}  // namespace assay
