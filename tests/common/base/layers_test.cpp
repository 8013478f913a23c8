// The layer order of docs/design/architecture.md, enforced: an include that goes upwards or sideways, a libtorch header
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
#include "base/text.h"

namespace fs = std::filesystem;
using namespace assay;

namespace {

struct Layer {
  std::string plane;           // common, control, worker
  std::set<std::string> uses;  // what it may include besides itself
};

// src/layers.txt, by the names of the folders.
std::map<std::string, Layer> read_layers(const std::string& text) {
  std::map<std::string, Layer> layers;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const size_t slash = line.find('/');
    const size_t colon = line.find(':');
    Layer layer{line.substr(0, slash), {}};
    for (const std::string& name : split(line.substr(colon + 1), ' ')) {
      if (!name.empty()) layer.uses.insert(name);
    }
    layers[line.substr(slash + 1, colon - slash - 1)] = layer;
  }
  return layers;
}

const std::map<std::string, Layer>& layers() {
  static const auto kLayers = read_layers(read_file(fs::path(ASSAY_SOURCE_DIR) / "src/layers.txt"));
  return kLayers;
}

// The folders that are compiled with libtorch: those of the worker that do not have a library of their own.
bool is_data_plane(const std::string& folder) {
  static const std::set<std::string> kWithout = {"comm", "param_server", "kernels"};
  return layers().at(folder).plane == "worker" && !kWithout.count(folder);
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
  if (!layers().count(target) || target == folder) return "";
  return layers().at(folder).uses.count(target) ? "" : folder + " may not include " + include;
}

// Every source file, with the folder that it belongs to.
std::vector<std::pair<fs::path, std::string>> sources(const fs::path& src) {
  std::vector<std::pair<fs::path, std::string>> found;
  for (const auto& entry : fs::recursive_directory_iterator(src)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp") continue;
    found.emplace_back(entry.path(), std::next(fs::relative(entry.path(), src).begin())->string());
  }
  return found;
}

std::vector<std::string> complaints_in_tree(const fs::path& src) {
  std::vector<std::string> found;
  for (const auto& [path, folder] : sources(src)) {
    if (!layers().count(folder)) {
      found.push_back(path.string() + ": its folder is not in src/layers.txt");
      continue;
    }
    std::ifstream file(path);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const std::string what = complaint(folder, line);
      if (!what.empty()) found.push_back(path.string() + ":" + std::to_string(number) + ": " + what);
    }
  }
  return found;
}

}  // namespace

TEST(Layers, IncludeOnlyLowerOnes) {
  EXPECT_EQ(complaints_in_tree(fs::path(ASSAY_SOURCE_DIR) / "src"), std::vector<std::string>{});
}

TEST(Layers, CatchWhatTheCheckShould) {
  EXPECT_NE(complaint("base", "#include \"config/value.h\""), "");
  EXPECT_NE(complaint("plan", "#include \"execute/executor.h\""), "");
  EXPECT_NE(complaint("verify", "  #  include <torch/torch.h>"), "");
  EXPECT_NE(complaint("record", "#include <ATen/ATen.h>"), "");
  EXPECT_NE(complaint("engine", "#include \"models/registry.h\""), "");
  EXPECT_NE(complaint("comm", "#include <torch/torch.h>"), "");
  EXPECT_NE(complaint("engine", "#include \"plan/plan.h\""), "");
  EXPECT_EQ(complaint("engine", "#include <torch/torch.h>"), "");
  EXPECT_EQ(complaint("execute", "#include \"plan/plan.h\""), "");
  EXPECT_EQ(complaint("base", "#include <sys/wait.h>"), "");
  EXPECT_EQ(complaint("base", "// #include is a word"), "");
}

TEST(Layers, UseEveryAllowedInclude) {
  std::set<std::pair<std::string, std::string>> unused;
  for (const auto& [name, layer] : layers()) {
    for (const std::string& used : layer.uses) unused.emplace(name, used);
  }
  ASSERT_GT(unused.size(), 50u);
  static const std::regex kInclude("^#include \"([a-z_]+)/");
  for (const auto& [path, folder] : sources(fs::path(ASSAY_SOURCE_DIR) / "src")) {
    for (const std::string& line : split(read_file(path), '\n')) {
      std::smatch match;
      if (std::regex_search(line, match, kInclude)) unused.erase({folder, match[1]});
    }
  }
  for (const auto& [name, used] : unused) ADD_FAILURE() << name << " does not include " << used << ": src/layers.txt";
}

// The list is in order, lowest first, so there are no cycles.
TEST(Layers, UseOnlyFoldersAboveThemInTheList) {
  std::set<std::string> seen;
  for (const std::string& line : split(read_file(fs::path(ASSAY_SOURCE_DIR) / "src/layers.txt"), '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const auto one = read_layers(line);
    for (const std::string& used : one.begin()->second.uses) EXPECT_TRUE(seen.count(used)) << line << ": " << used;
    seen.insert(one.begin()->first);
  }
}

// Two classes of one name are an error that no compiler reports: the linker keeps one of them.
TEST(Layers, HaveNoTypeNameTwiceInOnePlane) {
  static const std::regex kNamespace(R"(^namespace ([a-z_:]+) \{)");
  static const std::regex kType(R"(^(?:class|struct|enum class|union) ([A-Z]\w*)(?!\w|::)[^;]*\{)");
  std::map<std::string, std::set<std::string>> places;  // of a name: the headers that define it
  for (const auto& [path, folder] : sources(fs::path(ASSAY_SOURCE_DIR) / "src")) {
    if (path.extension() != ".h") continue;
    std::string space;
    for (const std::string& line : split(read_file(path), '\n')) {
      std::smatch match;
      if (std::regex_search(line, match, kNamespace)) space = match[1];
      if (!std::regex_search(line, match, kType)) continue;
      const std::string plane = layers().at(folder).plane;
      for (const std::string& program :
           plane == "common" ? std::vector<std::string>{"control", "worker"} : std::vector<std::string>{plane}) {
        places[program + ": " + space + "::" + match[1].str()].insert(path.string());
      }
    }
  }
  ASSERT_GT(places.size(), 300u);
  for (const auto& [name, files] : places)
    EXPECT_EQ(files.size(), 1u) << name << " in " << *files.begin() << " and " << *files.rbegin();
}

TEST(Layers, HaveASentencePerFolderInTheReadme) {
  const std::string readme = read_file(fs::path(ASSAY_SOURCE_DIR) / "src/README.md");
  for (const auto& [name, layer] : layers()) {
    EXPECT_TRUE(fs::is_directory(fs::path(ASSAY_SOURCE_DIR) / "src" / layer.plane / name)) << name;
    EXPECT_NE(readme.find("`" + name + "/`"), std::string::npos) << name;
  }
}

TEST(Layers, KeepLibtorchOutOfTheControlPlane) {
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
