#include "run/evidence.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "record/keys.h"
#include "record/stream.h"
#include "run/node_facts.h"

using namespace assay;

namespace {

Record evidence_metric(int64_t step, double loss) {
  Record record;
  record.type = Record::Type::Metrics;
  record.step = {{1, step}};
  record.data = {{keys::kGlobalStep, step}, {keys::kTrainLoss, loss}};
  return record;
}

Record evidence_event(const char* name, Json data = Json::object()) {
  Record record;
  record.type = Record::Type::Event;
  record.name = name;
  record.data = std::move(data);
  return record;
}

Record evidence_result(double accuracy) {
  Record record;
  record.type = Record::Type::Result;
  record.data = {{keys::kFinalAccuracy, accuracy}};
  return record;
}

class EvidenceTest : public ::testing::Test {
 protected:
  EvidenceTest() {
    Step step;
    step.name = "train";
    step.ranks.nproc = 2;
    run_.plan.steps.push_back(step);
    make_folder(folder_.path() / "steps/1-train");
  }
  TempFolder folder_;
  RunRecord run_{.path = folder_.path(), .plan = {}, .state = {}};
};

}  // namespace

TEST(WithoutVoided, DropsMetricsAndEventsBeyondTheCheckpoint) {
  const auto kept = without_voided({evidence_metric(1, 3), evidence_metric(2, 2),
                                    evidence_event(keys::kCheckpoint, {{keys::kGlobalStep, 2}}),
                                    evidence_event(keys::kReplicaDiffers, {{keys::kStep, 2}}),
                                    evidence_event(keys::kFailure, {{keys::kMessage, "lost"}}),
                                    evidence_event(keys::kResumed, {{keys::kGlobalStep, 1}}), evidence_metric(2, 5)});
  ASSERT_EQ(kept.size(), 4u);
  EXPECT_EQ(kept[0].data[keys::kTrainLoss], 3);
  EXPECT_EQ(kept[1].name, keys::kFailure) << "it was not about a step, and it happened";
  EXPECT_EQ(kept[2].name, keys::kResumed);
  EXPECT_EQ(kept[3].data[keys::kTrainLoss], 5);
}

TEST(WithoutVoided, DropsTheReportOfAnAttemptThatWasRepeated) {
  const auto kept = without_voided({evidence_metric(1, 3), evidence_result(0.5), evidence_event(keys::kFinished),
                                    evidence_event(keys::kInitStart), evidence_result(0.7)});
  ASSERT_EQ(kept.size(), 3u) << "metrics stay until a checkpoint is named";
  EXPECT_EQ(kept[2].data[keys::kFinalAccuracy], 0.7);
}

TEST(WithoutVoided, SurvivesRecordsOfOthers) {
  Record odd = evidence_event(keys::kResumed, Json::array({1}));
  Record text = evidence_event(keys::kResumed, {{keys::kGlobalStep, "one"}});
  EXPECT_EQ(without_voided({odd, text, evidence_metric(1, 3)}).size(), 3u);
}

TEST_F(EvidenceTest, ReadsEveryRankOnceWithoutWhatIsVoid) {
  for (const auto& [rank, name] : std::map<int, std::string>{{0, "records.jsonl"}, {1, "records.rank1.jsonl"}}) {
    RecordWriter writer(folder_.path() / "steps/1-train" / name, rank);
    writer.write(evidence_metric(2, 9));
    writer.write(evidence_event(keys::kResumed, {{keys::kGlobalStep, 1}}));
    writer.write(evidence_metric(2, rank));
  }
  const RunEvidence evidence(run_);
  const auto ranks = evidence.ranks(run_.plan.steps[0]);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[1].size(), 2u);
  EXPECT_EQ(ranks[1][1].data[keys::kTrainLoss], 1);
  EXPECT_EQ(evidence.records_files("steps/1-train"),
            (std::vector<std::string>{"steps/1-train/records.jsonl", "steps/1-train/records.rank1.jsonl"}));
  fs::remove_all(folder_.path() / "steps");
  EXPECT_EQ(evidence.ranks(run_.plan.steps[0])[0].size(), 2u) << "what was read stays";
  EXPECT_TRUE(evidence.records("steps/2-none/records.jsonl").empty());
}

TEST_F(EvidenceTest, KnowsTheEndOfAStepFromTheJournal) {
  EXPECT_FALSE(RunEvidence(run_).end_of("steps/1-train"));
  StepState& state = run_.state.steps["train"];
  state.outcome = Outcome::Error;
  state.reason = "exit code 4";
  EXPECT_EQ(RunEvidence(run_).end_of("steps/1-train")->reason, "exit code 4");
  EXPECT_FALSE(RunEvidence(run_).end_of("steps/1-other"));
  state.running = true;
  EXPECT_FALSE(RunEvidence(run_).end_of("steps/1-train")) << "another attempt runs";
}

TEST_F(EvidenceTest, ReadsWhoANodeWas) {
  const auto step = folder_.path() / "steps/1-train";
  EXPECT_FALSE(read_node_facts(step, 0));
  write_file_atomic(step / "state.node0.json", R"({"host": "node1", "environment": {"host": {}}, "pid": 5})");
  EXPECT_EQ(read_node_facts(step, 0)->host, "node1");
  EXPECT_TRUE(read_node_facts(step, 0)->environment.is_object());
  write_file_atomic(step / "state.node0.json", R"({"pid": 5})");
  EXPECT_THROW(read_node_facts(step, 0), DataError);
  write_file_atomic(step / "state.node0.json", "{torn");
  EXPECT_THROW(read_node_facts(step, 0), DataError);
}
