// What the processes of a job and their coordinator tell each other over the control channel. One place for message
// types and their fields.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/wire.h"

namespace assay::comm {

// Changes whenever a message changes, so that two versions refuse each other instead of misreading.
inline constexpr const char* kProtocolName = "assay-comm-2";

enum class ControlMessage : uint8_t {
  // from a process
  Hello = 1,  // kProtocolName, Member, world size
  Beat,
  Set,     // key, value
  Get,     // id, key: answered when the key is set
  Number,  // id, key: answered with a small number of the key's own, the same for all who ask
  Stuck,   // Activity of the call that has waited too long, seconds
  Status,  // query id, activities
  Fail,    // reason
  Leave,
  // from the coordinator
  Welcome,  // token, members
  Refuse,   // reason
  Busy,     // reason: an earlier job is here, which may soon be gone
  Value,    // id, value
  Query,    // query id
  Lost,     // reason
  Ended,
};

struct Member {
  int rank = 0;
  int pid = 0;
  std::string host;       // name, for messages
  std::string kernel;     // equal where shared memory is worth a try
  std::string address;    // where its peers reach it
  std::string interface;  // the interface of that address
  std::string transport;  // the transport it asks for; all must agree
};

// Where one process is in one group.
struct Activity {
  uint64_t group = 0;
  std::string group_name = {};
  std::vector<int> ranks = {};
  uint64_t number = 0;    // of the call, from 1; 0: none yet
  std::string kind = {};  // "all_reduce"
  std::string purpose = {};
  int64_t bytes = 0;
  bool waiting = false;
  double seconds = 0;  // in it
};

// "all_reduce #17 of dp (gradients of step 12)"
std::string call_text(const Activity& activity);

void encode(Encoder& out, const Member& member);
Member decode_member(Decoder& in);
void encode(Encoder& out, const Activity& activity);
Activity decode_activity(Decoder& in);
void encode(Encoder& out, const std::vector<Activity>& activities);
std::vector<Activity> decode_activities(Decoder& in);

inline Encoder message_of(ControlMessage type) { return Encoder(static_cast<uint8_t>(type)); }

// "rank 2", "ranks 2 and 3", "ranks 1, 2 and 3"
std::string ranks_text(const std::vector<int>& ranks);

// How often a process says that it lives, and after how much silence it is lost: sooner than a wait gives up, so that
// the error names who is gone.
inline double beat_interval(double time_limit_s) {
  return time_limit_s / 12 > 1 ? 1 : time_limit_s / 12 < 0.05 ? 0.05 : time_limit_s / 12;
}
inline double silence_limit(double time_limit_s) { return 0.7 * time_limit_s; }

}  // namespace assay::comm
