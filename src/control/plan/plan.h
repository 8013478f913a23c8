// A plan: typed steps with dependencies. Front-ends make plans, the executor runs them; a plan knows no dialect and no
// launcher. It holds no path of the machine it was made on unless a user's configuration names one: commands run in the
// run folder and refer to each other's results as "steps/<n>-<name>/...", so a plan can be printed, compared and
// hashed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "record/log_pattern.h"
#include "site/site.h"
#include "verify/check.h"

namespace assay {

// What a step is for. Verify steps are judged by the control plane from the evidence of earlier steps; every other kind
// is a command, and the kind only says what its records mean.
enum class StepKind { Train, Evaluate, Export, Infer, Command, Verify };

std::string_view kind_name(StepKind kind);
StepKind step_kind_of(std::string_view name);  // throws DataError

// What runs. "assay-worker" is the worker that belongs to this program; anything else is looked up in PATH.
struct StepCommand {
  std::vector<std::string> argv = {};
  std::map<std::string, std::string> env = {};
  // Files of the run folder that it needs besides those that its words name: "code/plugin-1/acme.so".
  std::vector<std::string> code = {};
  // Every rank stands in a folder of its own (layout::work_folder) instead of the run folder, which "{run}" means in
  // its words and in its variables ASSAY_CASE_*.
  bool has_work_folder = false;

  // Folders of the run folder with the code of cases: those that its words and `code` name, "code/<model>".
  std::vector<std::string> code_folders() const;
};

// How many processes run it, and where.
struct StepRanks {
  int nproc = 1;  // per node
  // Of a job over several hosts, each of which runs this plan with its own node_rank; with on_hosts all of its nodes
  // are started by this plan, on hosts that are free then.
  int nnodes = 1;
  int node_rank = 0;
  bool on_hosts = false;
  // The last num_servers ranks are parameter servers, the others their trainers: launch/launcher.h.
  int num_servers = 0;
  // Whose variables the ranks get besides the usual ones: "paddle", "mindspore", "pytorch".
  std::string framework = {};

  int world_size() const { return nnodes * nproc; }
  int first_rank() const { return node_rank * nproc; }  // of the ranks on this host
  // The ranks whose files lie in the step's folder here: from first_rank() on.
  int num_ranks_here() const { return on_hosts ? world_size() : nproc; }
};

struct StepLimits {
  std::optional<double> time_limit_s = {};
  std::optional<double> stall_limit_s = {};  // without a new record or line of a log
  // How often it is begun again after a failure of the infrastructure: a host, a connection, a port.
  int retries = 0;
  // How often all ranks are started again after one of them was lost: killed, or out of touch with the others.
  int max_restarts = 0;
};

// Of a campaign: the case that a step measures.
struct StepCase {
  std::string key = {};  // empty: none
  int round = 0;         // 1 the first
};

struct StepFiles {
  std::map<std::string, Json> inputs = {};  // written into the step's folder before it starts: name -> content
  std::vector<std::string> outputs = {};    // relative to the step's folder; each must exist afterwards
  std::vector<std::string> collect = {};    // what comes back from far hosts: paths relative to the step's folder
  // Files and folders, relative to the run folder, that are removed when the step has passed, and its checks too.
  std::vector<std::string> discard = {};
};

struct Step {
  std::string name;  // unique in the plan: letters, digits, '-', '_'
  StepKind kind = StepKind::Command;
  std::vector<std::string> needs;  // steps that must pass first; each stands earlier in the plan
  StepCommand command;
  StepRanks ranks;
  StepLimits limits;
  StepCase measures;
  StepFiles files;
  std::vector<LogPattern> patterns;  // how records are found in the log of a program that writes none
  // A verify step is judged by its checks. Another step is not: what its checks find is written into its folder as soon
  // as it has passed, so that the large files they read may go.
  std::vector<Check> checks;
};

struct Plan {
  std::string title;
  std::string case_key;  // empty when the plan is not about one case
  std::vector<Step> steps;
  // Where its steps on hosts run, and how; in its JSON this is "campaign". nullopt: it has none.
  std::optional<Site> site = std::nullopt;

  // Throws DataError naming the step: duplicate or bad names, unknown or later dependencies, a command without
  // arguments.
  void validate() const;
  const Step& step(std::string_view name) const;
  // Where the step that is added next will work.
  std::string next_folder(std::string_view step_name) const;
  // Where the step works, relative to the run folder: "steps/2-evaluate".
  std::string folder(std::string_view step_name) const;
  std::string hash() const;
};

Json to_json(const Plan& plan);
std::string plan_hash(const Json& plan);                    // SHA-256 of the JSON form
Plan plan_of(const Json& value, const std::string& where);  // throws DataError naming `where`; validates
// For people: one block per step, with its command, dependencies and limits.
std::string plan_text(const Plan& plan);

}  // namespace assay
