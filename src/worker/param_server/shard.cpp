#include "param_server/shard.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace assay::ps {

namespace {

// How often a waiting call looks whether its own trainer is still there.
constexpr double kLookForCallerS = 0.3;
constexpr double kLongestBarrierS = 24 * 3600;

std::string names_of(const std::vector<int>& trainers) {
  std::vector<std::string> names;
  for (const int trainer : trainers) {
    if (names.size() == 8) {
      names.push_back(fmt::format("{} more", trainers.size() - 8));
      break;
    }
    names.push_back(std::to_string(trainer));
  }
  return fmt::format("trainer{} {}", trainers.size() > 1 ? "s" : "", join(names, ", "));
}

}  // namespace

Shard::Shard(ShardOptions options) : options_(std::move(options)), trainers_(options_.num_trainers) {
  if (options_.checkpoint_folder.empty()) return;
  auto states = load_newest_server_checkpoint(options_.checkpoint_folder, options_.server, [&](const std::string& why) {
    options_.log("a damaged checkpoint is not used: " + why);
  });
  if (states.empty()) return;
  adopt(std::move(states));
  restored_step_ = step_;
  options_.log(fmt::format("continues from its checkpoint of step {}", step_));
}

// --- who is there

HelloReply Shard::hello(const Hello& hello) {
  const Lock lock(mutex_);
  require_running();
  if (hello.job != options_.job) throw ConfigError("this server belongs to another job");
  const Hello mine{.trainer = hello.trainer,
                   .num_trainers = options_.num_trainers,
                   .server = options_.server.index,
                   .num_servers = options_.server.num_servers,
                   .mode = options_.mode,
                   .job = options_.job,
                   .instance = hello.instance};
  if (hello != mine || hello.trainer >= mine.num_trainers) {
    throw ConfigError(fmt::format(
        "this is server {} of {} for {} trainers in mode {}; trainer {} wants server {} of {} for {} trainers in mode "
        "{}: give all processes of the job the same environment and configuration",
        mine.server, mine.num_servers, mine.num_trainers, name_of(mine.mode), hello.trainer, hello.server,
        hello.num_servers, hello.num_trainers, name_of(hello.mode)));
  }
  Trainer& trainer = trainers_[hello.trainer];
  if (trainer.connections > 0 && trainer.instance != hello.instance) {
    throw CommunicationError(fmt::format("trainer {} is already connected", hello.trainer));
  }
  if (trainer.instance != hello.instance || !trainer.came) trainer = {.instance = hello.instance};
  ++trainer.connections;
  trainer.came = true;
  trainer.left = false;
  trainer.failed.clear();
  changed_.notify_all();
  return {.step = step_, .restored_step = restored_step_};
}

void Shard::disconnected(int trainer, uint64_t instance) {
  const Lock lock(mutex_);
  Trainer& gone = trainers_[trainer];
  if (gone.instance != instance || gone.connections == 0) return;
  --gone.connections;
  gone.closed_at = Clock::now();
  changed_.notify_all();
}

void Shard::fail(int trainer, const std::string& reason) {
  const Lock lock(mutex_);
  trainers_[trainer].failed = reason;
  changed_.notify_all();
}

void Shard::goodbye(int trainer) {
  const Lock lock(mutex_);
  trainers_[trainer].left = true;
  changed_.notify_all();
}

Deadline Shard::return_deadline(const Trainer& trainer) const {
  return trainer.closed_at +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.return_limit_s));
}

bool Shard::is_lost(const Trainer& trainer) const {
  if (!trainer.failed.empty()) return true;
  return trainer.came && trainer.connections == 0 && !trainer.left && Clock::now() >= return_deadline(trainer);
}

std::string Shard::why_lost(int index) const {
  const Trainer& trainer = trainers_[index];
  if (!trainer.failed.empty()) return fmt::format("trainer {} failed: {}", index, trainer.failed);
  if (!trainer.came) return fmt::format("trainer {} has not come", index);
  if (trainer.left) return fmt::format("trainer {} has ended its training", index);
  if (trainer.connections == 0) return fmt::format("trainer {} was lost: its connection broke", index);
  return fmt::format("trainer {} is connected and silent", index);
}

bool Shard::all_left() const {
  const Lock lock(mutex_);
  return std::all_of(trainers_.begin(), trainers_.end(), [](const Trainer& trainer) { return trainer.left; });
}

int Shard::num_connected() const {
  const Lock lock(mutex_);
  return static_cast<int>(std::count_if(trainers_.begin(), trainers_.end(),
                                        [](const Trainer& trainer) { return trainer.connections > 0; }));
}

std::vector<std::string> Shard::missing_trainers() const {
  const Lock lock(mutex_);
  std::vector<std::string> missing;
  for (size_t i = 0; i < trainers_.size(); ++i) {
    if (!trainers_[i].left) missing.push_back(why_lost(static_cast<int>(i)));
  }
  return missing;
}

void Shard::stop(const std::string& reason) {
  const Lock lock(mutex_);
  stopped_ = reason;
  changed_.notify_all();
}

int64_t Shard::step() const {
  const Lock lock(mutex_);
  return step_;
}

void Shard::require_running() const {
  if (!stopped_.empty()) throw CommunicationError("the server ends: " + stopped_);
}

// --- waiting

void Shard::wait_for(Lock& lock, const Wait& wait, const std::function<bool()>& done,
                     const std::function<std::vector<int>()>& missing) {
  const Deadline limit = after(wait.limit_s);
  while (true) {
    require_running();
    if (done()) return;
    if (wait.caller.gone()) throw ConnectionLost(fmt::format("trainer {} is gone", wait.caller.trainer));
    Deadline wake = std::min(limit, after(kLookForCallerS));
    const std::vector<int> awaited = missing();
    for (const int index : awaited) {
      const Trainer& trainer = trainers_[index];
      if (!wait.for_the_lost && (is_lost(trainer) || trainer.left)) {
        throw CommunicationError(fmt::format("{}: {}", wait.purpose, why_lost(index)));
      }
      if (trainer.came && trainer.connections == 0) wake = std::min(wake, return_deadline(trainer));
    }
    if (Clock::now() >= limit) {
      throw CommunicationError(fmt::format("{}: waited {:g} s for {}; {}", wait.purpose, wait.limit_s,
                                           names_of(awaited), awaited.empty() ? "" : why_lost(awaited.front())));
    }
    changed_.wait_until(lock, wake);
  }
}

std::vector<int> Shard::without_gradients() const {
  std::vector<int> out;
  for (size_t i = 0; i < trainers_.size(); ++i) {
    if (!trainers_[i].pending) out.push_back(static_cast<int>(i));
  }
  return out;
}

void Shard::wait_for_step(Lock& lock, int64_t step, const Caller& caller, const std::string& purpose) {
  if (options_.mode != Mode::Sync) return;
  const auto& mine = trainers_[caller.trainer].pending;
  wait_for(
      lock, {fmt::format("{} of step {}", purpose, step), options_.time_limit_s, caller},
      // A trainer that waits for an update has sent its gradients for it; otherwise a restarted server has lost them.
      [&] { return step_ >= step || step > step_ + 1 || !mine; }, [&] { return without_gradients(); });
  if (step_ == step) return;
  throw_out_of_step(step, caller.trainer);
}

void Shard::throw_out_of_step(int64_t step, int trainer) const {
  const std::string origin =
      restored_step_ >= 0 ? fmt::format(", which started from its checkpoint of step {},", restored_step_) : "";
  throw CommunicationError(
      fmt::format("server {}{} is at step {}, trainer {} at step {}: start the trainers again, they will agree on the "
                  "step of their newest checkpoint",
                  options_.server.index, origin, step_, trainer, step));
}

void Shard::meet(Lock& lock, const BarrierRequest& request, const Wait& wait, const std::function<void()>& when_all) {
  Trainer& mine = trainers_[wait.caller.trainer];
  if (request.sequence <= mine.passed) return;  // sent again after its answer was lost
  mine.waits_at = request.sequence;
  const auto missing = [&] {
    std::vector<int> out;
    for (size_t i = 0; i < trainers_.size(); ++i) {
      if (trainers_[i].waits_at == 0) out.push_back(static_cast<int>(i));
    }
    return out;
  };
  if (missing().empty()) {
    meeting_failure_ = nullptr;
    try {
      when_all();
    } catch (...) {
      meeting_failure_ = std::current_exception();
    }
    for (Trainer& trainer : trainers_) trainer.passed = std::exchange(trainer.waits_at, 0);
    changed_.notify_all();
  } else {
    try {
      wait_for(
          lock, wait, [&] { return mine.passed >= request.sequence; }, missing);
    } catch (...) {
      if (mine.passed < request.sequence) mine.waits_at = 0;
      throw;
    }
  }
  if (meeting_failure_) std::rethrow_exception(meeting_failure_);
}

void Shard::barrier(const BarrierRequest& request, const Caller& caller) {
  Lock lock(mutex_);
  require_running();
  const double limit_s = std::clamp(request.limit_s, 0.0, kLongestBarrierS);
  const std::string purpose = fmt::format("barrier {}", request.sequence);
  meet(lock, request, {purpose, limit_s, caller, request.for_the_lost}, [] {});
}

std::vector<std::string> Shard::gather(const GatherRequest& request, const Caller& caller) {
  Lock lock(mutex_);
  require_running();
  const BarrierRequest& barrier = request.barrier;
  const double limit_s = std::clamp(barrier.limit_s, 0.0, kLongestBarrierS);
  const std::string purpose = fmt::format("meeting {}", barrier.sequence);
  if (barrier.sequence > trainers_[caller.trainer].passed) trainers_[caller.trainer].words = request.text;
  meet(lock, barrier, {purpose, limit_s, caller, barrier.for_the_lost}, [&] {
    gathered_.clear();
    for (Trainer& trainer : trainers_) gathered_.push_back(std::exchange(trainer.words, {}));
  });
  return gathered_;  // as they are until this trainer comes to another meeting
}

void Shard::start(const StartRequest& request, const Caller& caller) {
  Lock lock(mutex_);
  require_running();
  if (options_.mode != Mode::Sync) return;
  trainers_[caller.trainer].start_step = request.step;
  const double limit_s = std::clamp(request.barrier.limit_s, 0.0, kLongestBarrierS);
  const std::string purpose = fmt::format("start at step {}", request.step);
  meet(lock, request.barrier, {purpose, limit_s, caller, /*for_the_lost=*/true}, [&] { agree_on_start(); });
}

void Shard::agree_on_start() {
  for (size_t i = 1; i < trainers_.size(); ++i) {
    if (trainers_[i].start_step != trainers_[0].start_step) {
      throw CommunicationError(
          fmt::format("trainer 0 starts at step {}, trainer {} at step {}: give all trainers the same checkpoints",
                      trainers_[0].start_step, i, trainers_[i].start_step));
    }
  }
  go_to(trainers_[0].start_step);
}

// --- tables

void Shard::create_tables(const std::vector<TableSpec>& specs) {
  const Lock lock(mutex_);
  require_running();
  if (tables_.empty()) {
    for (const TableSpec& spec : specs) tables_.push_back(Table::make(spec));
    return;
  }
  if (tables_.size() != specs.size()) {
    throw ConfigError(fmt::format("this server has {} tables, the trainer wants {}: the configuration has changed",
                                  tables_.size(), specs.size()));
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    if (tables_[i]->spec() != specs[i]) {
      throw ConfigError(fmt::format("this server has table {}, the trainer wants {}: the configuration has changed",
                                    to_line(to_json(tables_[i]->spec())), to_line(to_json(specs[i]))));
    }
  }
}

Table& Shard::table(uint32_t index) const {
  if (index >= tables_.size()) {
    throw CommunicationError(fmt::format("there is no table {}; this server has {}", index, tables_.size()));
  }
  return *tables_[index];
}

uint64_t Shard::row_bytes(uint32_t index) const {
  const Lock lock(mutex_);
  const TableSpec& spec = table(index).spec();
  return static_cast<uint64_t>(spec.width) * size_of(spec.element);
}

void Shard::check_ids(const std::vector<int64_t>& ids) const {
  for (const int64_t id : ids) {
    if (server_of(id, options_.server.num_servers) != options_.server.index) {
      throw CommunicationError(
          fmt::format("row {} is not one of server {} of {}", id, options_.server.index, options_.server.num_servers));
    }
  }
}

void Shard::reserve(const Table& table, std::span<const int64_t> ids) const {
  const int64_t num_new = table.num_missing(ids);
  if (num_new == 0) return;
  int64_t bytes = table.bytes_for(num_new);
  for (const auto& each : tables_) bytes += each->num_bytes();
  if (bytes > options_.max_bytes) {
    throw OutOfMemoryError(
        fmt::format("{} new rows of table '{}' would need {} MB in all, the limit of server {} is {} "
                    "MB: use more servers",
                    num_new, table.spec().name, bytes >> 20, options_.server.index, options_.max_bytes >> 20));
  }
}

void Shard::adopt(std::vector<ShardState> states) {
  clear();
  const auto mine = [&](int64_t id) { return server_of(id, options_.server.num_servers) == options_.server.index; };
  for (const TableState& table : states[0].tables) tables_.push_back(Table::make(table.spec));
  for (const ShardState& state : states) {
    for (size_t i = 0; i < std::max(state.tables.size(), tables_.size()); ++i) {
      if (i >= std::min(state.tables.size(), tables_.size()) || state.tables[i].spec != tables_[i]->spec()) {
        throw DataError(fmt::format("the checkpoints of step {} are from servers with different tables", state.step));
      }
      tables_[i]->restore(state.tables[i], mine);
    }
    step_ = state.step;
    num_updates_ = std::max(num_updates_, state.num_updates);  // async servers count their own
  }
}

void Shard::clear() {
  tables_.clear();
  step_ = 0;
  num_updates_ = 0;
  for (Trainer& trainer : trainers_) trainer.pending.reset();
}

void Shard::go_to(int64_t step) {
  for (Trainer& trainer : trainers_) trainer.pending.reset();
  if (step_ == step) return;
  if (step == 0) {
    std::vector<TableSpec> specs;
    for (const auto& table : tables_) specs.push_back(table->spec());
    clear();
    for (const TableSpec& spec : specs) tables_.push_back(Table::make(spec));
  } else {
    if (options_.checkpoint_folder.empty()) throw DataError("this server does not keep checkpoints");
    adopt(load_server_checkpoint(options_.checkpoint_folder, step, options_.server));
  }
  restored_step_ = step;
  options_.log(fmt::format("goes back to step {}, where the trainers start", step));
}

// --- rows

void Shard::init(const RowBlock& block) {
  const Lock lock(mutex_);
  require_running();
  check_ids(block.ids);
  Table& to = table(block.table);
  reserve(to, block.ids);
  to.init(block.ids, block.values.data());
}

std::vector<PulledPart> Shard::pull(const PullRequest& request, const Caller& caller) {
  Lock lock(mutex_);
  require_running();
  wait_for_step(lock, request.step, caller, "parameters");
  ++num_pulls_;
  std::vector<PulledPart> parts;
  for (const PullRequest::Part& asked : request.parts) {
    Table& from = table(asked.table);
    check_ids(asked.ids);
    if (from.spec().init.kind != InitRule::Kind::Given) reserve(from, asked.ids);
    const auto row = static_cast<size_t>(from.spec().width) * size_of(from.spec().element);
    PulledPart part;
    part.present.resize(asked.ids.size());
    part.values.resize(asked.ids.size() * row);
    from.pull(asked.ids, part.values.data(), part.present.data());
    parts.push_back(std::move(part));
  }
  return parts;
}

void Shard::check_blocks(const std::vector<RowBlock>& blocks) const {
  for (const RowBlock& block : blocks) {
    check_ids(block.ids);
    const Table& to = table(block.table);
    if (to.spec().init.kind != InitRule::Kind::Given) {
      reserve(to, block.ids);
    } else if (options_.mode == Mode::Sync && to.num_missing(block.ids) > 0) {
      throw CommunicationError(
          fmt::format("{} rows of table '{}' have no first value", to.num_missing(block.ids), to.spec().name));
    }
  }
}

void Shard::check_agreement(const PushRequest& request, int trainer) const {
  for (size_t i = 0; i < trainers_.size(); ++i) {
    const auto& other = trainers_[i].pending;
    if (other && other->skips != request.skips) {
      throw CommunicationError(fmt::format("step {}: trainer {} makes no update, trainer {} does", request.step,
                                           request.skips ? trainer : static_cast<int>(i),
                                           request.skips ? static_cast<int>(i) : trainer));
    }
    if (other && other->rate != request.rate) {
      throw ConfigError(fmt::format("step {}: trainer {} has learning rate {}, trainer {} has {}", request.step,
                                    trainer, request.rate, i, other->rate));
    }
  }
}

void Shard::push(int index, PushRequest request) {
  const Lock lock(mutex_);
  require_running();
  check_blocks(request.blocks);
  Trainer& trainer = trainers_[index];
  if (options_.mode == Mode::Sync) {
    if (request.step < step_ || trainer.pending) return;  // sent again after its answer was lost
    if (request.step > step_) throw_out_of_step(request.step, index);
    check_agreement(request, index);
    trainer.pending = std::move(request);
    ++num_pushes_;
    if (without_gradients().empty()) apply_pending();
    return;
  }
  if (request.sequence <= trainer.last_push) return;  // the same
  trainer.last_push = request.sequence;
  ++num_pushes_;
  if (!request.skips) ++num_updates_;
  step_ = std::max(step_, request.step + 1);
  for (const RowBlock& block : request.blocks) {
    num_unknown_rows_ += table(block.table).update({&block}, {request.rate, num_updates_});
  }
}

void Shard::apply_pending() {
  if (!trainers_[0].pending->skips) ++num_updates_;
  const double rate = trainers_[0].pending->rate;
  for (size_t i = 0; i < tables_.size(); ++i) {
    std::vector<const RowBlock*> blocks;
    for (const Trainer& trainer : trainers_) {
      for (const RowBlock& block : trainer.pending->blocks) {
        if (block.table == i) blocks.push_back(&block);
      }
    }
    if (!blocks.empty()) num_unknown_rows_ += tables_[i]->update(blocks, {rate, num_updates_});
  }
  for (Trainer& trainer : trainers_) trainer.pending.reset();
  ++step_;
  changed_.notify_all();
}

void Shard::add_deltas(int index, const PushRequest& request) {
  const Lock lock(mutex_);
  require_running();
  check_blocks(request.blocks);
  Trainer& trainer = trainers_[index];
  if (request.sequence <= trainer.last_push) return;
  trainer.last_push = request.sequence;
  ++num_pushes_;
  step_ = std::max(step_, request.step + 1);
  for (const RowBlock& block : request.blocks) num_unknown_rows_ += table(block.table).add(block);
}

ChangedRows Shard::changed(const ChangedRequest& request, uint64_t max_bytes) const {
  const Lock lock(mutex_);
  require_running();
  const Table& from = table(request.table);
  const uint64_t row = static_cast<uint64_t>(from.spec().width) * size_of(from.spec().element) + sizeof(int64_t);
  return from.changed_since(request.since, std::min(request.max_rows, static_cast<int64_t>(max_bytes / row) + 1));
}

std::string Shard::save(int64_t step, const Caller& caller) {
  ShardState state;
  {
    Lock lock(mutex_);
    require_running();
    wait_for_step(lock, step, caller, "checkpoint");
    // Without sync trainers are at different steps; a checkpoint is known by that of who asked for it.
    state.step = step;
    state.num_updates = num_updates_;
    for (const auto& table : tables_) state.tables.push_back(table->state());
  }
  if (options_.checkpoint_folder.empty()) throw ConfigError("this server has no folder for checkpoints");
  return write_server_checkpoint(options_.checkpoint_folder, state, options_.server, options_.keep_checkpoints)
      .filename()
      .string();
}

Json Shard::stats() const {
  const Lock lock(mutex_);
  Json tables = Json::array();
  for (const auto& table : tables_) {
    tables.push_back({{"name", table->spec().name}, {"rows", table->num_rows()}, {"bytes", table->num_bytes()}});
  }
  Json present = Json::array();
  for (const Trainer& trainer : trainers_) present.push_back(trainer.connections > 0);
  return {{"server", options_.server.index},
          {"num_servers", options_.server.num_servers},
          {"mode", name_of(options_.mode)},
          {"step", step_},
          {"restored_step", restored_step_ >= 0 ? Json(restored_step_) : Json(nullptr)},
          {"num_updates", num_updates_},
          {"num_pulls", num_pulls_},
          {"num_pushes", num_pushes_},
          {"num_unknown_rows", num_unknown_rows_},
          {"connected", present},
          {"tables", tables}};
}

}  // namespace assay::ps
