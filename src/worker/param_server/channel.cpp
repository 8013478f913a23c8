#include "param_server/channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/error.h"

namespace assay::ps {

namespace {

constexpr double kPauseS = 0.1;
// What an answer may take beyond the time that the server waits for others: the way, and the work.
double margin_s(double limit_s) { return std::min(10.0, 0.3 * limit_s); }

}  // namespace

std::string Channel::name() const {
  return fmt::format("parameter server {} at {}", options_.hello.server, options_.endpoint.text());
}

void Channel::connect() { connect_until(after(options_.connect_limit_s)); }

void Channel::connect_until(Deadline deadline) {
  while (true) {
    std::string reason;
    try {
      return connect_once(deadline);
    } catch (const CommunicationError& error) {  // not yet there, or an earlier connection of ours not yet gone
      reason = error.what();
    } catch (const TimeoutError& error) {
      reason = error.what();
    }
    fd_.reset();
    if (Clock::now() + std::chrono::duration<double>(kPauseS) >= deadline) {
      throw CommunicationError(fmt::format("{} cannot be reached: {}", name(), reason));
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(kPauseS));
  }
}

void Channel::connect_once(Deadline deadline) {
  fd_ = connect_to(options_.endpoint, deadline);
  last_hello_ = decode_hello_reply(exchange(Request::Hello, encode(options_.hello), deadline));
  if (!tables_.empty()) exchange(Request::CreateTables, tables_, deadline);
}

void Channel::create_tables(const std::vector<TableSpec>& specs) {
  tables_ = encode(specs);
  request(Request::CreateTables, tables_);
}

std::string Channel::exchange(Request request, std::string_view payload, Deadline deadline) {
  if (payload.size() > options_.max_frame_bytes) {
    throw ConfigError(fmt::format("{}: a message of {} MB, the limit is {} MB: use more servers", name(),
                                  payload.size() >> 20, options_.max_frame_bytes >> 20));
  }
  const uint64_t id = next_id_++;
  send_frame(fd_.get(), static_cast<uint16_t>(request), id, payload, deadline);
  Frame frame = receive_frame(
      fd_.get(), {.first = deadline, .stall_s = options_.time_limit_s, .max_payload = options_.max_frame_bytes});
  bytes_sent_ += static_cast<int64_t>(payload.size() + kHeaderSize);
  bytes_received_ += static_cast<int64_t>(frame.payload.size() + kHeaderSize);
  if (frame.header.request_id != id) {
    throw ConnectionLost(fmt::format("an answer to request {} instead of {}", frame.header.request_id, id));
  }
  if (frame.header.kind == kReplyError) throw_error(frame.payload, name());
  return std::move(frame.payload);
}

std::string Channel::request(Request request, std::string_view payload, std::optional<double> limit_s) {
  std::optional<Deadline> back_until;  // set while the server is away
  while (true) {
    std::string reason;
    try {
      if (!fd_) {
        connect_until(back_until.value_or(after(options_.time_limit_s)));
        ++num_reconnects_;
      }
      const double wait_s = limit_s.value_or(options_.time_limit_s);
      return exchange(request, payload, after(wait_s + margin_s(options_.time_limit_s)));
    } catch (const ConnectionLost& error) {
      reason = error.what();
    } catch (const TimeoutError& error) {
      fd_.reset();
      throw CommunicationError(fmt::format("{} does not answer ({}): {}", name(), name_of(request), error.what()));
    }
    fd_.reset();
    if (!back_until) back_until = after(options_.time_limit_s);
    if (Clock::now() >= *back_until) {
      throw CommunicationError(fmt::format("{} was lost ({}): {}", name(), name_of(request), reason));
    }
  }
}

void Channel::try_request(Request request, std::string_view payload, double limit_s) noexcept {
  try {
    if (fd_) exchange(request, payload, after(limit_s));
  } catch (const std::exception&) {
    fd_.reset();
  }
}

}  // namespace assay::ps
