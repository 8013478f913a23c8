#include "engine/loop/profiler.h"

#include <ATen/record_function.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/time.h"
#include "record/json_text.h"
#include "record/keys.h"

namespace assay {

namespace {

constexpr double kNanoPerMilli = 1e6;
constexpr double kNanoPerMicro = 1e3;
constexpr size_t kRowsOnConsole = 15;

// libtorch's callbacks are plain functions, so what they write to is one place for the process. Other threads, such as
// a loader's, may be inside an operator when the recording ends, hence the lock.
struct Recording {
  std::mutex mutex;
  bool active = false;
  Stopwatch started;
  std::vector<ProfileSpan> spans;
};

Recording& recording() {
  static Recording the_recording;
  return the_recording;
}

int64_t nanoseconds_now() { return static_cast<int64_t>(recording().started.seconds() * 1e9); }

// Of the operators that are running on this thread, outermost first: time spent in what they called.
thread_local std::vector<int64_t> called_ns;

struct SpanContext final : at::ObserverContext {
  int64_t start_ns = 0;
};

std::unique_ptr<at::ObserverContext> operator_begins(const at::RecordFunction&) {
  called_ns.push_back(0);
  auto context = std::make_unique<SpanContext>();
  context->start_ns = nanoseconds_now();
  return context;
}

void operator_ends(const at::RecordFunction& function, at::ObserverContext* context) {
  const int64_t start_ns = static_cast<SpanContext*>(context)->start_ns;
  const int64_t duration_ns = nanoseconds_now() - start_ns;
  int64_t inner_ns = 0;
  if (!called_ns.empty()) {
    inner_ns = called_ns.back();
    called_ns.pop_back();
  }
  if (!called_ns.empty()) called_ns.back() += duration_ns;
  Recording& all = recording();
  std::lock_guard lock(all.mutex);
  if (!all.active) return;
  all.spans.push_back({.name = function.name(),
                       .thread = function.threadId(),
                       .start_ns = start_ns,
                       .duration_ns = duration_ns,
                       .self_ns = duration_ns - inner_ns});
}

void append_span(std::string& out, const ProfileSpan& span) {
  out += "{\"name\":";
  append_json_string(out, span.name);
  out +=
      fmt::format(R"(,"cat":"{}","ph":"X","pid":0,"tid":{},"ts":{:.3f},"dur":{:.3f}}})",
                  span.is_step ? "step" : "operator", span.thread, static_cast<double>(span.start_ns) / kNanoPerMicro,
                  static_cast<double>(span.duration_ns) / kNanoPerMicro);
}

}  // namespace

std::string to_chrome_trace(const std::vector<ProfileSpan>& spans) {
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  for (size_t i = 0; i < spans.size(); ++i) {
    text += i == 0 ? "\n" : ",\n";
    append_span(text, spans[i]);
  }
  return text + "\n]}\n";
}

std::string operator_table(const std::vector<ProfileSpan>& spans, size_t max_rows) {
  struct Row {
    std::string name;
    int64_t calls = 0;
    int64_t self_ns = 0;
  };
  std::map<std::string, Row> by_name;
  int64_t all_ns = 0;
  for (const ProfileSpan& span : spans) {
    if (span.is_step) continue;
    Row& row = by_name[span.name];
    row.name = span.name;
    ++row.calls;
    row.self_ns += span.self_ns;
    all_ns += span.self_ns;
  }
  std::vector<Row> rows;
  for (auto& [name, row] : by_name) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.self_ns > b.self_ns; });
  if (rows.size() > max_rows) rows.resize(max_rows);
  size_t width = std::string_view("operator").size();
  for (const Row& row : rows) width = std::max(width, row.name.size());
  std::string text = fmt::format("{:<{}}  {:>8}  {:>10}  {:>7}\n", "operator", width, "calls", "self ms", "share");
  for (const Row& row : rows) {
    text += fmt::format("{:<{}}  {:>8}  {:>10.3f}  {:>5.1f} %\n", row.name, width, row.calls,
                        static_cast<double>(row.self_ns) / kNanoPerMilli,
                        100 * static_cast<double>(row.self_ns) / static_cast<double>(std::max<int64_t>(all_ns, 1)));
  }
  return text;
}

Profiler::~Profiler() {
  if (!recording_) return;
  at::removeCallback(callback_);
  std::lock_guard lock(recording().mutex);
  recording().active = false;
}

void Profiler::on_event(std::string_view name, const Json& data) {
  if (name == keys::kStepBegin) begin_step(data.at(keys::kGlobalStep).get<int64_t>());
  if (name == keys::kStepEnd && recording_) end_step(data.at(keys::kGlobalStep).get<int64_t>());
  if (name == keys::kTrainEnd && recording_) write();
}

void Profiler::begin_step(int64_t step) {
  if (step < window_.first_step || step >= window_.end_step) return;
  if (!recording_) {
    Recording& all = recording();
    std::lock_guard lock(all.mutex);
    ASSAY_CHECK(!all.active, "two profiles at a time");
    all.active = true;
    all.started.restart();
    all.spans.clear();
    callback_ = at::addGlobalCallback(
        at::RecordFunctionCallback(operator_begins, operator_ends)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
    recording_ = true;
  }
  step_ = {.name = fmt::format("step {}", step),
           .thread = at::RecordFunction::currentThreadId(),
           .start_ns = nanoseconds_now(),
           .is_step = true};
}

void Profiler::end_step(int64_t steps_done) {
  step_.duration_ns = nanoseconds_now() - step_.start_ns;
  {
    std::lock_guard lock(recording().mutex);
    recording().spans.push_back(step_);
  }
  if (steps_done >= window_.end_step) write();
}

void Profiler::write() {
  at::removeCallback(callback_);
  recording_ = false;
  std::vector<ProfileSpan> spans;
  {
    std::lock_guard lock(recording().mutex);
    recording().active = false;
    spans.swap(recording().spans);
  }
  make_folder(window_.folder);
  write_file_atomic(window_.folder / "trace.json", to_chrome_trace(spans));
  write_file_atomic(window_.folder / "operators.txt", operator_table(spans, spans.size()));
  const std::string table = operator_table(spans, kRowsOnConsole);
  fmt::print("[profile] steps {} to {}, in {}\n{}", window_.first_step, window_.end_step - 1, window_.folder.string(),
             table);
  std::fflush(stdout);
}

}  // namespace assay
