// The requests of the protocol and their answers, as values and as payloads. Decoding checks everything it can without
// knowing the tables; where the width of a row matters, the caller says it.
#pragma once

#include <functional>

#include "param_server/table.h"
#include "param_server/types.h"
#include "param_server/wire.h"

namespace assay::ps {

enum class Request : uint16_t {
  Hello = 2,  // who the peer is; the first of a connection
  CreateTables,
  Start,  // all trainers are at this step
  Init,
  Pull,
  Push,
  AddDeltas,
  PullChanged,
  Barrier,
  Gather,  // a barrier at which every trainer learns the words of all
  Save,
  Stats,
  Fail,     // the peer fails: the others need not wait for it
  Goodbye,  // the peer has ended well
  Stop,     // the server ends
};
std::string name_of(Request request);
inline constexpr uint16_t kReplyError = 0;
inline constexpr uint16_t kReplyOk = 1;

struct Hello {
  int trainer = 0;
  int num_trainers = 1;
  int server = 0;  // who the trainer thinks it talks to
  int num_servers = 1;
  Mode mode = Mode::Sync;
  std::string job;        // a secret of the job: a stranger does not know it
  uint64_t instance = 0;  // of the trainer: another one after a restart
  bool operator==(const Hello&) const = default;
};
struct HelloReply {
  int64_t step = 0;            // updates that the server has made
  int64_t restored_step = -1;  // the checkpoint that it started from; -1: none
};

// The bytes of a row of a table; throws when there is no such table.
using RowBytes = std::function<uint64_t(uint32_t)>;

struct PullRequest {
  int64_t step = 0;
  struct Part {
    uint32_t table = 0;
    std::vector<int64_t> ids;
  };
  std::vector<Part> parts;
};
struct PulledPart {
  std::vector<uint8_t> present;  // one per row
  std::vector<std::byte> values;
};
struct PushRequest {
  int64_t step = 0;
  uint64_t sequence = 0;  // counts the pushes of one trainer, so that one sent again is known
  double rate = 0;
  bool skips = false;  // a step without an update: the optimizers do not count it
  std::vector<RowBlock> blocks = {};
};
struct ChangedRequest {
  uint32_t table = 0;
  uint64_t since = 0;
  int64_t max_rows = 1;
};
struct BarrierRequest {
  uint64_t sequence = 0;  // counts those of one trainer, so that one sent again is known
  double limit_s = 0;
  bool for_the_lost = false;  // a trainer that was lost may come again: nobody gives up before the limit
};
struct GatherRequest {
  BarrierRequest barrier = {};
  std::string text;
};
struct StartRequest {
  int64_t step = 0;
  BarrierRequest barrier = {};
};

std::string encode(const Hello& hello);
Hello decode_hello(std::string_view payload);
std::string encode(const HelloReply& reply);
HelloReply decode_hello_reply(std::string_view payload);
std::string encode(const std::vector<TableSpec>& specs);
std::vector<TableSpec> decode_specs(std::string_view payload);
std::string encode(const PullRequest& request);
PullRequest decode_pull(std::string_view payload);
std::string encode(const std::vector<PulledPart>& parts);
std::vector<PulledPart> decode_pulled(std::string_view payload, const PullRequest& request, const RowBytes& row_bytes);
std::string encode(const PushRequest& request);
PushRequest decode_push(std::string_view payload, const RowBytes& row_bytes);
std::string encode(const RowBlock& block);
RowBlock decode_block(std::string_view payload, const RowBytes& row_bytes);
std::string encode(const ChangedRequest& request);
ChangedRequest decode_changed_request(std::string_view payload);
std::string encode(const ChangedRows& rows);
ChangedRows decode_changed(std::string_view payload, uint64_t row_bytes);
std::string encode(const BarrierRequest& request);
BarrierRequest decode_barrier(std::string_view payload);
std::string encode(const GatherRequest& request);
GatherRequest decode_gather(std::string_view payload);
std::string encode(const std::vector<std::string>& texts);
std::vector<std::string> decode_texts(std::string_view payload);
std::string encode(const StartRequest& request);
StartRequest decode_start(std::string_view payload);
std::string encode_step(int64_t step);
int64_t decode_step(std::string_view payload);
std::string encode_text(std::string_view text);
std::string decode_text(std::string_view payload);

// What a server answers when it cannot; the client throws it again, with its kind.
std::string encode_error(const std::exception& error);
[[noreturn]] void throw_error(std::string_view payload, const std::string& where);

}  // namespace assay::ps
