// The classes that plugins see, and the number that says so: a plugin built for others must be refused, not crash.
#include <gtest/gtest.h>

#include <sstream>

#include "base/files.h"
#include "base/hash.h"
#include "engine/adapter/plugin.h"

namespace assay {
namespace {

// The headers whose classes a plugin derives from, calls or is handed.
constexpr const char* kInterfaceHeaders[] = {"engine/adapter/plugin.h",
                                             "engine/adapter/adapter.h",
                                             "engine/module.h",
                                             "engine/module/evaluation.h",
                                             "engine/module/measured_model.h",
                                             "engine/module/model_definition.h",
                                             "engine/module/network.h",
                                             "engine/module/train_log.h",
                                             "engine/optimizer/optimizer.h",
                                             "engine/precision/loss_scaler.h",
                                             "engine/precision/precision.h",
                                             "engine/precision/weight_swap.h",
                                             "device/registry.h",
                                             "data/dataset.h"};

// Without comments, spaces and line ends, which change no class.
std::string code_of(const std::string& text) {
  std::string code;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    for (const char c : line.substr(0, line.find("//"))) {
      if (c != ' ') code += c;
    }
  }
  return code;
}

TEST(PluginInterface, ChangesItsNumberWithItsHeaders) {
  std::string all;
  for (const char* header : kInterfaceHeaders)
    all += code_of(read_file(fs::path(ASSAY_SOURCE_DIR) / "src/worker" / header));
  const std::string found = sha256(all).substr(0, 16);
  EXPECT_EQ(std::pair(kPluginInterface, found), std::pair(3u, std::string("622383b10d416f87")))
      << "What plugins see has changed. Raise kPluginInterface in src/worker/engine/adapter/plugin.h, unless it was "
         "raised since the "
         "last release already, and write the number and the hash here.";
}

TEST(PluginInterface, IgnoresCommentsAndSpaces) {
  EXPECT_EQ(code_of("int a;  // one\n  int b;\n"), code_of("int a;\nint b; // two"));
  EXPECT_NE(code_of("virtual void f();"), code_of("void f();"));
}

}  // namespace
}  // namespace assay
