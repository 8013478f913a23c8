// A profile of a few training steps: every operator that libtorch runs in them, on every thread, as a Chrome trace
// (trace.json, for chrome://tracing or ui.perfetto.dev) and as a table of the most expensive ones (operators.txt).
// Debian's libtorch has no Kineto, so this uses the callbacks that Kineto would use.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/loop/observer.h"
#include "engine/options.h"

namespace assay {

// One call of an operator, or one step.
struct ProfileSpan {
  std::string name;
  uint64_t thread = 0;
  int64_t start_ns = 0;  // since the recording began
  int64_t duration_ns = 0;
  int64_t self_ns = 0;  // without the operators it called
  bool is_step = false;
};

std::string to_chrome_trace(const std::vector<ProfileSpan>& spans);
// Name, calls, self time, share of all self time; the most expensive first, at most `max_rows`.
std::string operator_table(const std::vector<ProfileSpan>& spans, size_t max_rows);

// Records while steps of the window run, writes when it has passed or training ends. Only one may record at a time.
class Profiler final : public EngineObserver {
 public:
  // The window's folder is where the files go.
  explicit Profiler(const EngineOptions::ProfileWindow& window) : window_(window) {}
  ~Profiler() override;
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  bool wants_step_events() const override { return true; }
  void on_event(std::string_view name, const Json& data) override;

 private:
  void begin_step(int64_t step);
  void end_step(int64_t steps_done);
  void write();

  EngineOptions::ProfileWindow window_;
  bool recording_ = false;
  uint64_t callback_ = 0;  // libtorch's handle while recording
  ProfileSpan step_;
};

}  // namespace assay
