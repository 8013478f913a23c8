#include "parallel/parameter_server.h"

#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/time.h"
#include "engine/adapter/adapter.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/optimizer/fused_optimizer.h"
#include "parallel/eval_exchange.h"
#include "param_server/update.h"

namespace assay {

namespace {

// Trainers that do not wait for each other come to the end at different times.
constexpr double kFinishLimitS = 3600;
constexpr char kServerUpdates[] = "num_updates";

ps::Element element_of(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kDouble ? ps::Element::F64 : ps::Element::F32;
}

std::vector<int64_t> sorted_unique(std::vector<int64_t> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

void append_ids(const torch::Tensor& tensor, std::vector<int64_t>& ids) {
  const torch::Tensor flat = tensor.detach().to(torch::kCPU, torch::kLong).flatten().contiguous();
  const auto* begin = flat.data_ptr<int64_t>();
  ids.insert(ids.end(), begin, begin + flat.numel());
}

torch::Tensor tensor_of(const std::vector<int64_t>& ids) { return torch::tensor(ids, torch::kLong); }

std::string bytes_of_number(double value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

double number_of_bytes(const std::string& bytes) {
  double value = 0;
  if (bytes.size() != sizeof value) throw CommunicationError("a trainer sent something else than a number");
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// Adds the time until its end to a sum.
class WaitTimer {
 public:
  explicit WaitTimer(double& sum) : sum_(sum) {}
  ~WaitTimer() { sum_ += watch_.seconds(); }

 private:
  double& sum_;
  Stopwatch watch_;
};

}  // namespace

std::optional<ServerJobOptions> read_server_options(const WorkerConfig& config) {
  Reader section = config.section("Distributed");
  Reader servers = section.section("ps");
  Reader comm = section.section("comm");
  const std::string mode = servers.get_choice("mode", {"none", "sync", "async", "geo"}, "none");
  if (mode == "none") return std::nullopt;
  for (const char* key : {"mp_degree", "pp_degree"}) {
    if (section.get_int(key, 1) != 1) section.fail(key, "must be 1 with parameter servers (Distributed.ps.mode)");
  }
  Reader sharding = section.section("sharding");
  if (sharding.get_int("sharding_degree", 1) != 1) {
    sharding.fail("sharding_degree", "must be 1 with parameter servers (Distributed.ps.mode)");
  }
  ServerJobOptions options{.mode = ps::mode_of(mode)};
  options.geo_steps = servers.get_int("geo_steps", options.geo_steps);
  if (options.geo_steps < 1) servers.fail("geo_steps", "must be at least 1");
  options.time_limit_s = comm.get_double("time_limit_s", options.time_limit_s);
  if (!(options.time_limit_s > 0)) comm.fail("time_limit_s", "must be above 0");
  return options;
}

// The updates happen on the servers; here there is nothing but their number.
class ParameterServerStrategy::ServerOptimizer final : public Optimizer {
 public:
  explicit ServerOptimizer(ParameterServerStrategy& strategy) : strategy_(strategy) {}
  Outcome step(const Update& update) override {
    if (!strategy_.gradients_finite_) {
      if (update.skip_non_finite) return {.gradient_norm = {}, .skipped = true};
      throw NonFiniteError(fmt::format("a gradient is not finite at update {}", num_updates_ + 1));
    }
    strategy_.push(update.learning_rate, update.gradient_scale);
    ++num_updates_;
    return {};
  }
  void clear_grad() override {
    for (torch::Tensor& parameter : strategy_.network_->parameters()) parameter.mutable_grad() = torch::Tensor();
  }
  int64_t num_updates() const override { return num_updates_; }
  NamedTensors state() const override { return {{kServerUpdates, torch::tensor(num_updates_, torch::kLong)}}; }
  void load_state(const std::map<std::string, torch::Tensor>& saved) override {
    num_updates_ = find_state(state(), saved).at(0).item<int64_t>();
  }

 private:
  ParameterServerStrategy& strategy_;
  int64_t num_updates_ = 0;
};

ParameterServerStrategy::ParameterServerStrategy(const ServerJobOptions& options, const ps::ClientOptions& client,
                                                 int64_t seed)
    : options_(options), seed_(seed), client_(client) {
  client_.gather("", /*patient=*/true);
}

ParameterServerStrategy::~ParameterServerStrategy() = default;

Topology ParameterServerStrategy::topology() const {
  std::string text = fmt::format("trainer {} of {}, {} parameter server{}, {}", trainer(), num_trainers(),
                                 client_.num_servers(), client_.num_servers() > 1 ? "s" : "", name_of(options_.mode));
  if (options_.mode == ps::Mode::Geo) text += fmt::format(" every {} steps", options_.geo_steps);
  return {.description = std::move(text),
          .world_size = num_trainers(),
          .is_alone = false,
          .is_writer = is_writer(),
          .num_replicas = num_trainers(),
          .replica = trainer()};
}

// --- tables

void ParameterServerStrategy::refuse(const Module& module, const EngineOptions& options) const {
  const auto fail = [](const std::string& what) {
    throw ConfigError("Distributed.ps.mode: with parameter servers " + what);
  };
  if (module.model().sparse_parameters().empty()) {
    fail(
        "a model must have sparse parameters (Network::sparse_parameters), and this one has none; use data "
        "parallelism");
  }
  if (options.optimizer.ema_decay) fail("weights cannot be averaged; remove Optimizer.ema");
  if (options.optimizer.clip_norm) {
    fail("gradients cannot be clipped, because no process sees all of them; remove Optimizer.grad_clip");
  }
  if (options_.mode == ps::Mode::Geo) return;  // trainers update
  const std::vector<std::string>& known = ps::update_names();
  if (std::find(known.begin(), known.end(), options.optimizer.name) == known.end() || options.optimizer.nesterov) {
    fail(fmt::format("Optimizer.name must be one of {}, without nesterov", fmt::join(known, ", ")));
  }
}

void ParameterServerStrategy::make_tables(const Network& network, const Optimizer::Options& options) {
  const std::vector<std::string> sparse = network.sparse_parameters();
  std::vector<ps::TableSpec> specs;
  const auto add = [&](const std::string& name, int64_t width, const torch::Tensor& example, bool decays) {
    ps::TableSpec spec{.name = name, .width = width, .element = element_of(example), .init = {}, .update = {}};
    if (options_.mode != ps::Mode::Geo) {
      spec.update = {.name = options.name,
                     .weight_decay = decays ? options.weight_decay : 0,
                     .momentum = options.momentum,
                     .beta1 = options.beta1,
                     .beta2 = options.beta2,
                     .epsilon = options.epsilon};
    }
    specs.push_back(spec);
    return static_cast<uint32_t>(specs.size() - 1);
  };
  std::map<bool, std::vector<torch::Tensor>> dense;  // by whether they are decayed
  for (const auto& [name, parameter] : trainable_parameters(network)) {
    const bool decays = is_decayed(options, name, parameter.dim());
    if (std::find(sparse.begin(), sparse.end(), name) == sparse.end()) {
      dense[decays].push_back(parameter);
      continue;
    }
    ASSAY_CHECK(parameter.is_contiguous() && parameter.size(0) > 0, name + " is not a table of rows");
    const int64_t width = parameter.numel() / parameter.size(0);
    sparse_.push_back({.name = name, .weight = parameter, .table = add(name, width, parameter, decays)});
  }
  for (auto& [decays, tensors] : dense) {
    DenseTable table{.table = add(decays ? "dense" : "dense without decay", ps::kDensePiece, tensors[0], decays)};
    for (const torch::Tensor& tensor : tensors) table.num_elements += tensor.numel();
    table.tensors = std::move(tensors);
    for (int64_t i = 0; i < ps::num_pieces(table.num_elements); ++i) table.pieces.push_back(i);
    dense_.push_back(std::move(table));
  }
  client_.create_tables(specs);
}

void ParameterServerStrategy::prepare(Module& module, const EngineOptions& options) {
  refuse(module, options);
  network_ = &module.model();
  const NamedTensors parameters = trainable_parameters(*network_);
  check_optimizer_options(options.optimizer, whole_parameters(parameters));
  make_tables(*network_, options.optimizer);
}

std::unique_ptr<Optimizer> ParameterServerStrategy::create_optimizer(const Optimizer::Options& /*options*/) {
  if (options_.mode == ps::Mode::Geo) return nullptr;
  return std::make_unique<ServerOptimizer>(*this);
}

// Weights, or gradients, of the dense parameters one after the other.
void ParameterServerStrategy::collect(DenseTable& dense, torch::Tensor flat, bool gradients) const {
  int64_t at = 0;
  for (const torch::Tensor& tensor : dense.tensors) {
    const torch::Tensor source = gradients ? tensor.grad() : tensor.detach();
    if (!source.defined()) {
      throw ConfigError("a dense parameter has no gradient: with parameter servers a step must use all of them");
    }
    flat.narrow(0, at, tensor.numel()).copy_(source.reshape({-1}));
    at += tensor.numel();
  }
}

void ParameterServerStrategy::spread(const DenseTable& dense) const {
  int64_t at = 0;
  for (const torch::Tensor& tensor : dense.tensors) {
    tensor.detach().copy_(dense.flat.narrow(0, at, tensor.numel()).view(tensor.sizes()));
    at += tensor.numel();
  }
}

// Once, when the weights to start with and the step are known.
void ParameterServerStrategy::start() {
  if (started_) return;
  started_ = true;
  const WaitTimer timer(waited_s_);
  client_.start(step_);
  for (DenseTable& dense : dense_) {
    const auto size = static_cast<int64_t>(dense.pieces.size()) * ps::kDensePiece;
    dense.flat = torch::zeros({size}, dense.tensors[0].options().requires_grad(false));
    collect(dense, dense.flat, /*gradients=*/false);
  }
  if (options_.mode != ps::Mode::Geo) return;
  std::vector<ps::Client::Rows> rows;
  for (DenseTable& dense : dense_) rows.push_back({dense.table, dense.pieces, dense.flat.data_ptr()});
  num_reconnects_ = client_.num_reconnects();
  client_.pull(step_, rows);
  take_changed();
  for (DenseTable& dense : dense_) dense.base = dense.flat.clone();
  for (SparseTable& table : sparse_) {
    table.base = table.weight.detach().clone();
    table.is_known.resize(static_cast<size_t>(table.weight.size(0)), false);
  }
}

// --- a step

double ParameterServerStrategy::sum_over_replicas(double mine) {
  if (options_.mode != ps::Mode::Sync) return mine * num_trainers();
  const WaitTimer timer(waited_s_);
  double sum = 0;
  for (const std::string& bytes : client_.gather(bytes_of_number(mine))) sum += number_of_bytes(bytes);
  return sum;
}

void ParameterServerStrategy::begin_step(int64_t step) {
  waited_s_ = 0;
  step_ = step - 1;
  start();
  // Another one for every trainer and step: what a step draws does not depend on where a run was continued.
  uint64_t seed = static_cast<uint64_t>(seed_);
  for (const int64_t value : {static_cast<int64_t>(trainer()), step}) {
    seed = (seed ^ static_cast<uint64_t>(value + 1)) * 0x9E3779B97F4A7C15;  // the golden ratio's bits
    seed ^= seed >> 32;
  }
  torch::manual_seed(seed);
}

void ParameterServerStrategy::bring_weights(const std::vector<MicroBatch>& parts) {
  if (options_.mode == ps::Mode::Geo) return;
  const torch::NoGradGuard no_grad;
  const std::vector<std::string> names = network_->sparse_parameters();
  std::vector<std::vector<int64_t>> ids(sparse_.size());
  for (const MicroBatch& part : parts) {
    const TensorList read = network_->sparse_rows(inputs_of(part.batch));
    if (read.size() != names.size()) {
      throw ConfigError("Distributed.ps.mode: this model does not say which rows a batch reads (Network::sparse_rows)");
    }
    for (size_t i = 0; i < sparse_.size(); ++i) {
      const auto position = std::find(names.begin(), names.end(), sparse_[i].name) - names.begin();
      append_ids(read[static_cast<size_t>(position)], ids[i]);
    }
  }
  std::vector<ps::Client::Rows> rows;
  for (DenseTable& dense : dense_) rows.push_back({dense.table, dense.pieces, dense.flat.data_ptr()});
  TensorList values;
  for (size_t i = 0; i < sparse_.size(); ++i) {
    ids[i] = sorted_unique(std::move(ids[i]));
    values.push_back(sparse_[i].weight.detach().index_select(0, tensor_of(ids[i])));
    rows.push_back({sparse_[i].table, ids[i], values[i].data_ptr()});
  }
  {
    const WaitTimer timer(waited_s_);
    client_.pull(step_, rows);
  }
  for (const DenseTable& dense : dense_) spread(dense);
  for (size_t i = 0; i < sparse_.size(); ++i) {
    sparse_[i].weight.detach().index_copy_(0, tensor_of(ids[i]), values[i]);
  }
}

// Geo: shares are of the batch of all trainers, but a trainer's own update is that of its own part.
void ParameterServerStrategy::finish_gradients() {
  if (options_.mode != ps::Mode::Geo) return;
  const torch::NoGradGuard no_grad;
  for (const torch::Tensor& parameter : network_->parameters()) {
    torch::Tensor gradient = parameter.grad();
    if (gradient.defined()) gradient.mul_(num_trainers());
  }
  note_touched_rows();
}

bool ParameterServerStrategy::own_gradients_finite() const {
  TensorList sent;
  for (const DenseTable& dense : dense_) sent.insert(sent.end(), dense.tensors.begin(), dense.tensors.end());
  for (const SparseTable& table : sparse_) sent.push_back(table.weight);
  return std::all_of(sent.begin(), sent.end(), [](const torch::Tensor& weight) {
    const torch::Tensor gradient = weight.grad();
    if (!gradient.defined()) return true;
    return (gradient.is_sparse() ? gradient._values() : gradient).isfinite().all().item<bool>();
  });
}

// What servers update with is not seen by anyone else before: the trainers look at their gradients here, and with
// `sync` all of them learn of it before the first one sends.
StepAgreement ParameterServerStrategy::agree(const StepAgreement& mine) {
  gradients_finite_ =
      options_.mode == ps::Mode::Geo || own_gradients_finite();  // geo: the optimizer of this process checks
  if (options_.mode != ps::Mode::Sync) return {.loss = mine.loss * num_trainers(), .stop = mine.stop};
  const WaitTimer timer(waited_s_);
  StepAgreement all;
  const std::string flags = {mine.stop ? 's' : 'g', gradients_finite_ ? 'f' : 'n'};
  for (const std::string& bytes : client_.gather(bytes_of_number(mine.loss) + flags)) {
    all.loss += number_of_bytes(bytes.substr(0, sizeof(double)));
    all.stop = all.stop || bytes.at(sizeof(double)) == 's';
    gradients_finite_ = gradients_finite_ && bytes.back() == 'f';
  }
  return all;
}

void ParameterServerStrategy::push(double learning_rate, double gradient_scale) {
  const torch::NoGradGuard no_grad;
  std::vector<ps::Client::Rows> rows;
  TensorList values;
  std::vector<std::vector<int64_t>> ids(sparse_.size());
  for (DenseTable& dense : dense_) {
    values.push_back(torch::zeros_like(dense.flat));
    collect(dense, values.back(), /*gradients=*/true);
    rows.push_back({dense.table, dense.pieces, values.back().data_ptr()});
  }
  for (size_t i = 0; i < sparse_.size(); ++i) {
    const torch::Tensor gradient = sparse_[i].weight.grad();
    if (!gradient.defined()) continue;
    ASSAY_CHECK(gradient.is_sparse(), sparse_[i].name + " has a gradient that is not sparse");
    const torch::Tensor sums = gradient.coalesce();
    append_ids(sums.indices()[0], ids[i]);
    values.push_back(sums.values().to(sparse_[i].weight.scalar_type(), /*non_blocking=*/false, /*copy=*/true));
    rows.push_back({sparse_[i].table, ids[i], values.back().data_ptr()});
  }
  if (gradient_scale != 1) {
    for (const torch::Tensor& value : values) value.div_(gradient_scale);
  }
  const WaitTimer timer(waited_s_);
  client_.push(step_, learning_rate, rows);
  pushed_ = true;
}

// Servers of a sync job count the steps, those without an update too.
void ParameterServerStrategy::after_update() {
  if (options_.mode == ps::Mode::Sync && !pushed_) {
    const WaitTimer timer(waited_s_);
    client_.push_nothing(step_);
  }
  pushed_ = false;
  ++step_;
  if (options_.mode == ps::Mode::Geo && step_ % options_.geo_steps == 0) exchange();
}

// --- geo

void ParameterServerStrategy::note_touched_rows() {
  for (SparseTable& table : sparse_) {
    const torch::Tensor gradient = table.weight.grad();
    if (gradient.defined()) append_ids(gradient._indices()[0], table.touched);
  }
}

// Rows that servers do not have get the values as of the last exchange, to which differences can be added. A server
// that was started again may be without rows that it had, dense ones too, and is asked anew for all that changed.
void ParameterServerStrategy::give_first_values() {
  do {
    const bool again = client_.num_reconnects() != num_reconnects_;
    num_reconnects_ = client_.num_reconnects();
    std::vector<ps::Client::Rows> firsts;
    TensorList values;
    std::vector<std::vector<int64_t>> unknown;
    unknown.reserve(sparse_.size());
    for (DenseTable& dense : dense_) {
      if (!again) continue;
      values.push_back(dense.base.clone());
      firsts.push_back({dense.table, dense.pieces, values.back().data_ptr()});
    }
    for (SparseTable& table : sparse_) {
      if (again) table.is_known.assign(table.is_known.size(), false);
      std::vector<int64_t>& fresh = unknown.emplace_back();
      for (const int64_t id : table.touched) {
        if (!table.is_known[static_cast<size_t>(id)]) fresh.push_back(id);
        table.is_known[static_cast<size_t>(id)] = true;
      }
      values.push_back(table.base.index_select(0, tensor_of(fresh)));
      firsts.push_back({table.table, fresh, values.back().data_ptr()});
    }
    client_.pull(step_, firsts);  // reaches every server, so that one that is new is noticed here
  } while (client_.num_reconnects() != num_reconnects_);
}

// Tells the servers how the own weights changed, and takes over what all trainers did.
void ParameterServerStrategy::exchange() {
  const torch::NoGradGuard no_grad;
  const WaitTimer timer(waited_s_);
  for (SparseTable& table : sparse_) table.touched = sorted_unique(std::move(table.touched));
  give_first_values();
  std::vector<ps::Client::Rows> rows;
  TensorList values;
  for (DenseTable& dense : dense_) {
    collect(dense, dense.flat, /*gradients=*/false);
    values.push_back((dense.flat - dense.base) / num_trainers());
    rows.push_back({dense.table, dense.pieces, values.back().data_ptr()});
  }
  for (const SparseTable& table : sparse_) {
    const torch::Tensor index = tensor_of(table.touched);
    values.push_back((table.weight.detach().index_select(0, index) - table.base.index_select(0, index)) /
                     num_trainers());
    rows.push_back({table.table, table.touched, values.back().data_ptr()});
  }
  client_.add_deltas(step_, rows);
  for (SparseTable& table : sparse_) table.touched.clear();
  take_changed();
}

// --- everything that servers have

void ParameterServerStrategy::take_changed() {
  const torch::NoGradGuard no_grad;
  for (DenseTable& dense : dense_) {
    std::vector<ps::RowBlock> blocks;  // taken in threads of the client, used in this one
    client_.pull_changed(dense.table, [&](const ps::RowBlock& block) { blocks.push_back(block); });
    const size_t piece_bytes = ps::kDensePiece * dense.flat.element_size();
    for (const ps::RowBlock& block : blocks) {
      for (size_t i = 0; i < block.ids.size(); ++i) {
        if (block.ids[i] < 0 || block.ids[i] >= static_cast<int64_t>(dense.pieces.size())) continue;
        std::memcpy(static_cast<char*>(dense.flat.data_ptr()) + static_cast<size_t>(block.ids[i]) * piece_bytes,
                    block.values.data() + i * piece_bytes, piece_bytes);
      }
    }
    spread(dense);
    if (dense.base.defined()) dense.base.copy_(dense.flat);
  }
  for (SparseTable& table : sparse_) {
    std::vector<ps::RowBlock> blocks;
    client_.pull_changed(table.table, [&](const ps::RowBlock& block) { blocks.push_back(block); });
    for (ps::RowBlock& block : blocks) {
      std::vector<int64_t> shape = table.weight.sizes().vec();
      shape[0] = static_cast<int64_t>(block.ids.size());
      const torch::Tensor values =
          torch::from_blob(block.values.data(), shape, table.weight.options().requires_grad(false));
      const torch::Tensor index = tensor_of(block.ids);
      table.weight.detach().index_copy_(0, index, values);
      if (table.base.defined()) table.base.index_copy_(0, index, values);
    }
  }
}

void ParameterServerStrategy::refresh() {
  start();
  if (options_.mode == ps::Mode::Geo) return exchange();
  const WaitTimer timer(waited_s_);
  client_.pull(step_, {});  // sync: returns when every server has made the update
  take_changed();
}

void ParameterServerStrategy::begin_evaluation() { refresh(); }

EvalSums ParameterServerStrategy::merge(EvalSums mine) {
  if (!shares_evaluation()) return mine;
  return merge_sums(client_.gather(pack_sums(mine)));
}

NamedTensors ParameterServerStrategy::gather_weights(const Module& module) {
  start();
  if (is_writer() || options_.mode == ps::Mode::Geo) refresh();
  return is_writer() ? state_of(module.model()) : NamedTensors{};
}

NamedTensors ParameterServerStrategy::gather_state(const NamedTensors& mine) {
  if (!is_writer()) return {};
  saved_ = client_.save(step_);
  return mine;
}

// Seeds depend on the step, see begin_step().
NamedTensors ParameterServerStrategy::gather_random(const torch::Tensor& mine) {
  return is_writer() ? StateExchange::gather_random(mine) : NamedTensors{};
}

std::optional<torch::Tensor> ParameterServerStrategy::scatter_random(const TensorsByName& /*whole*/, int64_t step) {
  step_ = step;
  return std::nullopt;
}

Json ParameterServerStrategy::placement() const {
  return {{"parameter_servers", client_.num_servers()}, {"mode", name_of(options_.mode)}, {"files", saved_}};
}

void ParameterServerStrategy::broadcast(std::string& bytes) {
  bytes = client_.gather(is_writer() ? bytes : std::string()).at(0);
}

TensorsByName ParameterServerStrategy::broadcast_each(TensorsByName whole) {
  Json head = Json::array();
  for (const auto& [name, tensor] : whole) {
    head.push_back({{"name", name}, {"type", static_cast<int>(tensor.scalar_type())}, {"shape", tensor.sizes().vec()}});
  }
  std::string text = head.dump();
  broadcast(text);
  TensorsByName own;
  for (const Json& entry : Json::parse(text)) {
    const auto name = entry.at("name").get<std::string>();
    torch::Tensor tensor = is_writer() ? whole.at(name).contiguous()
                                       : torch::empty(entry.at("shape").get<std::vector<int64_t>>(),
                                                      static_cast<torch::ScalarType>(entry.at("type").get<int>()));
    std::string bytes;
    if (is_writer()) bytes.assign(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
    broadcast(bytes);
    if (bytes.size() != tensor.nbytes()) throw CommunicationError(name + " came with another size than it has");
    if (!bytes.empty()) std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
    own[name] = tensor;
  }
  return own;
}

void ParameterServerStrategy::finish() {
  start();
  if (options_.mode == ps::Mode::Geo) exchange();
  client_.barrier(options_.mode == ps::Mode::Sync ? options_.time_limit_s : kFinishLimitS);
}

void ParameterServerStrategy::leave() { client_.goodbye(); }

void ParameterServerStrategy::fail(const std::string& reason) noexcept { client_.fail(reason); }

}  // namespace assay
