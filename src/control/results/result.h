// What one step of a run achieved. The one type from collection to every report: a row of the store where it measures a
// case, an entry of result.json where there is something to show. Plain data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "results/schema.h"
#include "verify/verdict.h"

namespace assay {

struct Result {
  std::string run;   // name of the run folder
  std::string step;  // unique in the run
  std::string case_key;
  int round = 0;  // of a campaign, from 1 on; 0: a run of its own
  std::string vendor;
  std::string division;            // "closed", "open"; empty: unknown
  std::string system;              // "AMD EPYC 7763, 64 cores; 8 x A100"; empty: unknown
  std::vector<std::string> hosts;  // that it ran on, in the order of nodes
  int nnodes = 1;
  int nproc = 1;  // on each
  int64_t started_us = 0;
  Outcome outcome = Outcome::Invalid;
  std::string reason;  // why it did not pass
  Figures figures;     // with the warnings about them
  Json target;         // {metric, value, goal}; null: none known
  Json hashes = Json::object();
  Json step_time;  // results/step_times.h; null: not measured
  Json suspect;    // why it should not be trusted, a list of sentences; null: nothing was noticed
  Json monitor;    // summary of what was sampled meanwhile; null: nothing was
  Json environment = Json::object();
  // It measures a case, and so is kept in the store; otherwise it is what a step besides reported, such as an
  // evaluation of the trained weights.
  bool is_measurement = false;
  // Its entry of result.json: what the program reported, with the figures above in our names. Reports show what stands
  // here, also what has no member. Null: nothing to show.
  Json shown = nullptr;

  int world_size() const { return nnodes * nproc; }
  bool is_suspect() const { return suspect.is_array() && !suspect.empty(); }
  bool passed() const { return outcome == Outcome::Pass; }
  std::string config_hash() const;  // of the case as it ran; empty: unknown
};

// All members, with the figures at the top level; what was not measured is null.
Json to_json(const Result& row);
// The way back from an entry of result.json, as far as it goes: what that does not say stays empty.
Result shown_result(const Json& shown);

}  // namespace assay
