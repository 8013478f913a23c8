// The name of a vendor's configuration file: config_<hardware>x<nnodes>x<nproc>.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay {

struct ConfigName {
  std::string hardware;
  int nnodes = 1;
  int nproc = 1;
  std::string text() const;  // "config_A100x1x8"
  bool operator==(const ConfigName&) const = default;
};

// From the name without its ending. The hardware may have an 'x' itself: the last two are those that count.
std::optional<ConfigName> parse_config_name(std::string_view stem);

}  // namespace assay
