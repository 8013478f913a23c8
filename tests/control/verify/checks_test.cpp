#include "verify/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "formats/safetensors.h"
#include "record/keys.h"
#include "record/stream.h"
#include "run/evidence.h"

using namespace assay;

namespace {

class ChecksTest : public ::testing::Test {
 protected:
  void write_losses(const std::string& name, const std::vector<double>& losses) {
    RecordWriter writer(folder_.path() / name);
    for (size_t i = 0; i < losses.size(); ++i) {
      Record record;
      record.type = Record::Type::Metrics;
      record.step = {{1, static_cast<int64_t>(i + 1)}};
      record.data = {{keys::kTrainLoss, json_number(losses[i])}, {keys::kGlobalStep, i + 1}};
      writer.write(record);
    }
  }
  void write_event(const std::string& name, const std::string& event, Json data) {
    RecordWriter writer(folder_.path() / name);
    Record record;
    record.type = Record::Type::Event;
    record.name = event;
    record.data = std::move(data);
    writer.write(record);
  }
  void write_result(const std::string& name, const Json& data) {
    RecordWriter writer(folder_.path() / name);
    Record record;
    record.type = Record::Type::Result;
    record.name = "case";
    record.data = data;
    writer.write(record);
  }
  void write_predictions(const std::string& name, const std::vector<float>& values, int64_t rows, int64_t columns) {
    write_predictions(name, values, {rows, columns}, {rows});
  }
  void write_predictions(const std::string& name, const std::vector<float>& values, const std::vector<int64_t>& shape,
                         const std::vector<int64_t>& label_shape) {
    int64_t num_labels = 1;
    for (const int64_t extent : label_shape) num_labels *= extent;
    const std::vector<int64_t> labels(static_cast<size_t>(num_labels), 0);
    write_safetensors(
        folder_.path() / name,
        {{"logits", "F32", shape, reinterpret_cast<const std::byte*>(values.data()), values.size() * 4},
         {"labels", "I64", label_shape, reinterpret_cast<const std::byte*>(labels.data()), labels.size() * 8}});
  }
  Verdict check(const Json& spec) { return Check::parse(spec).judge(RunEvidence(run_)); }
  TempFolder folder_;
  RunRecord run_{.path = folder_.path(), .plan = {}, .state = {}};
};

const Json kPredictions = {{"type", "same_predictions"}, {"measured", "a"},   {"baseline", "b"},
                           {"tensor", "logits"},         {"max_diff2", 1e-4}, {"min_top1", 0.99}};

}  // namespace

TEST_F(ChecksTest, JudgesAFallingLoss) {
  const Json spec = {{"type", "loss_falls"}, {"records", "r"}};
  EXPECT_EQ(check(spec).outcome, Outcome::Invalid) << "no file: nothing was measured";
  write_losses("r", {2.0, 1.5, 1.0, 0.5});
  EXPECT_EQ(check(spec).outcome, Outcome::Pass);
  EXPECT_EQ(check(spec).reason, "from 2.0000 to 0.5000");
  fs::remove(folder_.path() / "r");
  write_losses("r", {0.5, 1.0, 2.0});
  EXPECT_EQ(check(spec).outcome, Outcome::Fail);
  fs::remove(folder_.path() / "r");
  write_losses("r", {2.0, std::nan(""), 0.5});
  EXPECT_EQ(check(spec).outcome, Outcome::Fail);
  EXPECT_EQ(check(spec).reason, "loss 2 of 3 is nan");
}

TEST_F(ChecksTest, VoidsWhatLiesBeyondTheResumedCheckpoint) {
  const Json spec = {{"type", "loss_falls"}, {"records", "r"}};
  write_losses("r", {2.0, 1.5, std::nan("")});
  write_event("r", keys::kResumed, {{keys::kGlobalStep, 2}});
  EXPECT_EQ(check(spec).outcome, Outcome::Pass);
  EXPECT_EQ(check(spec).figures["losses"], 2);
}

TEST_F(ChecksTest, JudgesTheTarget) {
  const Json spec = {
      {"type", "target"}, {"records", "r"}, {"key", "final_accuracy"}, {"goal", "maximize"}, {"value", 0.9}};
  write_result("r", {{"final_accuracy", 0.95}});
  EXPECT_EQ(check(spec).outcome, Outcome::Pass);
  write_result("r", {{"final_accuracy", 0.9}});
  EXPECT_EQ(check(spec).outcome, Outcome::Pass);
  EXPECT_EQ(check(spec).reason, "0.9000 >= 0.9000");
  write_result("r", {{"final_accuracy", 0.85}});
  EXPECT_EQ(check(spec).outcome, Outcome::Fail) << "the last result counts";
  write_result("r", {{"final_accuracy", "NaN"}});
  EXPECT_EQ(check(spec).outcome, Outcome::Fail);
  write_result("r", {{"final_accuracy", nullptr}});
  EXPECT_EQ(check(spec).outcome, Outcome::Invalid) << "null is not measured, and not 0";
  Json minimize = spec;
  minimize["goal"] = "minimize";
  write_result("r", {{"final_accuracy", 0.85}});
  EXPECT_EQ(check(minimize).outcome, Outcome::Pass);
}

TEST_F(ChecksTest, ComparesPredictions) {
  write_predictions("b", {1, 2, 3, 3, 2, 1}, 2, 3);
  write_predictions("a", {1, 2, 3, 3, 2, 1}, 2, 3);
  EXPECT_EQ(check(kPredictions).outcome, Outcome::Pass);
  write_predictions("a", {1, 2.001f, 3, 3, 2, 1}, 2, 3);
  EXPECT_EQ(check(kPredictions).outcome, Outcome::Fail) << "diff2 is 1.9e-4";
  write_predictions("a", {1, 2, 3, 2.5f, 2.6f, 1}, 2, 3);
  EXPECT_EQ(check(kPredictions).outcome, Outcome::Fail);
  EXPECT_EQ(check(kPredictions).figures["top1_agreement"], 0.5);
  write_predictions("a", {1, 2, NAN, 3, 2, 1}, 2, 3);
  EXPECT_EQ(check(kPredictions).outcome, Outcome::Fail);
  write_predictions("a", {1, 2, 3, 3, 2, 1}, 3, 2);
  EXPECT_EQ(check(kPredictions).outcome, Outcome::Invalid);
  write_predictions("a", {}, 0, 3);
  write_predictions("b", {}, 0, 3);
  EXPECT_EQ(check(kPredictions).outcome, Outcome::Invalid) << "nothing compared is not a pass";
  std::ofstream(folder_.path() / "a") << "garbage";
  EXPECT_EQ(check(kPredictions).outcome, Outcome::Invalid);
}

TEST_F(ChecksTest, ComparesPredictionsWithoutClassesByElement) {
  const std::vector<float> map = {0.9f, 0.1f, 0.2f, 0.8f};
  const std::vector<float> near = {0.9f, 0.1f, 0.8f, 0.79999f};  // another top element in the second row
  write_predictions("b", map, {1, 1, 2, 2}, {1, 5});
  write_predictions("a", map, {1, 1, 2, 2}, {1, 5});
  EXPECT_EQ(check(kPredictions).outcome, Outcome::Pass);
  EXPECT_EQ(check(kPredictions).figures["top1_agreement"], nullptr);
  EXPECT_EQ(check(kPredictions).reason, "relative difference 0.0e+00 (limit 1e-04)");
  write_predictions("a", near, {1, 1, 2, 2}, {1, 5});
  EXPECT_EQ(check(kPredictions).outcome, Outcome::Fail);
  // Two tokens, each with a choice of two.
  write_predictions("b", {0.9f, 0.1f, 0.49999f, 0.5f}, {1, 2, 2}, {1, 2});
  write_predictions("a", {0.9f, 0.1f, 0.5f, 0.49999f}, {1, 2, 2}, {1, 2});
  EXPECT_EQ(check(kPredictions).outcome, Outcome::Fail) << "nearly equal, but another class";
  EXPECT_EQ(check(kPredictions).figures["top1_agreement"], 0.5);
}

TEST_F(ChecksTest, ComparesResultsByAbsoluteDifference) {
  const Json spec = {
      {"type", "same_result"}, {"measured", "a"}, {"baseline", "b"}, {"key", "loss"}, {"max_relative", 0.01}};
  write_result("b", {{"loss", 1.0}});
  write_result("a", {{"loss", 1.005}});
  EXPECT_EQ(check(spec).outcome, Outcome::Pass);
  write_result("a", {{"loss", 0.61}});
  EXPECT_EQ(check(spec).outcome, Outcome::Fail) << "a signed difference would pass this";
  write_result("b", {{"loss", 0.0}});
  EXPECT_EQ(check(spec).outcome, Outcome::Fail);
  write_result("a", {{"loss", 0.0}});
  EXPECT_EQ(check(spec).outcome, Outcome::Pass);
}

TEST_F(ChecksTest, ComparesWeights) {
  const Json spec = {{"type", "same_weights"}, {"records", {"a", "b"}}};
  write_result("a", {{"hashes", {{"weights", "abcdef0123456789"}}}});
  EXPECT_EQ(check(spec).outcome, Outcome::Invalid);
  write_result("b", {{"hashes", {{"weights", "abcdef0123456789"}}}});
  EXPECT_EQ(check(spec).outcome, Outcome::Pass);
  write_result("b", {{"hashes", {{"weights", "other"}}}});
  EXPECT_EQ(check(spec).outcome, Outcome::Fail);
  write_result("b", {{"hashes", nullptr}});
  EXPECT_EQ(check(spec).outcome, Outcome::Invalid);
}

TEST_F(ChecksTest, VoidsTheResultOfARepeatedAttempt) {
  const Json spec = {
      {"type", "target"}, {"records", "r"}, {"key", "final_accuracy"}, {"goal", "maximize"}, {"value", 0.9}};
  write_result("r", {{"final_accuracy", 0.95}});
  write_event("r", keys::kInitStart, Json::object());
  EXPECT_EQ(check(spec).outcome, Outcome::Invalid) << "the attempt that counts reported nothing";
}

namespace {

std::string check_complaint(const Json& check) {
  try {
    Check::parse(check);
  } catch (const DataError& error) {
    return error.what();
  }
  return "(none)";
}

}  // namespace

TEST(Check, RefusesWhatIsUnknownOrBroken) {
  EXPECT_EQ(check_complaint({{"type", "traget"}}), "no check 'traget' (did you mean 'target'?)");
  EXPECT_EQ(check_complaint({{"type", "target"}}), "check 'target': records is missing");
  EXPECT_EQ(check_complaint(Json::array()), "check: must be an object");
  EXPECT_EQ(check_complaint(nullptr), "check: must be an object");
  EXPECT_EQ(check_complaint({{"type", 5}, {"name", "mine"}}), "check: type must be a text");
  const Json good = {{"type", "loss_falls"}, {"records", "r"}};
  EXPECT_EQ(check_complaint(good), "(none)");
  const auto with = [&](const char* key, const Json& value) {
    Json changed = good;
    changed[key] = value;
    return check_complaint(changed);
  };
  EXPECT_EQ(with("reocrds", "r"), "check 'loss_falls': reocrds is not known here");
  EXPECT_EQ(with("records", 5), "check 'loss_falls': records must be a text");
  EXPECT_EQ(with("cell", {"row"}), "check 'loss_falls': cell must be a row and a column");
  EXPECT_EQ(Check::parse(good).to_json(), good);
}

TEST(Check, NamesEveryTypeInItsOwnFile) {
  for (const std::string& type : check_types()) {
    const fs::path file = fs::path(ASSAY_SOURCE_DIR) / "src/control/verify/checks" / (type + ".cpp");
    ASSERT_TRUE(fs::exists(file)) << file;
    EXPECT_THAT(read_file(file), testing::HasSubstr("{\"type\": \"" + type + "\"")) << "its options are described";
  }
}
