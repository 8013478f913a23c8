// The layer order of docs/architecture.md, enforced: an include that goes upwards or sideways, a libtorch header
// outside the data plane, or a control-plane program that loads libtorch fails here.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "base/files.h"
#include "base/process.h"

namespace fs = std::filesystem;
using namespace assay;

namespace {

// What each folder of src/ may include besides itself.
const std::map<std::string, std::set<std::string>>& allowed() {
  static const std::set<std::string> both = {"base", "config", "record", "text"};
  const auto with = [](std::set<std::string> more) {
    more.insert(both.begin(), both.end());
    return more;
  };
  static const std::map<std::string, std::set<std::string>> kAllowed = {
      {"base", {}},
      {"config", {"base"}},
      {"record", {"base"}},
      {"text", {"base"}},
      {"comm", {"base"}},
      {"ps", {"base"}},
      {"monitor", {"base"}},
      {"prepare", both},
      {"render", with({"prepare"})},
      {"plan", with({"prepare"})},
      {"launch", with({"prepare", "plan", "ps", "monitor"})},
      {"verify", with({"prepare", "plan"})},
      {"execute", with({"prepare", "plan", "launch", "verify", "monitor"})},
      {"results", with({"prepare", "plan", "launch", "verify", "execute"})},
      {"report", with({"prepare", "plan", "launch", "verify", "execute", "results", "monitor"})},
      {"device", both},
      {"nn", with({"device", "comm"})},
      {"data", with({"device", "comm", "nn"})},
      {"engine", with({"device", "comm", "nn", "data"})},
      {"parallel", with({"device", "comm", "ps", "nn", "data", "engine"})},
      {"models", with({"device", "comm", "nn", "data", "engine", "parallel"})},
      {"deploy", with({"device", "comm", "nn", "data", "engine", "parallel", "models"})},
  };
  return kAllowed;
}

bool is_data_plane(const std::string& folder) {
  static const std::set<std::string> kFolders = {"device", "nn", "data", "engine", "parallel", "models", "deploy"};
  return kFolders.count(folder) > 0;
}

bool is_torch(const std::string& include) {
  return std::regex_search(include, std::regex("^(torch|ATen|c10|caffe2)/"));
}

// What is wrong with one line of a file in src/<folder>; "" when nothing is.
std::string complaint(const std::string& folder, const std::string& line) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::smatch match;
  if (!std::regex_search(line, match, kInclude)) return "";
  const std::string include = match[1];
  if (is_torch(include)) return is_data_plane(folder) ? "" : "libtorch in the control plane: " + include;
  const size_t slash = include.find('/');
  const std::string target = slash == std::string::npos ? "" : include.substr(0, slash);
  if (!allowed().count(target) || target == folder) return "";
  return allowed().at(folder).count(target) ? "" : folder + " may not include " + include;
}

std::vector<std::string> complaints_in_tree(const fs::path& src) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(src)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp") continue;
    const std::string folder = fs::relative(entry.path(), src).begin()->string();
    if (!allowed().count(folder)) {
      found.push_back(entry.path().string() + ": its folder has no place in the layer order");
      continue;
    }
    std::ifstream file(entry.path());
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const std::string what = complaint(folder, line);
      if (!what.empty()) found.push_back(entry.path().string() + ":" + std::to_string(number) + ": " + what);
    }
  }
  return found;
}

}  // namespace

TEST(Layers, IncludesGoOnlyDownwards) {
  EXPECT_EQ(complaints_in_tree(fs::path(ASSAY_SOURCE_DIR) / "src"), std::vector<std::string>{});
}

TEST(Layers, TheCheckCatchesWhatItShould) {
  EXPECT_NE(complaint("base", "#include \"config/value.h\""), "");
  EXPECT_NE(complaint("plan", "#include \"execute/executor.h\""), "");
  EXPECT_NE(complaint("verify", "  #  include <torch/torch.h>"), "");
  EXPECT_NE(complaint("record", "#include <ATen/ATen.h>"), "");
  EXPECT_NE(complaint("engine", "#include \"models/registry.h\""), "");
  EXPECT_NE(complaint("engine", "#include \"plan/plan.h\""), "");
  EXPECT_EQ(complaint("engine", "#include <torch/torch.h>"), "");
  EXPECT_EQ(complaint("execute", "#include \"plan/plan.h\""), "");
  EXPECT_EQ(complaint("base", "#include <sys/wait.h>"), "");
  EXPECT_EQ(complaint("base", "// #include is a word"), "");
}

TEST(Layers, EveryFolderHasASentenceInTheReadme) {
  const std::string readme = read_file(fs::path(ASSAY_SOURCE_DIR) / "src/README.md");
  for (const auto& entry : fs::directory_iterator(fs::path(ASSAY_SOURCE_DIR) / "src")) {
    if (!entry.is_directory() || fs::is_empty(entry.path())) continue;
    EXPECT_NE(readme.find("`" + entry.path().filename().string() + "/`"), std::string::npos) << entry.path();
  }
}

TEST(Layers, TheControlPlaneDoesNotLoadLibtorch) {
  for (const char* program : {"assay", "assay_control_tests"}) {
    const CapturedOutput output = capture({.argv = {"ldd", (fs::path(ASSAY_BINARY_DIR) / "bin" / program).string()}});
    ASSERT_TRUE(output.status.ok()) << output.err;
    ASSERT_NE(output.out.find("libc.so"), std::string::npos) << "ldd said nothing useful: " << output.out;
    for (const std::string library : {"torch", "libc10", "gloo", "dnnl", "openblas"}) {
      if (library == "gloo" && program == std::string("assay_control_tests")) continue;  // comm is tested there
      EXPECT_EQ(output.out.find(library), std::string::npos) << program << " loads " << library;
    }
  }
}
