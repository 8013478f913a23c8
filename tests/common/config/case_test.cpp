#include "config/case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "base/text.h"
#include "temp_home.h"

using namespace assay;

TEST(CaseFiles, ResolveWithoutErrors) {
  const fs::path home = ASSAY_SOURCE_DIR;
  ASSERT_THAT(list_cases(home), testing::IsSupersetOf({"resnet", "simplenet"}));
  for (const std::string& name : list_cases(home)) {
    const ResolvedCase found = resolve_case({.home = home, .key = CaseKey::parse(name)});
    EXPECT_EQ(found.key.model, name);
    EXPECT_EQ(found.division, Division::Closed);
    EXPECT_FALSE(found.task.empty()) << name;
    EXPECT_FALSE(found.source.empty()) << name;
    EXPECT_FALSE(found.licence.empty()) << name;
    // A folder of pictures has thousands of files; what was prepared is checked by its manifest.
    EXPECT_NE(found.data.sha256.empty(), found.data.layout != "image folder") << name;
  }
}

// Every folder of a native case holds the same: two sizes at least, a page of the same parts, results, and its model.
TEST(CaseFiles, HaveFoldersOfOneShape) {
  const fs::path home = ASSAY_SOURCE_DIR;
  int num_folders = 0;
  for (const std::string& name : list_cases(home)) {
    const std::string model = find_case(home, name)->model;
    if (model != name || !resolve_case({.home = home, .key = CaseKey::parse(name)}).is_native()) continue;
    ++num_folders;
    const fs::path folder = home / "cases" / model;
    for (const char* file : {"case.yaml", "full.yaml", "README.md", "results.json"}) {
      EXPECT_TRUE(fs::exists(folder / file)) << folder / file;
    }
    const std::string readme = read_file(folder / "README.md");
    size_t at = 0;
    for (const std::string& part : {"# " + model + "\n", std::string("\n- **Data**: "), std::string("\n- **Target**: "),
                                    std::string("\n- **Run**: `assay train "), std::string("\n## Results\n")}) {
      const size_t found = readme.find(part, at);
      EXPECT_NE(found, std::string::npos) << folder / "README.md"
                                          << " has, in this order, " << part;
      if (found != std::string::npos) at = found;
    }
    for (const char* file : {"model.h", "model.cpp"}) {
      EXPECT_TRUE(fs::exists(home / "src/worker/models" / model / file)) << model << "/" << file;
    }
  }
  EXPECT_GE(num_folders, 8);
}

TEST(CaseFiles, HaveClosedVendorFiles) {
  const fs::path home = ASSAY_SOURCE_DIR;
  const std::regex form("config_(.+)x([0-9]+)x([0-9]+)\\.yaml");
  int num_files = 0;
  for (const std::string& vendor : list_vendors(home)) {
    for (const auto& entry : fs::recursive_directory_iterator(home / "vendors" / vendor)) {
      if (entry.path().extension() != ".yaml") continue;
      std::smatch parts;
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("config")) continue;  // vendor.yaml, and what configurations have as their base
      ASSERT_TRUE(std::regex_match(name, parts, form)) << entry.path();
      const std::string model = entry.path().parent_path().filename().string();
      const std::string framework = resolve_case({.home = home, .key = CaseKey::parse(model)}).framework;
      ResolveRequest request{.home = home};
      request.key = CaseKey::parse(join({model, framework, parts[1], parts[2], parts[3], "1"}, ":"));
      request.vendor = vendor;
      EXPECT_EQ(resolve_case(request).division, Division::Closed) << entry.path();
      ++num_files;
    }
  }
  EXPECT_GE(num_files, 2);
}

TEST(Case, ListsDivisionsAndEmptyHomes) {
  EXPECT_EQ(division_of("open"), Division::Open);
  EXPECT_EQ(division_name(Division::Closed), "closed");
  EXPECT_THROW(division_of("Open"), UsageError);
  const TempHome home;
  EXPECT_TRUE(list_cases(home.path()).empty());
  EXPECT_TRUE(list_vendors(home.path()).empty());
}

TEST(Case, FindsSizesBesideTheCase) {
  const TempHome home;
  home.write("cases/tiny/case.yaml", kTinyCase);
  home.write("cases/tiny/wide-1.3b.yaml", "_base_: case.yaml\nconfig: {Model: {width: 64}}\n");
  home.write("cases/tiny-wide/case.yaml", std::string("model: tiny-wide") + (kTinyCase + 11));
  EXPECT_THAT(list_cases(home.path()), testing::ElementsAre("tiny", "tiny-wide-1.3b", "tiny-wide"));
  const ResolvedCase wide = resolve_case(home.request("tiny-wide-1.3b"));
  EXPECT_EQ(wide.key.model, "tiny-wide-1.3b");
  EXPECT_EQ(wide.config.find("Model.width")->to_json(), 64);
  EXPECT_EQ(wide.place(wide.config.find("Model.width")->origin()), "cases/tiny/wide-1.3b.yaml:2");
  EXPECT_EQ(wide.config.find("Model.dropout")->to_json(), 0.5);
  EXPECT_EQ(wide.division, Division::Closed);
  EXPECT_NE(wide.hash(), resolve_case(home.request("tiny")).hash());
  EXPECT_EQ(resolve_case(home.request("tiny-wide")).head.find("model")->to_json(), "tiny-wide");
  const std::string unknown = error_of([&] { resolve_case(home.request("tiny-wide-1.3")); });
  EXPECT_NE(unknown.find("did you mean 'tiny-wide-1.3b'"), std::string::npos) << unknown;
  EXPECT_THROW(resolve_case(home.request("tiny-case")), ConfigError);
  // A size without its case is none.
  home.write("cases/lonely/full.yaml", kTinyCase);
  EXPECT_THROW(resolve_case(home.request("lonely-full")), ConfigError);
}

// By the formula: tables of V and P rows, and in a layer 12 D^2 weights and 13 D biases and normalisations.
TEST(CaseFiles, HaveThePublishedSizesOfGpt) {
  const auto parameters = [](const std::string& name) {
    const Json model = resolve_case({.home = ASSAY_SOURCE_DIR, .key = CaseKey::parse(name)}).config_json().at("Model");
    const auto number = [&](const char* key) { return model.at(key).get<int64_t>(); };
    const int64_t d = number("hidden_size");
    EXPECT_EQ(number("ffn_hidden_size"), 4 * d);
    EXPECT_EQ(d % number("num_attention_heads"), 0);
    return (number("vocab_size") + number("max_position_embeddings")) * d +
           number("num_layers") * (12 * d * d + 13 * d) + 2 * d;
  };
  EXPECT_EQ(parameters("gpt-full"), 124'439'808);
  EXPECT_EQ(parameters("gpt-345m"), 354'823'168);
  EXPECT_NEAR(static_cast<double>(parameters("gpt-1.3b")), 1.3e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(parameters("gpt-6.7b")), 6.7e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(parameters("gpt-175b")), 175e9, 0.5e9);
}

TEST(Case, ResolvesPlacesAgainstHome) {
  const TempHome home;
  home.write("cases/tiny/case.yaml", kTinyCase);
  const ResolvedCase found = resolve_case(home.request("tiny"));
  EXPECT_EQ(found.place(found.config.find("Model.width")->origin()), "cases/tiny/case.yaml:12");
  EXPECT_EQ(found.place({"plan", "/elsewhere/plan.yaml", 3}), "/elsewhere/plan.yaml:3");
  const Json described = found.describe();
  EXPECT_EQ(described["case"], "tiny");
  for (const Json& row : described["values"]) {
    EXPECT_EQ(row["place"].get<std::string>().find(home.path().string()), std::string::npos) << row;
  }
}

// Case and vendor files with words swapped, lines moved and bytes changed: refused with a typed error, or resolved.
TEST(Case, SurvivesMutatedFiles) {
  const std::string words[] = {
      "null", "-1", "[]", "{}", "0",      "1e999",  "name",    "Model",  "Engine", "true",
      "'",    "- ", "  ", ":",  "_base_", "config", "mutable", "target", "x: 1\n", "_inherited_: False\n"};
  std::mt19937 random(4);
  const TempHome home;
  const std::string vendor_text =
      "vendor: acme\nGlobal: {local_batch_size: 64}\nEngine:\n  mix_precision:\n    enable: true\n";
  int resolved = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string case_text = kTinyCase;
    std::string vendor = vendor_text;
    std::string& text = round % 3 == 0 ? vendor : case_text;
    for (int edit = 1 + static_cast<int>(random() % 3); edit > 0 && !text.empty(); --edit) {
      const std::string& word = words[random() % std::size(words)];
      const size_t at = random() % text.size();
      const size_t line = text.rfind('\n', at) + 1;
      switch (random() % 4) {
        case 0: text.replace(at, std::min(word.size(), text.size() - at), word); break;
        case 1: text.insert(line, word); break;
        case 2: text.erase(line, text.find('\n', line) - line + 1); break;
        default: {
          const size_t colon = text.find(": ", line);
          if (colon != std::string::npos) text.replace(colon + 2, text.find('\n', colon) - colon - 2, word);
        }
      }
    }
    home.write("cases/tiny/case.yaml", case_text);
    home.write("vendors/acme/tiny/config_chipx1x2.yaml", vendor);
    ResolveRequest request = home.request("tiny:libtorch:chip:1:2:1");
    request.division = round % 2 ? Division::Open : Division::Closed;
    try {
      (void)resolve_case(request).worker_json();
      ++resolved;
    } catch (const ConfigError&) {
    }
  }
  EXPECT_GT(resolved, 20);
  EXPECT_LT(resolved, 1400);
}
