#include "import/flagperf/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "config/case_key.h"

namespace assay {

namespace {

constexpr size_t kMaxShellBytes = 1 << 20;

std::vector<fs::path> tree_entries(const fs::path& folder, bool folders) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory(error) == folders) entries.push_back(it->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// The case of a model with several frameworks that has the model's name alone.
int framework_rank(const std::string& framework) {
  constexpr std::array<std::string_view, 4> kOrder = {"pytorch", "paddle", "mindspore", "tensorflow2"};
  const auto found = std::find(kOrder.begin(), kOrder.end(), framework);
  return static_cast<int>(found - kOrder.begin());
}

class TreeReader {
 public:
  explicit TreeReader(const fs::path& folder) {
    const fs::path root = fs::absolute(folder).lexically_normal();
    if (is_flagperf(root / "training")) {
      tree_.training = root / "training";
      tree_.root = root;
    } else if (is_flagperf(root)) {
      tree_.training = root;
      tree_.root = root.filename().empty() ? root.parent_path().parent_path() : root.parent_path();
    } else {
      throw ConfigError(fmt::format(
          "{} is no FlagPerf tree: there is no training/benchmarks and no training/run_benchmarks/config/test_conf.py",
          folder.string()));
    }
    tree_.reader = std::make_unique<PythonReader>(tree_.root);
  }

  FlagperfTree run() {
    const fs::path config = tree_.training / "run_benchmarks/config";
    if (is_file(config / "test_conf.py")) tree_.test_conf = &tree_.reader->read(config / "test_conf.py");
    if (is_file(config / "cluster_conf.py")) tree_.cluster_conf = &tree_.reader->read(config / "cluster_conf.py");
    for (const fs::path& model : tree_entries(tree_.training / "benchmarks", true)) read_model(model);
    name_cases();
    for (const fs::path& vendor : tree_entries(tree_.training, true)) {
      const std::string name = vendor.filename().string();
      if (name != "benchmarks" && name != "run_benchmarks" && name != "utils" && name[0] != '.') read_vendor(vendor);
    }
    return std::move(tree_);
  }

 private:
  static bool is_flagperf(const fs::path& training) {
    return is_folder(training / "benchmarks") || is_file(training / "run_benchmarks/config/test_conf.py");
  }

  void issue(const fs::path& path, const std::string& what, bool lost) {
    tree_.issues.push_back({tree_.shown(path), 0, what, {}, lost});
  }

  void read_model(const fs::path& folder) {
    const std::string model = folder.filename().string();
    for (const fs::path& path : tree_entries(folder, true)) {
      const std::string framework = path.filename().string();
      const bool is_case = is_file(path / "config/_base.py") || is_file(path / "run_pretraining.py");
      if (!is_case) continue;  // the driver, and cases that are a shell script for a container
      if (!is_plain_name(model) || !is_plain_name(framework)) {
        issue(path, "the name of a model or framework has letters, digits and '_-+.' only; not imported", true);
        continue;
      }
      FlagperfCase found{.model = model, .framework = framework, .name = "", .folder = path};
      if (is_file(path / "config/_base.py")) found.base = &tree_.reader->read(path / "config/_base.py");
      if (is_file(path / "config/mutable_params.py")) {
        found.mutable_file = &tree_.reader->read(path / "config/mutable_params.py");
      }
      found.has_script = is_file(path / "run_pretraining.py");
      tree_.cases.push_back(std::move(found));
    }
  }

  void name_cases() {
    std::map<std::string, const FlagperfCase*> first;
    const auto key = [](const FlagperfCase& c) { return std::pair(framework_rank(c.framework), c.framework); };
    for (const FlagperfCase& found : tree_.cases) {
      const FlagperfCase*& best = first[found.model];
      if (!best || key(found) < key(*best)) best = &found;
    }
    for (FlagperfCase& found : tree_.cases) {
      found.name = first[found.model] == &found ? found.model : found.model + "-" + found.framework;
    }
  }

  void read_vendor(const fs::path& folder) {
    const std::string vendor = folder.filename().string();
    for (const fs::path& path : tree_entries(folder, true)) {
      if (!is_folder(path / "config")) continue;
      const std::string name = path.filename().string();
      const auto found = std::find_if(tree_.cases.begin(), tree_.cases.end(),
                                      [&](const FlagperfCase& c) { return name == c.model + "-" + c.framework; });
      if (!is_plain_name(vendor)) {
        issue(folder, "the name of a vendor has letters, digits and '_-+.' only; not imported", true);
        return;
      }
      if (found == tree_.cases.end()) {
        issue(path, "there is no standard case for it in training/benchmarks; not imported", true);
        continue;
      }
      tree_.adaptions.push_back(read_adaption(vendor, static_cast<size_t>(found - tree_.cases.begin()), path));
    }
  }

  FlagperfAdaption read_adaption(const std::string& vendor, size_t case_index, const fs::path& folder) {
    FlagperfAdaption out{.vendor = vendor, .case_index = case_index, .folder = folder};
    std::vector<fs::path> others;
    for (const fs::path& path : tree_entries(folder / "config", false)) {
      if (path.extension() != ".py" || path.filename() == "__init__.py") continue;
      if (const auto name = parse_config_name(path.stem().string())) {
        out.configs.push_back({*name, &tree_.reader->read(path)});
      } else {
        others.push_back(path);
      }
    }
    for (const fs::path& path : others) {
      if (!tree_.reader->has_read(path)) {
        issue(path, "its name is not config_<hardware>x<nnodes>x<nproc>.py and no configuration imports it", false);
      }
    }
    read_environment(out, folder / "config/environment_variables.sh");
    read_requirements(out, folder / "config/requirements.txt");
    return out;
  }

  void read_environment(FlagperfAdaption& out, const fs::path& path) {
    if (const auto text = small_file(path)) out.environment = read_shell_exports(*text, tree_.shown(path));
    for (const PythonIssue& found : out.environment.issues) tree_.issues.push_back(found);
  }

  void read_requirements(FlagperfAdaption& out, const fs::path& path) {
    const auto text = small_file(path);
    if (!text) return;
    for (const std::string& line : split(*text, '\n')) {
      const std::string_view plain = trim(line);
      if (!plain.empty() && plain[0] != '#') out.requirements.push_back(valid_utf8(plain));
    }
  }

  std::optional<std::string> small_file(const fs::path& path) {
    if (!is_file(path)) return std::nullopt;
    std::error_code error;
    if (fs::file_size(path, error) > kMaxShellBytes || error) {
      issue(path, "larger than 1 MiB, not read", true);
      return std::nullopt;
    }
    try {
      return read_file(path);
    } catch (const DataError& failure) {
      issue(path, failure.what(), true);
      return std::nullopt;
    }
  }

  FlagperfTree tree_;
};

}  // namespace

std::string FlagperfTree::shown(const fs::path& path) const {
  return path.lexically_normal().lexically_relative(root.lexically_normal()).generic_string();
}

FlagperfTree read_flagperf_tree(const fs::path& folder) { return TreeReader(folder).run(); }

}  // namespace assay
