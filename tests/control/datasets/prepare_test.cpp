#include "datasets/prepare.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"

using namespace assay;

namespace {

class Prepare : public testing::Test {
 protected:
  // A data set without sources: what a conversion writes is all there is.
  DataSet set(const std::string& content = "content", int revision = 1) {
    return {.name = "toy",
            .summary = "",
            .licence = "MIT",
            .layout = "text",
            .sources = {},
            .revision = revision,
            .convert = [this, content](const Conversion& conversion) {
              ++num_conversions_;
              make_folder(conversion.output / "deep");
              write(conversion.output / "a.txt", content);
              write(conversion.output / "deep/b.txt", "more");
              return Json{{"documents", 2}};
            }};
  }
  Prepared prepare(const DataSet& what, bool force = false) { return prepare_data(what, {home_, force}); }
  std::string refused(const DataSet& what) {
    try {
      prepare(what);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }
  std::vector<std::string> names() const {  // what lies beside the data set, but for locks and what was checked
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(home_)) {
      const std::string name = entry.path().filename();
      if (name != ".toy.lock" && name != ".checked" && name != ".fetched") found.push_back(name);
    }
    return found;
  }

  TempFolder folder_{"assay-prepare"};
  fs::path home_ = folder_.path() / "data";
  int num_conversions_ = 0;
};

}  // namespace

TEST_F(Prepare, WritesFilesAndTheirManifest) {
  const Prepared made = prepare(set());
  EXPECT_FALSE(made.was_ready);
  EXPECT_EQ(made.folder, home_ / "toy");
  EXPECT_EQ(read_file(home_ / "toy/deep/b.txt"), "more");
  const Json manifest = read_json_file(home_ / "toy/manifest.json");
  EXPECT_EQ(manifest["counts"]["documents"], 2);
  EXPECT_EQ(manifest["files"]["deep/b.txt"]["bytes"], 4);
  // printf more | sha256sum
  EXPECT_EQ(manifest["files"]["deep/b.txt"]["sha256"],
            "187897ce0afcf20b50ba2b37dca84a951b7046f29ed5ab94f010619f69d6e189");
  EXPECT_EQ(names(), std::vector<std::string>{"toy"}) << "nothing unfinished is left";
}

TEST_F(Prepare, DoesNothingTheSecondTime) {
  prepare(set());
  EXPECT_TRUE(prepare(set()).was_ready);
  EXPECT_EQ(num_conversions_, 1);
  write(home_ / "toy/cache.bin", "files of others do not matter");
  EXPECT_TRUE(prepare(set()).was_ready);
  EXPECT_FALSE(prepare(set(), /*force=*/true).was_ready);
  EXPECT_EQ(num_conversions_, 2);
}

TEST_F(Prepare, ReplacesAnOldConversion) {
  prepare(set("old", 1));
  EXPECT_EQ(check_data_set(set("new", 2), home_).state, DataState::NotPrepared);
  EXPECT_FALSE(prepare(set("new", 2)).was_ready);
  EXPECT_EQ(read_file(home_ / "toy/a.txt"), "new");
  EXPECT_EQ(names(), std::vector<std::string>{"toy"});
}

TEST_F(Prepare, FindsDamageAndSaysWhatToDo) {
  const auto expect = [&](const std::string& what) {
    const std::string message = refused(set());
    EXPECT_NE(message.find(what), std::string::npos) << message;
    EXPECT_NE(message.find("assay data prepare toy --force"), std::string::npos) << message;
    EXPECT_EQ(check_data_set(set(), home_).state, DataState::Damaged);
    prepare(set(), /*force=*/true);
    EXPECT_EQ(check_data_set(set(), home_).state, DataState::Ready);
  };
  prepare(set());
  write(home_ / "toy/a.txt", "cont");
  expect("a.txt: has 4 bytes, not 7");
  const auto time = fs::last_write_time(home_ / "toy/a.txt");
  write(home_ / "toy/a.txt", "CONTENT");
  fs::last_write_time(home_ / "toy/a.txt", time);  // a copy that kept its time
  expect("a.txt: its SHA-256");
  fs::remove(home_ / "toy/deep/b.txt");
  expect("b.txt: no such file");
  fs::remove(home_ / "toy/manifest.json");
  expect("manifest.json: no such file");
  for (const char* bad : {"", "{", "[]", "{\"name\": 3}", "null"}) {
    write(home_ / "toy/manifest.json", bad);
    expect("manifest.json");
  }
}

TEST_F(Prepare, KeepsTheManifestInItsFolder) {
  prepare(set());
  Json manifest = read_json_file(home_ / "toy/manifest.json");
  for (const char* path : {"../outside", "/etc/passwd", "deep/../../x", ""}) {
    Json bad = manifest;
    bad["files"][path] = manifest["files"]["a.txt"];
    EXPECT_THROW(manifest_of(bad, "m"), DataError) << path;
  }
  manifest["files"]["a.txt"]["sha256"] = std::string(64, '0');
  EXPECT_THROW(manifest_of(manifest, "m"), DataError) << "its own hash no longer fits";
}

TEST_F(Prepare, KeepsOldDataAfterAFailure) {
  prepare(set());
  DataSet failing = set("other", 2);
  failing.convert = [](const Conversion& conversion) -> Json {
    write(conversion.output / "a.txt", "half");
    throw InterruptedError("stopped");
  };
  EXPECT_THROW(prepare(failing), InterruptedError);
  EXPECT_EQ(read_file(home_ / "toy/a.txt"), "content");
  EXPECT_EQ(names(), std::vector<std::string>{"toy"});
  fs::remove_all(home_ / "toy");
  EXPECT_THROW(prepare(failing), InterruptedError);
  EXPECT_EQ(names(), std::vector<std::string>{}) << "nothing half written";
}

TEST_F(Prepare, ClearsWhatAKilledOneLeft) {
  make_folder(home_ / ".toy.unfinished/output");
  write(home_ / ".toy.unfinished/output/old.txt", "from before");
  prepare(set());
  EXPECT_FALSE(fs::exists(home_ / "toy/old.txt"));
  EXPECT_EQ(names(), std::vector<std::string>{"toy"});
}

TEST(Catalogue, DescribesEveryDataSet) {
  for (const DataSet& data : data_sets()) {
    EXPECT_FALSE(data.summary.empty() || data.licence.empty() || data.layout.empty()) << data.name;
    EXPECT_FALSE(data.sources.empty()) << data.name;
    EXPECT_TRUE(data.convert) << data.name;
    for (const Source& source : data.sources) {
      const bool npm = source.kind == Source::Kind::Npm;
      EXPECT_EQ(source.sha256.size(), npm ? 64U : 0U) << data.name;
      EXPECT_EQ(source.files.empty(), npm) << data.name;
      for (const SourceFile& file : source.files) EXPECT_EQ(file.sha256.size(), 64U) << file.path;
    }
  }
  EXPECT_THROW(data_set_named("stou"), UsageError);
}
