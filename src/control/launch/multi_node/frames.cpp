#include "launch/multi_node/frames.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_fields.h"

namespace assay {

namespace {

constexpr std::string_view kHello = "{\"assay-relay\":";
constexpr size_t kMaxChatter = 1 << 20;  // before the hello

Frame header_of(const Json& value) {
  JsonFields fields(value, "a relay's frame");
  Frame out;
  const auto with_bytes = [&] { return static_cast<size_t>(fields.integer("bytes", 0, kMaxFrameBytes)); };
  if (fields.has("assay-relay")) {
    out.kind = Frame::Kind::Hello;
    fields.integer("assay-relay", kRelayFormat, kRelayFormat);
    out.text = fields.text("version", 256);
  } else if (fields.has("file")) {
    out.kind = fields.has("cut") ? Frame::Kind::Cut : Frame::Kind::Bytes;
    out.file = fields.text("file", 256);
    out.offset = fields.integer("offset", 0, INT64_MAX / 2);
    if (out.kind == Frame::Kind::Cut) {
      fields.truth("cut");
    } else {
      out.bytes.resize(with_bytes());
    }
  } else if (fields.has("state")) {
    out.kind = Frame::Kind::State;
    fields.truth("state");
    out.bytes.resize(with_bytes());
  } else if (fields.has("gone")) {
    out.kind = Frame::Kind::Gone;
    out.text = fields.text("gone", kMaxFrameLine);
  } else if (fields.has("beat")) {
    fields.truth("beat");
  } else {
    throw DataError("a relay's frame: says nothing that is known here");
  }
  fields.end();
  return out;
}

}  // namespace

std::string encode_frame(const Frame& frame) {
  Json header;
  switch (frame.kind) {
    case Frame::Kind::Hello: header = {{"assay-relay", kRelayFormat}, {"version", frame.text}}; break;
    case Frame::Kind::Bytes:
      header = {{"file", frame.file}, {"offset", frame.offset}, {"bytes", frame.bytes.size()}};
      break;
    case Frame::Kind::Cut: header = {{"file", frame.file}, {"offset", frame.offset}, {"cut", true}}; break;
    case Frame::Kind::State: header = {{"state", true}, {"bytes", frame.bytes.size()}}; break;
    case Frame::Kind::Beat: header = {{"beat", true}}; break;
    case Frame::Kind::Gone: header = {{"gone", frame.text.substr(0, kMaxFrameLine / 4)}}; break;
  }
  return to_line(header) + "\n" + frame.bytes;
}

std::optional<Frame> FrameReader::next() {
  if (!greeted_) {
    // At the start of a line, whatever was said before it.
    size_t at = buffer_.rfind(kHello, 0) == 0 ? 0 : buffer_.find("\n" + std::string(kHello));
    if (at == std::string::npos) {
      if (buffer_.size() > kMaxChatter) throw DataError("no relay there, but something that says a lot");
      return std::nullopt;
    }
    buffer_.erase(0, at == 0 ? 0 : at + 1);
  }
  const size_t end = buffer_.find('\n');
  if (end == std::string::npos || end > kMaxFrameLine) {
    if (buffer_.size() > kMaxFrameLine) throw DataError("a relay's frame: its first line does not end");
    return std::nullopt;
  }
  Frame frame = header_of(parse_json(std::string_view(buffer_).substr(0, end), "a relay's frame"));
  if (buffer_.size() - end - 1 < frame.bytes.size()) return std::nullopt;
  greeted_ = true;
  frame.bytes = buffer_.substr(end + 1, frame.bytes.size());
  buffer_.erase(0, end + 1 + frame.bytes.size());
  return frame;
}

std::string encode_have(const std::map<std::string, int64_t>& have) { return to_line({{"have", have}}) + "\n"; }

std::map<std::string, int64_t> decode_have(std::string_view line) {
  const std::string where = "the first line to a relay";
  const Json value = parse_json(line, where);
  JsonFields fields(value, where);
  std::map<std::string, int64_t> out;
  for (const auto& [name, size] : fields.object("have").items()) {
    if (!size.is_number_integer() || size.get<int64_t>() < 0) fields.fail("have." + name, "must be a size in bytes");
    out[name] = size.get<int64_t>();
  }
  fields.end();
  return out;
}

}  // namespace assay
