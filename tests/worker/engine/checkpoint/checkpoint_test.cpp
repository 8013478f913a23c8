#include "engine/checkpoint/checkpoint_writer.h"

#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "../toy.h"
#include "base/error.h"
#include "base/files.h"
#include "data/random.h"
#include "engine/checkpoint/tensor_file.h"

namespace assay {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest()
      : module_(toy_module()), optimizer_(module_->configure_optimizers({.name = "Adam", .clip_norm = {}})) {}

  fs::path save(int64_t step) {
    state_.global_step = step;
    return write_checkpoint(folder_.path(), take_snapshot(trained(), state_), label_).path;
  }
  std::optional<ResumedCheckpoint> newest() {
    damaged_.clear();
    return load_newest_checkpoint(folder_.path(), trained(), label_.config_hash,
                                  [&](const fs::path& path, const std::string&) { damaged_.push_back(path); });
  }

  Trained trained() { return {*module_, *optimizer_, topology_, exchange_, {&part_}}; }

  // What a loss scaler would be.
  struct Part final : StatePart {
    double scale = 1;
    torch::Tensor average = torch::zeros({2});
    std::string name() const override { return "scaler"; }
    Json values() const override { return {{"scale", scale}}; }
    NamedTensors tensors() const override { return {{"average", average}}; }
    void load(const Json& values, const std::map<std::string, torch::Tensor>& tensors) override {
      if (!values.contains("scale")) throw DataError("no scale");
      scale = values.at("scale").get<double>();
      average = tensors.at("average").clone();
    }
  };

  TempFolder folder_{"checkpoint"};
  CheckpointLabel label_{"toy", "hash", {{"case", "toy"}}};
  Part part_;
  std::unique_ptr<ToyModule> module_;
  std::unique_ptr<Optimizer> optimizer_;
  Topology topology_;
  StateExchange exchange_;
  TrainingState state_;
  std::vector<fs::path> damaged_;
};

TEST_F(CheckpointTest, HoldsWeightsOptimizerRandomStateAndPosition) {
  state_.epoch = 2;
  state_.batch = 7;
  state_.metric = 0.1 + 0.2;
  state_.window_loss = 1.0 / 3;
  state_.recent_losses = {0.1 + 0.2, 1e-300};
  state_.best = {{.checkpoint = "epoch_1_step_20", .global_step = 20, .value = 0.1 + 0.2}};
  state_.evaluations_without_better = 3;
  part_.scale = 1024;
  part_.average.fill_(1);
  module_->backward(module_->training_step(toy_loader()->dataset().gather(std::vector<int64_t>{0, 1}, 0)));
  optimizer_->step({.learning_rate = 0.1});
  const fs::path path = save(30);
  EXPECT_EQ(path.filename(), "epoch_2_step_30");
  const std::string weights = hash_of(state_of(module_->model()));
  const torch::Tensor drawn = torch::rand({5});
  {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor parameter : module_->model().parameters()) parameter.zero_();
  }
  part_.scale = 0;
  part_.average.zero_();
  const LoadedCheckpoint loaded = load_checkpoint(path, trained());
  EXPECT_EQ(loaded.state, state_);
  EXPECT_EQ(loaded.label.case_name, "toy");
  EXPECT_EQ(loaded.weights_hash, weights);
  EXPECT_EQ(hash_of(state_of(module_->model())), weights);
  EXPECT_TRUE(torch::rand({5}).equal(drawn));
  EXPECT_EQ(optimizer_->num_updates(), 1);
  EXPECT_EQ(part_.scale, 1024);
  EXPECT_TRUE(part_.average.equal(torch::ones({2})));
  EXPECT_EQ(read_json_file(path / "config.json"), label_.config);
  EXPECT_EQ(load_tensors(path / "model.safetensors").metadata.at("weights_hash"), weights);
}

TEST_F(CheckpointTest, TakesASnapshotOfItsMoment) {
  const std::string weights = hash_of(state_of(module_->model()));
  const Snapshot snapshot = take_snapshot(trained(), state_);
  {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor parameter : module_->model().parameters()) parameter.zero_();
  }
  part_.average.fill_(5);
  EXPECT_EQ(write_checkpoint(folder_.path(), snapshot, label_).weights_hash, weights);
  newest();
  EXPECT_EQ(hash_of(state_of(module_->model())), weights);
  EXPECT_TRUE(part_.average.equal(torch::zeros({2})));
}

TEST_F(CheckpointTest, ReportsMissingStateAndChangesNothing) {
  const fs::path path =
      write_checkpoint(folder_.path(), take_snapshot({*module_, *optimizer_, topology_, exchange_}, state_), label_)
          .path;
  {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor parameter : module_->model().parameters()) parameter.zero_();
  }
  const std::string weights = hash_of(state_of(module_->model()));
  try {
    load_checkpoint(path, trained());
    FAIL() << "accepted";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("scaler"), std::string::npos) << error.what();
  }
  EXPECT_EQ(hash_of(state_of(module_->model())), weights);
}

TEST_F(CheckpointTest, KeepsTheLastAndTheBest) {
  for (const int64_t step : {1, 2, 3, 4, 5}) save(step);
  save(9);  // a damaged one, say, that resuming passed over
  state_.global_step = 5;
  state_.best = {{.checkpoint = "epoch_0_step_2", .global_step = 2, .value = 0.7}};
  rotate_checkpoints(folder_.path(), state_, 2);
  std::vector<std::string> left;
  for (const fs::path& path : list_checkpoints(folder_.path())) left.push_back(path.filename());
  EXPECT_EQ(left, (std::vector<std::string>{"epoch_0_step_9", "epoch_0_step_5", "epoch_0_step_4", "epoch_0_step_2"}));
  for (const auto& entry : fs::directory_iterator(folder_.path())) EXPECT_NE(entry.path().filename().string()[0], '.');
}

TEST_F(CheckpointTest, ReportsWhatTheWriterWroteAndWhatWentWrong) {
  CheckpointWriter writer(folder_.path(), label_, {});
  EXPECT_FALSE(writer.finished());
  state_.global_step = 1;
  writer.start(take_snapshot(trained(), state_));
  state_.global_step = 2;
  writer.start(take_snapshot(trained(), state_));  // waits for the first
  EXPECT_EQ(writer.wait()->global_step, 1);
  EXPECT_EQ(writer.wait()->path, folder_.path() / "epoch_0_step_2");
  EXPECT_FALSE(writer.wait());

  write_file_atomic(folder_.path() / "file", "");
  CheckpointWriter broken(folder_.path() / "file", label_, {});
  broken.start(take_snapshot(trained(), state_));
  EXPECT_THROW(broken.start(take_snapshot(trained(), state_)), InfrastructureError);
  EXPECT_FALSE(broken.wait());
  broken.start(take_snapshot(trained(), state_));
  EXPECT_THROW(broken.wait(), InfrastructureError);
}

TEST_F(CheckpointTest, LoadsPretrainedWeightsFromAFileOrACheckpoint) {
  const fs::path path = save(1);
  const std::string weights = hash_of(state_of(module_->model()));
  for (const fs::path& source : {path, path / "model.safetensors"}) {
    torch::manual_seed(99);
    ToyModule other;
    other.init();
    EXPECT_NE(hash_of(state_of(other.model())), weights);
    EXPECT_EQ(load_pretrained(source, other), weights);
    EXPECT_EQ(hash_of(state_of(other.model())), weights);
  }
  EXPECT_THROW(load_pretrained(folder_.path() / "absent", *module_), DataError);
}

TEST_F(CheckpointTest, LoadsTheNewestValidOneAndNamesDamagedOnes) {
  EXPECT_FALSE(newest());
  save(9);
  save(10);
  const fs::path damaged_weights = save(100);
  const fs::path torn_meta = save(200);
  fs::create_directory(folder_.path() / "epoch_0_step_300");
  fs::create_directory(folder_.path() / "epoch_x_step_400");
  fs::create_directory(folder_.path() / ".unfinished-epoch_0_step_500-1");
  std::string bytes = read_file(damaged_weights / "model.safetensors");
  bytes.back() ^= 1;
  write_file_atomic(damaged_weights / "model.safetensors", bytes);
  write_file_atomic(torn_meta / "meta.json", read_file(torn_meta / "meta.json").substr(0, 50));

  const auto found = newest();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->loaded.state.global_step, 10);
  EXPECT_EQ(damaged_, (std::vector<fs::path>{folder_.path() / "epoch_0_step_300", torn_meta, damaged_weights}));
  EXPECT_FALSE(fs::exists(folder_.path() / ".unfinished-epoch_0_step_500-1"));

  EXPECT_EQ(save(200), torn_meta);  // a damaged one is replaced when its step comes again
  EXPECT_EQ(newest()->loaded.state.global_step, 200);
}

TEST_F(CheckpointTest, ChangesNothingForADamagedCheckpoint) {
  const fs::path path = save(1);
  const std::vector<std::string> names = {"meta.json", "model.safetensors", "optimizer.safetensors", "config.json"};
  std::map<std::string, std::string> whole;
  for (const std::string& name : names) whole[name] = read_file(path / name);
  const std::string weights = hash_of(state_of(module_->model()));
  KeyedRandom random(1, 2);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string& name = names[random.below(names.size())];
    std::string bytes = whole[name];
    if (random.below(3) == 0) {
      bytes.resize(random.below(bytes.size()));
    } else {
      bytes[random.below(bytes.size())] ^= static_cast<char>(1 + random.below(255));
    }
    write_file_atomic(path / name, bytes);
    try {
      load_checkpoint(path, trained());
    } catch (const DataError&) {
      ++refused;
    }
    EXPECT_EQ(hash_of(state_of(module_->model())), weights);
    write_file_atomic(path / name, whole[name]);
  }
  EXPECT_GT(refused, 200);  // changes of blanks and of values in meta.json may pass
}

// Operators of libtorch wait in every thread but one until the gate opens.
struct ThreadGate {
  std::thread::id free = std::this_thread::get_id();
  std::promise<void> open;
  std::shared_future<void> opened = open.get_future().share();
  std::atomic<bool> held = false;  // an operator has waited
};
ThreadGate* the_gate = nullptr;  // libtorch's callbacks are plain functions

std::unique_ptr<at::ObserverContext> pass_gate(const at::RecordFunction&) {
  if (std::this_thread::get_id() == the_gate->free) return nullptr;
  the_gate->held = true;
  the_gate->opened.wait();
  return nullptr;
}

TEST(CheckpointWriter, WritesWhileTrainingGoesOn) {
  const TempFolder folder("checkpoint");
  const auto module = toy_module();
  Engine engine(*module, toy_options(),
                {.checkpoint_folder = folder.path(), .label = {"toy", "hash"}, .target = {}, .observers = {}});
  const int64_t indices[] = {0, 1, 2, 3};
  const Batch batch = ToyData(4).gather(indices, 0);
  const std::string saved = hash_of(state_of(module->model()));
  ThreadGate gate;
  the_gate = &gate;
  const at::CallbackHandle handle = at::addGlobalCallback(at::RecordFunctionCallback(pass_gate));
  engine.save();
  module->training_step(batch).backward();
  engine.optimizer().step({.learning_rate = 0.1});
  EXPECT_TRUE(list_checkpoints(folder.path()).empty());
  gate.open.set_value();
  engine.finish_saving();
  at::removeCallback(handle);
  EXPECT_TRUE(gate.held);
  EXPECT_NE(hash_of(state_of(module->model())), saved);
  ASSERT_EQ(list_checkpoints(folder.path()).size(), 1u);
  engine.load(list_checkpoints(folder.path())[0]);
  EXPECT_EQ(hash_of(state_of(module->model())), saved);
}

TEST(TensorFile, NamesTheTensorOfAFault) {
  const TempFolder folder("tensors");
  const auto module = toy_module();
  const auto message = [&](const std::function<void(std::map<std::string, torch::Tensor>&)>& change) {
    std::map<std::string, torch::Tensor> tensors;
    for (const auto& [name, tensor] : state_of(module->model())) tensors[name] = tensor.detach();
    change(tensors);
    try {
      load_into(module->model(), tensors, "file");
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message([](auto&) {}), "accepted");
  EXPECT_NE(message([](auto& t) { t.erase("linear.bias"); }).find("linear.bias"), std::string::npos);
  EXPECT_NE(message([](auto& t) { t["linear.bias"] = torch::zeros({4}); }).find("F32 [4]"), std::string::npos);
  EXPECT_NE(message([](auto& t) { t["linear.bias"] = torch::zeros({3}, torch::kLong); }).find("I64"),
            std::string::npos);
  EXPECT_NE(message([](auto& t) { t["linear.bios"] = torch::zeros({3}); }).find("did you mean"), std::string::npos);
}

TEST(TensorFile, KeepsEveryTypeAndLayout) {
  const TempFolder folder("tensors");
  NamedTensors tensors;
  for (const auto type : {torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16, torch::kLong, torch::kInt,
                          torch::kShort, torch::kChar, torch::kByte, torch::kBool}) {
    tensors.emplace_back(c10::toString(type), torch::arange(6).remainder(2).to(type).reshape({2, 3}));
  }
  tensors.emplace_back("scalar", torch::tensor(3.5));
  tensors.emplace_back("empty", torch::zeros({0, 4}));
  tensors.emplace_back("last", torch::rand({2, 3, 4, 5}).contiguous(torch::MemoryFormat::ChannelsLast));
  save_tensors(folder.path() / "t", tensors, {{"a", "b"}});
  const LoadedTensors loaded = load_tensors(folder.path() / "t");
  EXPECT_EQ(loaded.metadata.at("a"), "b");
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(loaded.tensors.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(loaded.tensors.at(name).equal(tensor)) << name;
  }
}

}  // namespace
}  // namespace assay
