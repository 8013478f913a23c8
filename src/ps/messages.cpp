#include "ps/messages.h"

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
  if (step < 0) throw CommunicationError(fmt::format("a step of {}", step));
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
  Encoder out;
  out.put(static_cast<uint32_t>(hello.trainer));
  out.put(static_cast<uint32_t>(hello.num_trainers));
  out.put(static_cast<uint32_t>(hello.server));
  out.put(static_cast<uint32_t>(hello.num_servers));
  out.put(hello.mode);
  out.put_text(hello.job);
  out.put(hello.instance);
  return std::move(out.text());
}

Hello decode_hello(std::string_view payload) {
  Decoder in(payload);
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
  in.finish();
  return hello;
}

std::string encode(const HelloReply& reply) {
  Encoder out;
  out.put(reply.step);
  out.put(reply.restored_step);
  return std::move(out.text());
}

HelloReply decode_hello_reply(std::string_view payload) {
  Decoder in(payload);
  HelloReply reply;
  reply.step = get_step(in);
  reply.restored_step = in.get<int64_t>();
  in.finish();
  return reply;
}

std::string encode(const std::vector<TableSpec>& specs) {
  Encoder out;
  out.put(static_cast<uint32_t>(specs.size()));
  for (const TableSpec& spec : specs) put_spec(out, spec);
  return std::move(out.text());
}

std::vector<TableSpec> decode_specs(std::string_view payload) {
  Decoder in(payload);
  std::vector<TableSpec> specs;
  const uint32_t count = get_count(in, kMaxTables, 1, "tables");
  for (uint32_t i = 0; i < count; ++i) specs.push_back(get_spec(in));
  in.finish();
  return specs;
}

std::string encode(const PullRequest& request) {
  Encoder out;
  out.put(request.step);
  out.put(static_cast<uint32_t>(request.parts.size()));
  for (const PullRequest::Part& part : request.parts) {
    out.put(part.table);
    out.put_ids(part.ids);
  }
  return std::move(out.text());
}

PullRequest decode_pull(std::string_view payload) {
  Decoder in(payload);
  PullRequest request;
  request.step = get_step(in);
  const uint32_t count = get_count(in, kMaxTables, 12, "tables");
  for (uint32_t i = 0; i < count; ++i) {
    PullRequest::Part part;
    part.table = in.get<uint32_t>();
    part.ids = in.get_ids();
    request.parts.push_back(std::move(part));
  }
  in.finish();
  return request;
}

std::string encode(const std::vector<PulledPart>& parts) {
  Encoder out;
  for (const PulledPart& part : parts) {
    out.put_bytes(part.present.data(), part.present.size());
    out.put_bytes(part.values.data(), part.values.size());
  }
  return std::move(out.text());
}

std::vector<PulledPart> decode_pulled(std::string_view payload, const PullRequest& request, const RowBytes& row_bytes) {
  Decoder in(payload);
  std::vector<PulledPart> parts;
  for (const PullRequest::Part& asked : request.parts) {
    PulledPart part;
    for (const std::byte flag : in.get_bytes(asked.ids.size(), 1)) part.present.push_back(flag != std::byte{0});
    part.values = in.get_bytes(asked.ids.size(), row_bytes(asked.table));
    parts.push_back(std::move(part));
  }
  in.finish();
  return parts;
}

std::string encode(const PushRequest& request) {
  Encoder out;
  out.put(request.step);
  out.put(request.sequence);
  out.put(request.rate);
  out.put(static_cast<uint8_t>(request.skips));
  out.put(static_cast<uint32_t>(request.blocks.size()));
  for (const RowBlock& block : request.blocks) put_rows(out, block);
  return std::move(out.text());
}

PushRequest decode_push(std::string_view payload, const RowBytes& row_bytes) {
  Decoder in(payload);
  PushRequest request;
  request.step = get_step(in);
  request.sequence = in.get<uint64_t>();
  request.rate = get_number(in, "the learning rate of a push");
  request.skips = in.get<uint8_t>() != 0;
  const uint32_t count = get_count(in, kMaxTables, 12, "blocks of rows");
  for (uint32_t i = 0; i < count; ++i) request.blocks.push_back(get_rows(in, row_bytes));
  in.finish();
  return request;
}

std::string encode(const RowBlock& block) {
  Encoder out;
  put_rows(out, block);
  return std::move(out.text());
}

RowBlock decode_block(std::string_view payload, const RowBytes& row_bytes) {
  Decoder in(payload);
  RowBlock block = get_rows(in, row_bytes);
  in.finish();
  return block;
}

std::string encode(const ChangedRequest& request) {
  Encoder out;
  out.put(request.table);
  out.put(request.since);
  out.put(request.max_rows);
  return std::move(out.text());
}

ChangedRequest decode_changed_request(std::string_view payload) {
  Decoder in(payload);
  ChangedRequest request;
  request.table = in.get<uint32_t>();
  request.since = in.get<uint64_t>();
  request.max_rows = in.get<int64_t>();
  if (request.max_rows < 1) throw CommunicationError(fmt::format("a limit of {} rows", request.max_rows));
  in.finish();
  return request;
}

std::string encode(const ChangedRows& rows) {
  Encoder out;
  out.put(rows.version);
  out.put(static_cast<uint8_t>(rows.more));
  out.put_ids(rows.ids);
  out.put_bytes(rows.values.data(), rows.values.size());
  return std::move(out.text());
}

ChangedRows decode_changed(std::string_view payload, uint64_t row_bytes) {
  Decoder in(payload);
  ChangedRows rows;
  rows.version = in.get<uint64_t>();
  rows.more = in.get<uint8_t>() != 0;
  rows.ids = in.get_ids();
  rows.values = in.get_bytes(rows.ids.size(), row_bytes);
  in.finish();
  return rows;
}

std::string encode(const BarrierRequest& request) {
  Encoder out;
  put_barrier(out, request);
  return std::move(out.text());
}

BarrierRequest decode_barrier(std::string_view payload) {
  Decoder in(payload);
  const BarrierRequest request = get_barrier(in);
  in.finish();
  return request;
}

std::string encode(const GatherRequest& request) {
  Encoder out;
  put_barrier(out, request.barrier);
  put_long_text(out, request.own);
  return std::move(out.text());
}

GatherRequest decode_gather(std::string_view payload) {
  Decoder in(payload);
  GatherRequest request;
  request.barrier = get_barrier(in);
  request.own = get_long_text(in);
  in.finish();
  return request;
}

std::string encode(const std::vector<std::string>& texts) {
  Encoder out;
  out.put(static_cast<uint32_t>(texts.size()));
  for (const std::string& text : texts) put_long_text(out, text);
  return std::move(out.text());
}

std::vector<std::string> decode_texts(std::string_view payload) {
  Decoder in(payload);
  std::vector<std::string> texts;
  const uint32_t count = get_count(in, kMaxTrainers, sizeof(uint64_t), "texts");
  for (uint32_t i = 0; i < count; ++i) texts.push_back(get_long_text(in));
  in.finish();
  return texts;
}

std::string encode(const StartRequest& request) {
  Encoder out;
  out.put(request.step);
  put_barrier(out, request.barrier);
  return std::move(out.text());
}

StartRequest decode_start(std::string_view payload) {
  Decoder in(payload);
  StartRequest request;
  request.step = get_step(in);
  request.barrier = get_barrier(in);
  in.finish();
  return request;
}

std::string encode_step(int64_t step) {
  Encoder out;
  out.put(step);
  return std::move(out.text());
}

int64_t decode_step(std::string_view payload) {
  Decoder in(payload);
  const int64_t step = get_step(in);
  in.finish();
  return step;
}

std::string encode_text(std::string_view text) {
  Encoder out;
  out.put_text(text.substr(0, kMaxText));
  return std::move(out.text());
}

std::string decode_text(std::string_view payload) {
  Decoder in(payload);
  std::string text = valid_utf8(in.get_text(kMaxText));
  in.finish();
  return text;
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
