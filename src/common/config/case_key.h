// The name of a case: "model:framework:hardware:nnodes:nproc:repeat", or just the model.
#pragma once

#include <string>
#include <string_view>

namespace assay {

inline constexpr char kNativeFramework[] = "libtorch";

struct CaseKey {
  std::string model = {};
  std::string framework = kNativeFramework;  // may carry a version: "pytorch_1.8"
  std::string hardware = {};                 // "A100", "cpu"; empty in the short form
  int nnodes = 1;
  int nproc = 1;  // processes a node
  int repeat = 1;

  // One part (the model) or all six. Throws UsageError saying what the form is and which part is wrong.
  static CaseKey parse(std::string_view text);
  std::string text() const;  // parse(text()) gives the same key
  // The framework without its version: "pytorch". It names the code and the launcher.
  std::string framework_name() const;
  int world_size() const { return nnodes * nproc; }
  bool operator==(const CaseKey&) const = default;
};

// The whole key is a path component in several places: letters, digits, '_', '-', '+' and '.', not first.
bool is_plain_name(std::string_view text);

}  // namespace assay
