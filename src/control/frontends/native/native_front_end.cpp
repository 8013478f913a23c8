#include "frontends/native/native_front_end.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "frontends/native/native_chain.h"

namespace assay {

namespace {

constexpr const char* kCaseFile = "case.yaml";

// case.yaml, a further size beside it, or the folder of both.
bool is_case(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return std::filesystem::is_regular_file(path / kCaseFile);
  if (!std::filesystem::is_regular_file(path)) return false;
  if (path.filename() == kCaseFile) return true;
  if (path.extension() != ".yaml" || !std::filesystem::exists(path.parent_path() / kCaseFile)) return false;
  const std::vector<std::string> keys = top_level_keys(path);
  return std::find(keys.begin(), keys.end(), "cases") == keys.end();
}

struct CasePlace {
  std::filesystem::path home;
  std::string name;  // as `assay train` calls it
};

// HOME/cases/MODEL/case.yaml is the case MODEL, HOME/cases/MODEL/SIZE.yaml is MODEL-SIZE.
CasePlace place_of(const std::filesystem::path& path) {
  std::filesystem::path file = std::filesystem::absolute(path).lexically_normal();
  if (!file.has_filename()) file = file.parent_path();  // "cases/resnet/"
  if (std::filesystem::is_directory(file)) file /= kCaseFile;
  const std::filesystem::path folder = file.parent_path();
  if (folder.parent_path().filename() != "cases") {
    throw ConfigError(fmt::format("{}: a case lies in a folder cases/MODEL; move {} into one", file.string(),
                                  folder.filename().string()));
  }
  std::string name = folder.filename().string();
  if (file.filename() != kCaseFile) name += "-" + file.stem().string();
  return {folder.parent_path().parent_path(), name};
}

PlannedRun plan_case(const std::filesystem::path& path, const FrontEndOptions&) {
  const CasePlace place = place_of(path);
  const ResolvedCase resolved = resolve_case({.home = place.home, .key = CaseKey::parse(place.name)});
  return {.plan = train_plan(resolved), .check_here = [resolved] { check_ready(resolved); }};
}

}  // namespace

FrontEnd native_front_end() {
  return {.name = "native",
          .files = "cases/MODEL/case.yaml, or its folder: trains the case, as assay train MODEL does",
          .recognises = is_case,
          .plan = plan_case};
}

}  // namespace assay
