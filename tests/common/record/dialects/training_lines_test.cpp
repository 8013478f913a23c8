#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>

#include "../random_records.h"
#include "record/log_file.h"
#include "record/stream.h"

using namespace assay;

namespace {

class TrainingLines : public testing::Test {
 protected:
  TrainingLines() {
    ::setenv("TZ", "CST-8", 1);
    ::tzset();
  }
  ~TrainingLines() override {
    ::unsetenv("TZ");
    ::tzset();
  }
};

constexpr char kFleetxTrain[] =
    "[train] epoch: [0/1], batch: [10/500000], loss: 10.931658745, avg_batch_cost: 0.27541 sec, speed: 3.63 step/s, "
    "ips_total: 29743 tokens/s, ips: 3718 tokens/s, loss_scale: 32768.000000000, learning rate: 2.77778e-08, "
    "found_inf: 0";
constexpr char kFleetxEval[] =
    "[eval] epoch: 0, batch: 99/1000, loss: 9.5, avg_eval_cost: 0.10000 sec, speed: 10.00 step/s";
constexpr char kOcr[] =
    "epoch: [1/24], global_step: 120, lr: 0.001, loss: 2.3, avg_reader_cost: 0.00022 s, avg_batch_cost: 0.08772 s, "
    "avg_samples: 3.0, ips: 34.19967 samples/s, eta: 0:10:28, max_mem_reserved: 1886 MB";
constexpr char kClas[] =
    "[Train][Epoch 1/2][Iter: 0/10]lr(Cls): 0.1, loss: 2.1, batch_cost: 0.2s, reader_cost: 0.1, ips: 30.2 samples/s, "
    "eta: 0:01:00";
constexpr char kSeg[] =
    "[TRAIN] epoch: 1, iter: 10/20, loss: 2.1, lr: 0.01, batch_cost: 0.2, reader_cost: 0.1, ips: 30.2 samples/sec | "
    "ETA "
    "00:01:00";

struct Read {
  Record metrics;
  std::map<std::string, std::string> units;
  std::string dialect;
};

Read read(const std::string& line) {
  const LogContents contents = parse_log(line + "\n", "x");
  EXPECT_EQ(contents.num_unknown, 0u) << line;
  Read result;
  result.dialect = contents.main_dialect();
  for (const Record& record : contents.records) {
    if (record.type == Record::Type::Metadata) {
      result.units[record.name] = record.data["unit"].get<std::string>();
    } else {
      result.metrics = record;
    }
  }
  return result;
}

using Step = std::vector<int64_t>;

}  // namespace

TEST_F(TrainingLines, ReadsFleetx) {
  const Read train = read(kFleetxTrain);
  EXPECT_EQ(train.dialect, "fleetx");
  EXPECT_EQ(train.metrics.step, (Step{0, 10}));
  EXPECT_EQ(train.metrics.data.dump(),
            R"({"num_epochs":1,"num_batches":500000,"train.loss":10.931658745,"avg_batch_cost":0.27541,"speed":3.63,)"
            R"("ips_total":29743,"train.ips":3718,"loss_scale":32768.0,"train.lr":2.77778e-08,"found_inf":0})");
  EXPECT_EQ(train.units,
            (std::map<std::string, std::string>{
                {"avg_batch_cost", "sec"}, {"speed", "step/s"}, {"ips_total", "tokens/s"}, {"train.ips", "tokens/s"}}));
  const Read eval = read(std::string("[2022-09-21 05:30:24,123] [    INFO] - ") + kFleetxEval);
  EXPECT_EQ(eval.metrics.step, (Step{0, 99}));
  EXPECT_EQ(eval.metrics.data.dump(), R"({"num_batches":1000,"val.loss":9.5,"avg_eval_cost":0.1,"speed":10.0})");
  EXPECT_EQ(eval.metrics.time_us, 1663709424123000);  // 2022-09-20 21:30:24.123 UTC
}

TEST_F(TrainingLines, ReadsPaddleOcr) {
  const Read plain = read(kOcr);
  EXPECT_EQ(plain.dialect, "paddleocr");
  EXPECT_EQ(plain.metrics.step, (Step{1, 120}));
  EXPECT_EQ(
      plain.metrics.data.dump(),
      R"({"num_epochs":24,"global_step":120,"train.lr":0.001,"train.loss":2.3,"train.data_time":0.00022,)"
      R"("avg_batch_cost":0.08772,"avg_samples":3.0,"train.ips":34.19967,"eta":"0:10:28","max_mem_reserved":1886})");
  EXPECT_EQ(plain.units.at("train.ips"), "samples/s");
  EXPECT_EQ(plain.units.at("max_mem_reserved"), "MB");

  const Read days = read(
      "[2025/09/24 12:13:19] ppocr INFO: epoch: [3/500], global_step: 500, lr: 0.005000, loss: nan, avg_batch_cost: "
      "2.03538 s, ips: 7.86095 samples/s, eta: 2 days, 20:01:28, max_mem_reserved: 11326 MB");
  EXPECT_EQ(days.metrics.data["eta"], "2 days, 20:01:28");
  EXPECT_EQ(days.metrics.data["train.loss"], "NaN");
  EXPECT_EQ(days.metrics.data["max_mem_reserved"], 11326);
  EXPECT_EQ(days.metrics.time_us, 1758687199000000);  // 04:13:19 UTC

  const Read older = read(
      "[2020/11/16 11:11:26] root INFO: epoch: [0/100], iter: 10, lr: 0.001000, acc: 0.507812, loss: 0.698222, "
      "reader_cost: 6.01444 s, batch_cost: 6.29982 s, samples: 5632, ips: 89.39943");
  EXPECT_EQ(older.metrics.step, (Step{0, 10}));
  EXPECT_EQ(older.metrics.data["acc"], 0.507812);
  EXPECT_EQ(older.metrics.data["train.data_time"], 6.01444);

  const Read eval = read("[2022/10/10 14:37:01] ppocr INFO: cur metric, acc: 0.5, norm_edit_dis: 0.95, fps: 100.0");
  EXPECT_EQ(eval.metrics.data.dump(), R"({"acc":0.5,"norm_edit_dis":0.95,"fps":100.0})");
}

TEST_F(TrainingLines, ReadsPaddleClas) {
  const Read train = read(kClas);
  EXPECT_EQ(train.dialect, "paddleclas");
  EXPECT_EQ(train.metrics.step, (Step{1, 0}));
  EXPECT_EQ(train.metrics.data.dump(),
            R"({"num_epochs":2,"num_iters":10,"train.lr":0.1,"train.loss":2.1,"batch_cost":0.2,"train.data_time":0.1,)"
            R"("train.ips":30.2,"eta":"0:01:00"})");
  EXPECT_EQ(train.units.at("batch_cost"), "s");
  const Read two = read(
      "[2022/05/05 12:00:00] ppcls INFO: [Train][Epoch 1/2][Iter: 3/10]lr(Momentum): 0.1, lr(SGD): 0.2, CELoss: 7.1, "
      "loss: 7.2");
  EXPECT_EQ(two.metrics.data["train.lr"], 0.1);
  EXPECT_EQ(two.metrics.data["lr(SGD)"], 0.2);
  const Read average = read("[Eval][Epoch 1][Avg]CELoss: 6.9, loss: 6.8, top1: 0.1");
  EXPECT_EQ(average.metrics.step, (Step{1}));
  EXPECT_EQ(average.metrics.data.dump(), R"({"CELoss":6.9,"val.loss":6.8,"top1":0.1})");
}

TEST_F(TrainingLines, ReadsPaddleSeg) {
  const Read train = read(std::string("2021-03-30 06:55:57 [INFO]\t") + kSeg);
  EXPECT_EQ(train.dialect, "paddleseg");
  EXPECT_EQ(train.metrics.step, (Step{1, 10}));
  EXPECT_EQ(train.metrics.time_us, 1617058557000000);
  EXPECT_EQ(
      train.metrics.data.dump(),
      R"({"num_iters":20,"train.loss":2.1,"train.lr":0.01,"batch_cost":0.2,"train.data_time":0.1,"train.ips":30.2,)"
      R"("eta":"00:01:00","global_step":10})");
  EXPECT_EQ(train.units.at("train.ips"), "samples/sec");
  const Read eval =
      read("2023-10-13 17:34:19 [INFO]\t[EVAL] #Images: 400 mIoU: 0.4759 Acc: 0.9517 Kappa: nan Dice: 0.4876");
  EXPECT_EQ(eval.metrics.data.dump(), R"({"#Images":400,"mIoU":0.4759,"Acc":0.9517,"Kappa":"NaN","Dice":0.4876})");
}

TEST_F(TrainingLines, IgnoresProse) {
  const LogContents contents = parse_log(
      "Starting epoch: 3 now\n[train] loading data\nload [Train] set\n[EVAL] Class IoU:\nepoch: [1/2] done\nips: 3\n",
      "x");
  EXPECT_EQ(contents.num_unknown, 6u);
}

TEST_F(TrainingLines, ReportsUnitsOnce) {
  const LogContents contents = parse_log(std::string(kClas) + "\n" + kClas + "\n", "x");
  EXPECT_EQ(contents.records.size(), 4u);  // two units, two lines
}

TEST_F(TrainingLines, SurvivesMutatedLines) {
  RandomRecords random(51);
  const std::vector<std::string> lines{
      kFleetxTrain,
      kFleetxEval,
      kOcr,
      kClas,
      kSeg,
      "[EVAL] #Images: 400 mIoU: 0.4759",
      "DLL 2026-11-15 19:43:05.339754 - (0, 5) loss : 0.1  speed : 10.000 img/s",
      "TCAPPDLL 2025-05-15 14:20:10.932350 - Epoch: 0 Iteration: 1  rank : 0  train.ips : 16221.6 imgs/s"};
  for (int i = 0; i < 40000; ++i) {
    const std::string line = mutate(lines[random.pick(lines.size())], random) + "\n";
    for (const Record& record : parse_log(line, "x").records) to_record_line(record);
  }
}
