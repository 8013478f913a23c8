#include "engine/checkpoint.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "data/random.h"
#include "engine/tensor_file.h"
#include "toy.h"

namespace assay {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest()
      : module_(toy_module()), optimizer_(module_->configure_optimizers({.name = "Adam", .clip_norm = {}})) {}

  fs::path save(int64_t step) {
    state_.global_step = step;
    return save_checkpoint(folder_.path(), *module_, *optimizer_, state_, {"toy", "hash"});
  }
  std::optional<ResumedCheckpoint> newest() {
    damaged_.clear();
    return load_newest_checkpoint(folder_.path(), *module_, *optimizer_,
                                  [&](const fs::path& path, const std::string&) { damaged_.push_back(path); });
  }

  TempFolder folder_{"checkpoint"};
  std::unique_ptr<ToyModule> module_;
  std::unique_ptr<Optimizer> optimizer_;
  TrainingState state_;
  std::vector<fs::path> damaged_;
};

TEST_F(CheckpointTest, HoldsWeightsOptimizerRandomStateAndPosition) {
  state_.epoch = 2;
  state_.batch = 7;
  state_.metric = 0.1 + 0.2;
  state_.window_loss = 1.0 / 3;
  const fs::path path = save(30);
  EXPECT_EQ(path.filename(), "epoch_2_step_30");
  const std::string weights = hash_of(state_of(module_->model()));
  const torch::Tensor drawn = torch::rand({5});
  {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor parameter : module_->model().parameters()) parameter.zero_();
  }
  const LoadedCheckpoint loaded = load_checkpoint(path, *module_, *optimizer_);
  EXPECT_EQ(loaded.state, state_);
  EXPECT_EQ(loaded.label.case_name, "toy");
  EXPECT_EQ(loaded.weights_hash, weights);
  EXPECT_EQ(hash_of(state_of(module_->model())), weights);
  EXPECT_TRUE(torch::rand({5}).equal(drawn));
  EXPECT_EQ(optimizer_->num_updates(), 30);
}

TEST_F(CheckpointTest, NewestValidOneIsTakenAndDamagedOnesAreNamed) {
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

TEST_F(CheckpointTest, ADamagedCheckpointChangesNothing) {
  const fs::path path = save(1);
  const std::vector<std::string> names = {"meta.json", "model.safetensors", "optimizer.safetensors"};
  std::map<std::string, std::string> whole;
  for (const std::string& name : names) whole[name] = read_file(path / name);
  const std::string weights = hash_of(state_of(module_->model()));
  KeyedRandom random(1, 2);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string& name = names[random.below(3)];
    std::string bytes = whole[name];
    if (random.below(3) == 0) {
      bytes.resize(random.below(bytes.size()));
    } else {
      bytes[random.below(bytes.size())] ^= static_cast<char>(1 + random.below(255));
    }
    write_file_atomic(path / name, bytes);
    try {
      load_checkpoint(path, *module_, *optimizer_);
    } catch (const DataError&) {
      ++refused;
    }
    EXPECT_EQ(hash_of(state_of(module_->model())), weights);
    write_file_atomic(path / name, whole[name]);
  }
  EXPECT_GT(refused, 200);  // changes of blanks and of values in meta.json may pass
}

TEST(TensorFile, FaultsNameTheTensor) {
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
