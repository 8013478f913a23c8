#include "config/origin.h"

namespace assay {

std::string Origin::text() const {
  if (layer == kLayerDerived) return "derived: " + file;
  if (file.empty()) return layer;
  return line > 0 ? file + ":" + std::to_string(line) : file;
}

std::string Origin::exact_text() const {
  return line > 0 && column > 0 ? text() + ":" + std::to_string(column) : text();
}

}  // namespace assay
