#include "param_server/client.h"

#include <fmt/format.h>

#include <cstring>
#include <random>

#include "base/error.h"

namespace assay::ps {

namespace {

// Rows of one message where rows may be sent in several.
constexpr uint64_t kMessageBytes = uint64_t{32} << 20;

uint64_t fresh_instance() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

}  // namespace

int64_t num_pieces(int64_t num_elements) { return (num_elements + kDensePiece - 1) / kDensePiece; }

Client::Client(ClientOptions options) : options_(std::move(options)) {
  ASSAY_CHECK(!options_.servers.empty(), "no parameter servers");
  const uint64_t instance = fresh_instance();
  for (size_t i = 0; i < options_.servers.size(); ++i) {
    channels_.push_back(
        std::make_unique<Channel>(ChannelOptions{.endpoint = options_.servers[i],
                                                 .hello = {.trainer = options_.trainer,
                                                           .num_trainers = options_.num_trainers,
                                                           .server = static_cast<int>(i),
                                                           .num_servers = static_cast<int>(options_.servers.size()),
                                                           .mode = options_.mode,
                                                           .job = options_.job,
                                                           .instance = instance},
                                                 .time_limit_s = options_.time_limit_s,
                                                 .connect_limit_s = options_.connect_limit_s}));
  }
  fan_ = std::make_unique<Fan>(num_servers());
  fan_->run([&](int server) { channels_[server]->connect(); });
}

Client::~Client() = default;

void Client::create_tables(const std::vector<TableSpec>& specs) {
  ASSAY_CHECK(specs_.empty(), "tables are created once");
  for (const TableSpec& spec : specs) check_spec(spec);
  if (specs.size() > kMaxTables) throw ConfigError(fmt::format("{} tables, the limit is {}", specs.size(), kMaxTables));
  specs_ = specs;
  versions_.assign(specs.size(), std::vector<uint64_t>(channels_.size(), 0));
  fan_->run([&](int server) { channels_[server]->create_tables(specs_); });
}

void Client::start(int64_t step) {
  const StartRequest request{.step = step,
                             .barrier = {.sequence = next_barrier_++, .limit_s = options_.connect_limit_s}};
  fan_->run([&](int server) { channels_[server]->request(Request::Start, encode(request), options_.connect_limit_s); });
}

uint64_t Client::row_bytes(uint32_t table) const {
  ASSAY_CHECK(table < specs_.size(), "no such table");
  return static_cast<uint64_t>(specs_[table].width) * size_of(specs_[table].element);
}

std::vector<std::vector<size_t>> Client::split(std::span<const int64_t> ids) const {
  std::vector<std::vector<size_t>> positions(channels_.size());
  for (size_t i = 0; i < ids.size(); ++i) positions[server_of(ids[i], num_servers())].push_back(i);
  return positions;
}

void Client::pull(int64_t step, const std::vector<Rows>& rows) {
  std::vector<std::vector<std::vector<size_t>>> positions;  // of each part, by server
  for (const Rows& part : rows) positions.push_back(split(part.ids));
  fan_->run([&](int server) {
    PullRequest request{.step = step, .parts = {}};
    for (size_t i = 0; i < rows.size(); ++i) {
      PullRequest::Part part{.table = rows[i].table, .ids = {}};
      for (const size_t position : positions[i][server]) part.ids.push_back(rows[i].ids[position]);
      request.parts.push_back(std::move(part));
    }
    const std::string reply = channels_[server]->request(Request::Pull, encode(request));
    const auto pulled = decode_pulled(reply, request, [this](uint32_t table) { return row_bytes(table); });
    std::vector<RowBlock> missing;
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t size = row_bytes(rows[i].table);
      RowBlock block{.table = rows[i].table, .ids = {}, .values = {}};
      for (size_t k = 0; k < positions[i][server].size(); ++k) {
        std::byte* to = static_cast<std::byte*>(rows[i].values) + positions[i][server][k] * size;
        if (pulled[i].present[k]) {
          std::memcpy(to, pulled[i].values.data() + k * size, size);
        } else {
          block.ids.push_back(request.parts[i].ids[k]);
          block.values.insert(block.values.end(), to, to + size);
        }
      }
      if (!block.ids.empty()) missing.push_back(std::move(block));
    }
    init_missing(missing, server);
  });
}

void Client::init_missing(const std::vector<RowBlock>& missing, int server) {
  for (const RowBlock& block : missing) {
    const uint64_t size = row_bytes(block.table);
    const size_t count = std::max<uint64_t>(kMessageBytes / size, 1);
    for (size_t begin = 0; begin < block.ids.size(); begin += count) {
      const size_t end = std::min(begin + count, block.ids.size());
      const RowBlock part{.table = block.table,
                          .ids = {block.ids.begin() + begin, block.ids.begin() + end},
                          .values = {block.values.begin() + begin * size, block.values.begin() + end * size}};
      channels_[server]->request(Request::Init, encode(part));
    }
  }
}

std::vector<RowBlock> Client::blocks_for(const Rows& rows) const {
  const size_t size = row_bytes(rows.table);
  std::vector<RowBlock> blocks(channels_.size());
  const auto positions = split(rows.ids);
  for (size_t server = 0; server < blocks.size(); ++server) {
    RowBlock& block = blocks[server];
    block.table = rows.table;
    block.values.resize(positions[server].size() * size);
    for (size_t k = 0; k < positions[server].size(); ++k) {
      block.ids.push_back(rows.ids[positions[server][k]]);
      std::memcpy(block.values.data() + k * size,
                  static_cast<const std::byte*>(rows.values) + positions[server][k] * size, size);
    }
  }
  return blocks;
}

std::vector<PushRequest> Client::requests_for(int64_t step, double rate, const std::vector<Rows>& rows) {
  const PushRequest empty{.step = step, .sequence = next_push_++, .rate = rate, .blocks = {}};
  std::vector<PushRequest> requests(channels_.size(), empty);
  for (const Rows& part : rows) {
    std::vector<RowBlock> blocks = blocks_for(part);
    for (size_t server = 0; server < blocks.size(); ++server) {
      if (!blocks[server].ids.empty()) requests[server].blocks.push_back(std::move(blocks[server]));
    }
  }
  return requests;
}

void Client::push(int64_t step, double rate, const std::vector<Rows>& gradients) {
  const auto requests = requests_for(step, rate, gradients);
  fan_->run([&](int server) { channels_[server]->request(Request::Push, encode(requests[server])); });
}

void Client::push_nothing(int64_t step) {
  const std::string request = encode(PushRequest{.step = step, .sequence = next_push_++, .skips = true});
  fan_->run([&](int server) { channels_[server]->request(Request::Push, request); });
}

void Client::add_deltas(int64_t step, const std::vector<Rows>& deltas) {
  const auto requests = requests_for(step, 0, deltas);
  fan_->run([&](int server) { channels_[server]->request(Request::AddDeltas, encode(requests[server])); });
}

void Client::pull_since(uint32_t table, std::vector<uint64_t>& versions,
                        const std::function<void(const RowBlock&)>& take) {
  const uint64_t size = row_bytes(table);
  std::mutex taking;  // `take` sees one block at a time
  fan_->run([&](int server) {
    bool more = true;
    while (more) {
      const ChangedRequest request{.table = table,
                                   .since = versions[server],
                                   .max_rows = static_cast<int64_t>(std::max<uint64_t>(kMessageBytes / size, 1))};
      ChangedRows rows = decode_changed(channels_[server]->request(Request::PullChanged, encode(request)), size);
      versions[server] = rows.version;
      more = rows.more;
      const RowBlock block{.table = table, .ids = std::move(rows.ids), .values = std::move(rows.values)};
      const std::lock_guard lock(taking);
      if (!block.ids.empty()) take(block);
    }
  });
}

void Client::pull_changed(uint32_t table, const std::function<void(const RowBlock&)>& take) {
  ASSAY_CHECK(table < specs_.size(), "no such table");
  pull_since(table, versions_[table], take);
}

void Client::pull_all(uint32_t table, const std::function<void(const RowBlock&)>& take) {
  std::vector<uint64_t> versions(channels_.size(), 0);
  pull_since(table, versions, take);
}

void Client::barrier(std::optional<double> limit_s) {
  // One server counts; the others would only tell the same.
  const BarrierRequest request{.sequence = next_barrier_++, .limit_s = limit_s.value_or(options_.time_limit_s)};
  channels_[0]->request(Request::Barrier, encode(request), limit_s);
}

std::vector<std::string> Client::gather(const std::string& mine, bool patient) {
  const double limit_s = patient ? options_.connect_limit_s : options_.time_limit_s;
  const GatherRequest request{.barrier = {.sequence = next_barrier_++, .limit_s = limit_s, .for_the_lost = patient},
                              .text = mine};
  return decode_texts(channels_[0]->request(Request::Gather, encode(request), limit_s));
}

std::vector<std::string> Client::save(int64_t step) {
  std::vector<std::string> names(channels_.size());
  fan_->run(
      [&](int server) { names[server] = decode_text(channels_[server]->request(Request::Save, encode_step(step))); });
  return names;
}

std::vector<Json> Client::stats() {
  std::vector<Json> out(channels_.size());
  fan_->run([&](int server) {
    out[server] = parse_json(decode_text(channels_[server]->request(Request::Stats, {})), channels_[server]->name());
  });
  return out;
}

void Client::goodbye() {
  fan_->run([&](int server) { channels_[server]->request(Request::Goodbye, {}); });
}

void Client::fail(const std::string& reason) noexcept {
  constexpr double kLimitS = 2;
  for (const auto& channel : channels_) channel->try_request(Request::Fail, encode_text(reason), kLimitS);
}

void Client::stop_servers() {
  fan_->run([&](int server) { channels_[server]->request(Request::Stop, {}); });
}

int Client::num_reconnects() const {
  int sum = 0;
  for (const auto& channel : channels_) sum += channel->num_reconnects();
  return sum;
}

int64_t Client::bytes_moved() const {
  int64_t sum = 0;
  for (const auto& channel : channels_) sum += channel->bytes_sent() + channel->bytes_received();
  return sum;
}

}  // namespace assay::ps
