// Where a value came from: the layer, and the file and line or the argument that set it.
#pragma once

#include <string>

namespace assay {

struct Origin {
  std::string layer;  // "default", "case", "vendor", "plan", "command line", "derived"
  std::string file;   // the file; for the command line the argument as typed; for derived values the rule
  int line = 0;       // 1-based; 0 when there is no file
  int column = 0;     // 1-based, of the key in its line; 0 when it is not known
  // "cases/resnet/case.yaml:12", "--set Engine.max_steps=10", "derived from ...", "default"
  std::string text() const;
  // The same with the column, where it is known: "cases/resnet/case.yaml:12:5".
  std::string exact_text() const;
  // The same layer, file and line; the column only helps to find the place.
  bool operator==(const Origin& other) const {
    return layer == other.layer && file == other.file && line == other.line;
  }
};

inline constexpr char kLayerDefault[] = "default";
inline constexpr char kLayerCase[] = "case";
inline constexpr char kLayerVendor[] = "vendor";
inline constexpr char kLayerPlan[] = "plan";
inline constexpr char kLayerCommandLine[] = "command line";
inline constexpr char kLayerDerived[] = "derived";

}  // namespace assay
