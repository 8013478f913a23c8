// What a relay and a controller say to each other (relay.h). To the controller: frames, a line of JSON each, followed
// by bytes where it announces some. To the relay: lines. Neither side believes the other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "launch/launcher.h"

namespace assay {

inline constexpr int kRelayFormat = 1;
inline constexpr size_t kMaxFrameLine = 4096;
inline constexpr size_t kMaxFrameBytes = 1 << 20;

struct Frame {
  enum class Kind {
    Hello,  // the first: text is version and commit of the relay's program
    Bytes,  // `bytes` stand at `offset` of this attempt's part of `file`
    Cut,    // the file has become shorter: `offset` bytes of this attempt's part are left
    State,  // the state file as it is now, in `bytes`
    Beat,   // nothing new; the relay lives
    Gone,   // there is no supervisor, and no state that it ended: text says more
  };
  Kind kind = Kind::Beat;
  std::string file = {};
  int64_t offset = 0;
  std::string bytes = {};
  std::string text = {};
};

std::string encode_frame(const Frame& frame);

// Frames out of a stream, however it is cut. What comes before the hello (greetings of a shell) is passed over.
class FrameReader {
 public:
  void add(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame; nullopt: more bytes are needed. Throws DataError for what is no frame.
  std::optional<Frame> next();
  bool greeted() const { return greeted_; }

 private:
  std::string buffer_;
  bool greeted_ = false;
};

// The first line to a relay: how much of each file of this attempt there is already.
std::string encode_have(const std::map<std::string, int64_t>& have);
std::map<std::string, int64_t> decode_have(std::string_view line);  // throws DataError

}  // namespace assay
