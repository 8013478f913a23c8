#include "report/junit.h"

#include <fmt/format.h>

#include "base/time.h"
#include "layout/run_layout.h"
#include "report/escape.h"
#include "report/figures.h"
#include "report/formats/all.h"
#include "report/plain_text.h"
#include "run/run_folder.h"

namespace assay {

namespace {

struct Counts {
  size_t tests = 0;
  size_t failures = 0;
  size_t errors = 0;
  size_t skipped = 0;
  double seconds = 0;

  void add(Outcome outcome, std::optional<double> time) {
    ++tests;
    failures += outcome == Outcome::Fail ? 1 : 0;
    errors += outcome == Outcome::Error || outcome == Outcome::Invalid ? 1 : 0;
    skipped += outcome == Outcome::Skipped ? 1 : 0;
    if (time) seconds += *time;
  }
  std::string attributes() const {
    return fmt::format(R"(tests="{}" failures="{}" errors="{}" skipped="{}" time="{:.3f}")", tests, failures, errors,
                       skipped, seconds);
  }
};

struct TestCase {
  std::string group;  // "steps", "verdicts", "run"
  std::string name;
  Outcome outcome = Outcome::Invalid;
  std::string reason;
  std::optional<double> seconds;  // nullopt: no time attribute, since it was not measured
  std::vector<std::string> output;
};

std::string outcome_element(const TestCase& test) {
  if (test.outcome == Outcome::Pass) return "";
  const std::string reason = escape_markup(test.reason.empty() ? "no reason given" : test.reason);
  if (test.outcome == Outcome::Skipped) return fmt::format("      <skipped message=\"{}\"/>\n", reason);
  const char* element = test.outcome == Outcome::Fail ? "failure" : "error";
  return fmt::format("      <{0} message=\"{1}\" type=\"{2}\">{1}</{0}>\n", element, reason,
                     outcome_name(test.outcome));
}

std::string test_element(const RunView& run, const TestCase& test) {
  std::string out = fmt::format("    <testcase classname=\"assay.{}.{}\" name=\"{}\"", escape_markup(run.id),
                                test.group, escape_markup(test.name));
  if (test.seconds) out += fmt::format(" time=\"{:.3f}\"", *test.seconds);
  const std::string result = outcome_element(test);
  if (result.empty() && test.output.empty()) return out + "/>\n";
  out += ">\n" + result;
  if (!test.output.empty()) {
    out += "      <system-out>";
    for (const std::string& line : test.output) out += escape_markup(plain_log_line(line)) + "\n";
    out += "</system-out>\n";
  }
  return out + "    </testcase>\n";
}

std::optional<double> measured(std::optional<double> seconds) {
  return seconds && std::isfinite(*seconds) && *seconds >= 0 ? seconds : std::nullopt;
}

std::vector<TestCase> tests_of(const RunView& run) {
  std::vector<TestCase> tests;
  bool red = false;
  for (const StepView& step : run.steps) {
    tests.push_back({.group = "steps",
                     .name = fmt::format("{}-{}", step.number, step.name),
                     .outcome = step.outcome,
                     .reason = step.reason,
                     .seconds = measured(step.seconds),
                     .output = step.last_lines});
    if (step.outcome != Outcome::Pass && step.reason.empty()) tests.back().reason = exit_text(step);
    if (!step.restarts.empty()) tests.back().output.push_back(restarts_text(step.restarts));
  }
  for (const Verdict& verdict : run.verdicts) {
    tests.push_back({.group = "verdicts",
                     .name = verdict.name,
                     .outcome = verdict.outcome,
                     .reason = verdict.reason,
                     .seconds = std::nullopt,
                     .output = {}});
    if (verdict.outcome == Outcome::Pass && !verdict.reason.empty()) tests.back().output = {verdict.reason};
  }
  for (const TestCase& test : tests) red |= test.outcome != Outcome::Pass && test.outcome != Outcome::Skipped;
  if (run.outcome != Outcome::Pass && !red) {
    // A skipped run is no statement: it must not look like success either.
    const Outcome outcome = run.outcome == Outcome::Skipped ? Outcome::Invalid : run.outcome;
    tests.push_back({.group = "run",
                     .name = "run",
                     .outcome = outcome,
                     .reason = run.reason.empty() ? "nothing was run or measured" : run.reason,
                     .seconds = std::nullopt,
                     .output = {}});
  }
  return tests;
}

}  // namespace

std::string render_junit(const RunView& run) {
  const std::vector<TestCase> tests = tests_of(run);
  Counts counts;
  for (const TestCase& test : tests) counts.add(test.outcome, test.seconds);

  std::string time = utc_text(run.started_us);  // JUnit's timestamp has neither fraction nor zone
  time = time.substr(0, time.rfind('.'));
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += fmt::format("<testsuites name=\"assay\" {}>\n", counts.attributes());
  out += fmt::format("  <testsuite name=\"{}\" id=\"0\" timestamp=\"{}\" {}>\n",
                     escape_markup(run.title.empty() ? run.id : run.title), time, counts.attributes());
  out += "    <properties>\n";
  const std::pair<const char*, std::string> properties[] = {
      {"assay.run", run.id}, {"assay.command", run.command}, {"assay.outcome", std::string(outcome_name(run.outcome))}};
  for (const auto& [name, value] : properties) {
    out += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, escape_markup(value));
  }
  out += "    </properties>\n";
  for (const TestCase& test : tests) out += test_element(run, test);
  return out + "  </testsuite>\n</testsuites>\n";
}

namespace formats {

ReportFormat junit_format() {
  return {.name = "junit", .file = layout::kJunit, .render = [](const RunView& run, const PrintTarget&) {
            return render_junit(run);
          }};
}

}  // namespace formats

}  // namespace assay
