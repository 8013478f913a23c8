// The answer to one question about a run. A verdict is computed from records and files of the run folder alone, so it
// can be computed again elsewhere from the evidence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace assay {

enum class Outcome {
  Pass,
  Fail,     // measured, and not good enough
  Invalid,  // nothing was run or measured: no statement is possible
  Error,    // a step broke: crash, time limit, bad configuration
  Skipped,  // deliberately not run, or what it needed did not pass
};

std::string_view outcome_name(Outcome outcome);  // "Pass", ...
Outcome outcome_of(std::string_view name);       // throws DataError
Outcome worst(
    const std::vector<Outcome>& outcomes);  // Error > Fail > Invalid > Pass; Skipped alone: Invalid; none: Invalid
int exit_code(Outcome outcome);             // 0, 1, 3 as the architecture defines

struct Verdict {
  std::string name;  // "accuracy reaches its target"
  Outcome outcome = Outcome::Invalid;
  std::string reason;             // one sentence with the figures: "0.9132 >= 0.9000"
  Json figures = Json::object();  // name -> number, null where not measured
  // Its place in the table of the run's verdicts; empty: none.
  std::string row = {};
  std::string column = {};
};

Json to_json(const Verdict& verdict);
Verdict verdict_of(const Json& value);

}  // namespace assay
