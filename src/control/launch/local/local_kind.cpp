#include "launch/local/local_kind.h"

#include "base/files.h"
#include "launch/local/local_transport.h"
#include "launch/multi_node/hosts.h"

namespace assay {

namespace {

constexpr const char* kDevicesKey = "devices";

class LocalKind : public LauncherKind {
 public:
  std::string name() const override { return "local"; }
  std::vector<std::string> keys() const override { return {kDevicesKey}; }

  void read(const SiteFile& file, Site& site) const override {
    if (const Value* devices = file.child(kDevicesKey)) {
      if (site.launcher != name()) fail_at(*devices, "devices stands with each host");
      site.devices = device_numbers_of(*devices);
    }
    if (site.launcher != name()) return;
    site.hosts = {{.name = "localhost",
                   .address = "127.0.0.1",
                   .slots = static_cast<int>(site.devices.size()),
                   .devices = site.devices}};
  }

  HostRunner probe(const Site&) const override {
    return [](const Host&, std::vector<std::string> words, double time_limit_s) {
      words[0] = (program_folder() / "assay").string();
      return capture({.argv = std::move(words)}, time_limit_s);
    };
  }

  std::unique_ptr<Launcher> make(const Site&) const override {
    return std::make_unique<HostsLauncher>(std::make_unique<LocalTransport>());
  }
};

}  // namespace

const LauncherKind* local_kind() {
  static const LocalKind kKind;
  return &kKind;
}

}  // namespace assay
