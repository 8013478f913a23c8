#include "config/derive.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace assay {

namespace {

constexpr char kGlobalBatch[] = "Global.global_batch_size";
constexpr char kLocalBatch[] = "Global.local_batch_size";
constexpr char kMicroBatch[] = "Global.micro_batch_size";
constexpr char kAccumulate[] = "Engine.accumulate_steps";
constexpr char kDp[] = "Distributed.dp_degree";
constexpr char kMp[] = "Distributed.mp_degree";
constexpr char kPp[] = "Distributed.pp_degree";
constexpr char kVirtualPp[] = "Distributed.virtual_pp_degree";
constexpr char kSharding[] = "Distributed.sharding.sharding_degree";

class Deriver {
 public:
  Deriver(Value& tree, int world_size) : tree_(tree), world_size_(world_size) {}

  void run() {
    derive_degrees();
    derive_batches();
    derive_data();
    derive_pretrained();
    derive_warmup();
  }

 private:
  std::optional<int64_t> get(const char* path) const {
    const Value* value = tree_.find(path);
    if (!value || !value->is_int()) return std::nullopt;
    return value->as_int();
  }

  // "Global.local_batch_size = 32 (cases/resnet/case.yaml:40)"
  std::string place(const char* path) const {
    const Value* value = tree_.find(path);
    return fmt::format("{} = {} ({})", path, value->text(), value->origin().text());
  }

  void set(const std::string& path, Value value, const std::string& rule) {
    value.set_origin({kLayerDerived, rule, 0});
    tree_.set_path(path, std::move(value));
  }

  [[noreturn]] void contradiction(const std::vector<const char*>& paths, const std::string& rule) const {
    std::vector<std::string> places;
    for (const char* path : paths) places.push_back(place(path));
    throw ConfigError(fmt::format("{}: contradictory values: {}; {}", tree_.find(paths[0])->origin().text(),
                                  join(places, " and "), rule));
  }

  // Products of degrees and batch sizes from files of others must not overflow.
  int64_t product(int64_t a, int64_t b, const std::vector<const char*>& paths) const {
    int64_t out = 0;
    if (__builtin_mul_overflow(a, b, &out)) contradiction(paths, "their product is too large");
    return out;
  }

  void derive_degrees() {
    const std::vector<const char*> all = {kMp, kPp, kSharding};
    const int64_t others = product(product(*get(kMp), *get(kPp), all), *get(kSharding), all);
    const std::string rule =
        fmt::format("dp * mp * pp * sharding must be the {} processes of the case key", world_size_);
    if (world_size_ % others != 0) contradiction(all, rule);
    if (const auto dp = get(kDp)) {
      if (others > world_size_ || *dp != world_size_ / others) contradiction({kDp, kMp, kPp, kSharding}, rule);
      return;
    }
    set(kDp, Value::integer(world_size_ / others), "processes / (mp * pp * sharding)");
  }

  void derive_batches() {
    const int64_t replicas = *get(kDp) * *get(kSharding);
    if (!get(kLocalBatch) && !get(kGlobalBatch) && get(kMicroBatch)) {
      const int64_t steps = get(kAccumulate).value_or(1);
      set(kLocalBatch, Value::integer(product(*get(kMicroBatch), steps, {kMicroBatch})),
          "micro_batch_size * accumulate_steps");
    }
    if (!get(kLocalBatch) && !get(kGlobalBatch)) {
      throw ConfigError(fmt::format("{}: {} is missing: set it, or {}", tree_.find("Global")->origin().text(),
                                    kLocalBatch, kGlobalBatch));
    }
    if (!get(kLocalBatch)) {
      if (*get(kGlobalBatch) % replicas != 0) {
        contradiction({kGlobalBatch, kDp, kSharding}, "the global batch must divide by dp * sharding");
      }
      set(kLocalBatch, Value::integer(*get(kGlobalBatch) / replicas), "global_batch_size / (dp * sharding)");
    }
    const int64_t global = product(*get(kLocalBatch), replicas, {kLocalBatch, kDp, kSharding});
    if (!get(kGlobalBatch)) set(kGlobalBatch, Value::integer(global), "local_batch_size * dp * sharding");
    if (*get(kGlobalBatch) != global) {
      contradiction({kGlobalBatch, kLocalBatch},
                    fmt::format("global_batch_size must be local_batch_size * dp * sharding"
                                " = {}; set one of them to null",
                                global));
    }
    derive_micro_batches();
  }

  void derive_micro_batches() {
    const int64_t local = *get(kLocalBatch);
    const char* given = get(kMicroBatch) ? kMicroBatch : get(kAccumulate) ? kAccumulate : nullptr;
    if (!given) {
      set(kMicroBatch, Value::integer(local), "local_batch_size");
      given = kMicroBatch;
    }
    if (local % *get(given) != 0) {
      contradiction({kLocalBatch, given}, fmt::format("local_batch_size must divide by {}", given));
    }
    const int64_t other = local / *get(given);
    if (!get(kMicroBatch)) set(kMicroBatch, Value::integer(other), "local_batch_size / accumulate_steps");
    if (!get(kAccumulate)) set(kAccumulate, Value::integer(other), "local_batch_size / micro_batch_size");
    if (product(*get(kMicroBatch), *get(kAccumulate), {kMicroBatch, kAccumulate}) != local) {
      contradiction({kAccumulate, kMicroBatch, kLocalBatch},
                    "accumulate_steps must be local_batch_size / micro_batch_size; set one of them to null");
    }
    if (get(kVirtualPp).value_or(1) > 1 && *get(kAccumulate) % *get(kPp) != 0) {
      contradiction({kVirtualPp, kPp, kAccumulate},
                    "where stages have several parts, the micro-batches of a step must be a multiple of pp_degree");
    }
  }

  void derive_data() {
    const Value* root = tree_.find("data.path");
    for (const char* part : {"Train", "Eval", "Test"}) {
      const std::string section = std::string("Data.") + part;
      const Value* node = tree_.find(section);
      if (!node || !node->is_map()) continue;
      const std::string folder = section + ".dataset.input_dir";
      const Value* given = tree_.find(folder);
      const bool has_root = root && root->is_string();
      if (has_root && (!given || given->is_null())) {
        set(folder, Value::string(root->as_string()), "data.path");
      } else if (has_root && given->is_string() && !std::filesystem::path(given->as_string()).is_absolute()) {
        const auto joined = std::filesystem::path(root->as_string()) / given->as_string();
        set(folder, Value::string(joined.lexically_normal().string()),
            fmt::format("data.path / '{}' ({})", given->as_string(), given->origin().text()));
      }
      const std::string batch = section + ".loader.batch_size";
      const Value* size = tree_.find(batch);
      if (size && size->is_null()) set(batch, Value::integer(*get(kLocalBatch)), kLocalBatch);
    }
  }

  // Weights to start from lie beside the data unless their path is absolute, as FlagPerf's init_checkpoint has it.
  void derive_pretrained() {
    const char* key = "Engine.save_load.pretrained";
    const Value* root = tree_.find("data.path");
    const Value* given = tree_.find(key);
    if (!root || !root->is_string() || !given || !given->is_string()) return;
    if (given->as_string().empty() || std::filesystem::path(given->as_string()).is_absolute()) return;
    const auto joined = std::filesystem::path(root->as_string()) / given->as_string();
    set(key, Value::string(joined.lexically_normal().string()),
        fmt::format("data.path / '{}' ({})", given->as_string(), given->origin().text()));
  }

  void derive_warmup() {
    const Value* rate = tree_.find("Optimizer.lr.warmup_rate");
    if (!rate || !rate->is_double()) return;
    const Value* steps = tree_.find("Optimizer.lr.warmup_steps");
    const Value* total = tree_.find("Optimizer.lr.decay_steps");
    const char* total_name = "decay_steps";
    if (!total || total->is_null()) {
      total = tree_.find("Engine.max_steps");
      total_name = "max_steps";
    }
    if (total->is_null()) return;  // the number of steps follows from the data: the engine's business
    const Value* unit = tree_.find("Optimizer.lr.unit");
    const bool by_samples = unit && unit->is_string() && unit->as_string() == "samples";
    if (by_samples && total_name == std::string_view("max_steps")) return;  // ... and so are samples
    constexpr double kMaxSteps = 1e15;                                      // far beyond any run, and exact in a double
    if (total->as_double() > kMaxSteps) {
      throw ConfigError(fmt::format("{}: {} = {} is too large", total->origin().text(), total_name, total->text()));
    }
    const auto warmup = static_cast<int64_t>(std::llround(rate->as_double() * total->as_double()));
    const bool given = steps && steps->origin().layer != kLayerDefault;
    if (given && steps->as_int() != warmup) {
      contradiction({"Optimizer.lr.warmup_steps", "Optimizer.lr.warmup_rate"}, "give only one of them");
    }
    set("Optimizer.lr.warmup_steps", Value::integer(warmup), fmt::format("warmup_rate * {}", total_name));
  }

  Value& tree_;
  int world_size_;
};

}  // namespace

void derive_values(Value& effective, int world_size) { Deriver(effective, world_size).run(); }

}  // namespace assay
