#include "param_server/messages.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace assay::ps {

namespace {

constexpr size_t kMaxText = 16384;

void put_rows(Encoder& out, const RowBlock& block) {
  out.put(block.table);
  out.put_ids(block.ids);
  out.put_bytes(block.values.data(), block.values.size());
}

RowBlock get_rows(Decoder& in, const RowBytes& row_bytes) {
  RowBlock block;
  block.table = in.get<uint32_t>();
  const uint64_t size = row_bytes(block.table);
  block.ids = in.get_ids();
  block.values = in.get_bytes(block.ids.size(), size);
  return block;
}

uint32_t get_count(Decoder& in, uint64_t limit, uint64_t least_bytes, const char* what) {
  const auto count = in.get<uint32_t>();
  if (count > limit || count > in.size() / least_bytes) {
    throw CommunicationError(fmt::format("a message claims {} {}", count, what));
  }
  return count;
}

double get_number(Decoder& in, const char* what) {
  const auto value = in.get<double>();
  if (!std::isfinite(value)) throw CommunicationError(fmt::format("{} is not a number", what));
  return value;
}

int get_index(Decoder& in, int limit, const char* what) {
  const auto value = in.get<uint32_t>();
  if (value > static_cast<uint32_t>(limit)) throw CommunicationError(fmt::format("{} is {}", what, value));
  return static_cast<int>(value);
}

int64_t get_step(Decoder& in) {
  const auto step = in.get<int64_t>();
  if (step < 0) throw CommunicationError(fmt::format("invalid step {}", step));
  return step;
}

void put_barrier(Encoder& out, const BarrierRequest& request) {
  out.put(request.sequence);
  out.put(request.limit_s);
  out.put(static_cast<uint8_t>(request.for_the_lost));
}

BarrierRequest get_barrier(Decoder& in) {
  BarrierRequest request;
  request.sequence = in.get<uint64_t>();
  request.limit_s = get_number(in, "the time limit of a barrier");
  request.for_the_lost = in.get<uint8_t>() != 0;
  return request;
}

void put_long_text(Encoder& out, std::string_view text) {
  out.put(static_cast<uint64_t>(text.size()));
  out.put_bytes(text.data(), text.size());
}

std::string get_long_text(Decoder& in) {
  const auto size = in.get<uint64_t>();
  const std::vector<std::byte> bytes = in.get_bytes(size, 1);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void put_spec(Encoder& out, const TableSpec& spec) {
  out.put_text(spec.name);
  out.put(spec.width);
  out.put(spec.element);
  out.put(spec.init.kind);
  out.put(spec.init.scale);
  out.put(spec.init.seed);
  out.put_text(spec.update.name);
  for (const double value :
       {spec.update.weight_decay, spec.update.momentum, spec.update.beta1, spec.update.beta2, spec.update.epsilon}) {
    out.put(value);
  }
}

TableSpec get_spec(Decoder& in) {
  TableSpec spec;
  spec.name = in.get_text(kMaxNameSize);
  spec.width = in.get<int64_t>();
  spec.element = static_cast<Element>(in.get<uint8_t>());
  spec.init.kind = static_cast<InitRule::Kind>(in.get<uint8_t>());
  spec.init.scale = in.get<double>();
  spec.init.seed = in.get<uint64_t>();
  spec.update.name = in.get_text(kMaxNameSize);
  for (double* value : {&spec.update.weight_decay, &spec.update.momentum, &spec.update.beta1, &spec.update.beta2,
                        &spec.update.epsilon}) {
    *value = in.get<double>();
  }
  check_spec(spec);
  return spec;
}

// A message that is nothing but what `write` puts into it.
template <typename Write>
std::string encode_with(const Write& write) {
  Encoder out;
  write(out);
  return std::move(out.text());
}

// What `read` gets from a message, of which nothing may be left over.
template <typename Read>
auto decode_with(std::string_view payload, const Read& read) {
  Decoder in(payload);
  auto value = read(in);
  in.finish();
  return value;
}

template <typename Items, typename Put>
void put_list(Encoder& out, const Items& items, const Put& put) {
  out.put(static_cast<uint32_t>(items.size()));
  for (const auto& item : items) put(out, item);
}

struct ListLimit {
  uint64_t max_items;
  uint64_t min_bytes;  // of an item
  const char* what;
};
template <typename Get>
auto get_list(Decoder& in, const ListLimit& limit, const Get& get) {
  std::vector<decltype(get(in))> items;
  const uint32_t count = get_count(in, limit.max_items, limit.min_bytes, limit.what);
  for (uint32_t i = 0; i < count; ++i) items.push_back(get(in));
  return items;
}

void put_part(Encoder& out, const PullRequest::Part& part) {
  out.put(part.table);
  out.put_ids(part.ids);
}

PullRequest::Part get_part(Decoder& in) {
  PullRequest::Part part;
  part.table = in.get<uint32_t>();
  part.ids = in.get_ids();
  return part;
}

}  // namespace

std::string name_of(Request request) {
  switch (request) {
    case Request::Hello: return "hello";
    case Request::CreateTables: return "create tables";
    case Request::Start: return "start";
    case Request::Init: return "init";
    case Request::Pull: return "pull";
    case Request::Push: return "push";
    case Request::AddDeltas: return "add deltas";
    case Request::PullChanged: return "pull changed";
    case Request::Barrier: return "barrier";
    case Request::Gather: return "gather";
    case Request::Save: return "save";
    case Request::Stats: return "stats";
    case Request::Fail: return "fail";
    case Request::Goodbye: return "goodbye";
    case Request::Stop: return "stop";
  }
  return fmt::format("request {}", static_cast<int>(request));
}

std::string encode(const Hello& hello) {
  return encode_with([&](Encoder& out) {
    out.put(static_cast<uint32_t>(hello.trainer));
    out.put(static_cast<uint32_t>(hello.num_trainers));
    out.put(static_cast<uint32_t>(hello.server));
    out.put(static_cast<uint32_t>(hello.num_servers));
    out.put(hello.mode);
    out.put_text(hello.job);
    out.put(hello.instance);
  });
}

Hello decode_hello(std::string_view payload) {
  return decode_with(payload, [&](Decoder& in) {
    Hello hello;
    hello.trainer = get_index(in, kMaxTrainers, "the number of a trainer");
    hello.num_trainers = get_index(in, kMaxTrainers, "the number of trainers");
    hello.server = get_index(in, kMaxServers, "the number of a server");
    hello.num_servers = get_index(in, kMaxServers, "the number of servers");
    const auto mode = in.get<uint8_t>();
    if (mode > static_cast<uint8_t>(Mode::Geo)) throw CommunicationError(fmt::format("a mode {}", mode));
    hello.mode = static_cast<Mode>(mode);
    hello.job = in.get_text(kMaxNameSize);
    hello.instance = in.get<uint64_t>();
    return hello;
  });
}

std::string encode(const HelloReply& reply) {
  return encode_with([&](Encoder& out) {
    out.put(reply.step);
    out.put(reply.restored_step);
  });
}

HelloReply decode_hello_reply(std::string_view payload) {
  return decode_with(payload, [&](Decoder& in) {
    HelloReply reply;
    reply.step = get_step(in);
    reply.restored_step = in.get<int64_t>();
    return reply;
  });
}

std::string encode(const std::vector<TableSpec>& specs) {
  return encode_with([&](Encoder& out) { put_list(out, specs, put_spec); });
}

std::vector<TableSpec> decode_specs(std::string_view payload) {
  return decode_with(payload, [](Decoder& in) { return get_list(in, {kMaxTables, 1, "tables"}, get_spec); });
}

std::string encode(const PullRequest& request) {
  return encode_with([&](Encoder& out) {
    out.put(request.step);
    put_list(out, request.parts, put_part);
  });
}

PullRequest decode_pull(std::string_view payload) {
  return decode_with(payload, [&](Decoder& in) {
    PullRequest request;
    request.step = get_step(in);
    request.parts = get_list(in, {kMaxTables, 12, "tables"}, get_part);
    return request;
  });
}

std::string encode(const std::vector<PulledPart>& parts) {
  return encode_with([&](Encoder& out) {
    for (const PulledPart& part : parts) {
      out.put_bytes(part.present.data(), part.present.size());
      out.put_bytes(part.values.data(), part.values.size());
    }
  });
}

std::vector<PulledPart> decode_pulled(std::string_view payload, const PullRequest& request, const RowBytes& row_bytes) {
  return decode_with(payload, [&](Decoder& in) {
    std::vector<PulledPart> parts;
    for (const PullRequest::Part& requested : request.parts) {
      PulledPart part;
      for (const std::byte flag : in.get_bytes(requested.ids.size(), 1)) part.present.push_back(flag != std::byte{0});
      part.values = in.get_bytes(requested.ids.size(), row_bytes(requested.table));
      parts.push_back(std::move(part));
    }
    return parts;
  });
}

std::string encode(const PushRequest& request) {
  return encode_with([&](Encoder& out) {
    out.put(request.step);
    out.put(request.sequence);
    out.put(request.rate);
    out.put(static_cast<uint8_t>(request.skips));
    put_list(out, request.blocks, put_rows);
  });
}

PushRequest decode_push(std::string_view payload, const RowBytes& row_bytes) {
  return decode_with(payload, [&](Decoder& in) {
    PushRequest request;
    request.step = get_step(in);
    request.sequence = in.get<uint64_t>();
    request.rate = get_number(in, "the learning rate of a push");
    request.skips = in.get<uint8_t>() != 0;
    request.blocks =
        get_list(in, {kMaxTables, 12, "blocks of rows"}, [&](Decoder& d) { return get_rows(d, row_bytes); });
    return request;
  });
}

std::string encode(const RowBlock& block) {
  return encode_with([&](Encoder& out) { put_rows(out, block); });
}

RowBlock decode_block(std::string_view payload, const RowBytes& row_bytes) {
  return decode_with(payload, [&](Decoder& in) { return get_rows(in, row_bytes); });
}

std::string encode(const ChangedRequest& request) {
  return encode_with([&](Encoder& out) {
    out.put(request.table);
    out.put(request.since);
    out.put(request.max_rows);
  });
}

ChangedRequest decode_changed_request(std::string_view payload) {
  return decode_with(payload, [&](Decoder& in) {
    ChangedRequest request;
    request.table = in.get<uint32_t>();
    request.since = in.get<uint64_t>();
    request.max_rows = in.get<int64_t>();
    if (request.max_rows < 1) throw CommunicationError(fmt::format("invalid limit of {} rows", request.max_rows));
    return request;
  });
}

std::string encode(const ChangedRows& rows) {
  return encode_with([&](Encoder& out) {
    out.put(rows.version);
    out.put(static_cast<uint8_t>(rows.more));
    out.put_ids(rows.ids);
    out.put_bytes(rows.values.data(), rows.values.size());
  });
}

ChangedRows decode_changed(std::string_view payload, uint64_t row_bytes) {
  return decode_with(payload, [&](Decoder& in) {
    ChangedRows rows;
    rows.version = in.get<uint64_t>();
    rows.more = in.get<uint8_t>() != 0;
    rows.ids = in.get_ids();
    rows.values = in.get_bytes(rows.ids.size(), row_bytes);
    return rows;
  });
}

std::string encode(const BarrierRequest& request) {
  return encode_with([&](Encoder& out) { put_barrier(out, request); });
}

BarrierRequest decode_barrier(std::string_view payload) { return decode_with(payload, get_barrier); }

std::string encode(const GatherRequest& request) {
  return encode_with([&](Encoder& out) {
    put_barrier(out, request.barrier);
    put_long_text(out, request.text);
  });
}

GatherRequest decode_gather(std::string_view payload) {
  return decode_with(payload, [&](Decoder& in) {
    GatherRequest request;
    request.barrier = get_barrier(in);
    request.text = get_long_text(in);
    return request;
  });
}

std::string encode(const std::vector<std::string>& texts) {
  return encode_with([&](Encoder& out) { put_list(out, texts, put_long_text); });
}

std::vector<std::string> decode_texts(std::string_view payload) {
  return decode_with(payload, [](Decoder& in) {
    return get_list(in, {kMaxTrainers, sizeof(uint64_t), "texts"}, get_long_text);
  });
}

std::string encode(const StartRequest& request) {
  return encode_with([&](Encoder& out) {
    out.put(request.step);
    put_barrier(out, request.barrier);
  });
}

StartRequest decode_start(std::string_view payload) {
  return decode_with(payload, [&](Decoder& in) {
    StartRequest request;
    request.step = get_step(in);
    request.barrier = get_barrier(in);
    return request;
  });
}

std::string encode_step(int64_t step) {
  return encode_with([&](Encoder& out) { out.put(step); });
}

int64_t decode_step(std::string_view payload) { return decode_with(payload, get_step); }

std::string encode_text(std::string_view text) {
  return encode_with([&](Encoder& out) { out.put_text(text.substr(0, kMaxText)); });
}

std::string decode_text(std::string_view payload) {
  return decode_with(payload, [&](Decoder& in) { return valid_utf8(in.get_text(kMaxText)); });
}

std::string encode_error(const std::exception& error) {
  const auto* typed = dynamic_cast<const Error*>(&error);
  ErrorKind kind = typed ? typed->kind() : ErrorKind::Internal;
  if (dynamic_cast<const std::bad_alloc*>(&error)) kind = ErrorKind::OutOfMemory;
  Encoder out;
  out.put(static_cast<uint8_t>(kind));
  out.put_text(std::string_view(error.what()).substr(0, kMaxText));
  return std::move(out.text());
}

void throw_error(std::string_view payload, const std::string& where) {
  Decoder in(payload);
  const auto kind = in.get<uint8_t>();
  const std::string message = where + ": " + valid_utf8(in.get_text(kMaxText));
  switch (static_cast<ErrorKind>(kind)) {
    case ErrorKind::Config: throw ConfigError(message);
    case ErrorKind::Data: throw DataError(message);
    case ErrorKind::Infrastructure: throw InfrastructureError(message);
    case ErrorKind::OutOfMemory: throw OutOfMemoryError(message);
    default: throw CommunicationError(message);
  }
}

}  // namespace assay::ps
