#include "config/origin.h"

namespace assay {

std::string Origin::text() const {
  if (layer == kLayerDerived) return "derived: " + file;
  if (file.empty()) return layer;
  return line > 0 ? file + ":" + std::to_string(line) : file;
}

}  // namespace assay
