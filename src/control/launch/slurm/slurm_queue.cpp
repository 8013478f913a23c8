#include "launch/slurm/slurm_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"

namespace assay {

namespace {

constexpr double kSlurmLimit = 60;  // seconds for one command; Slurm's own limits are shorter
constexpr const char* kSqueueFormat = "%i|%T|%r|%N";

template <size_t N>
bool is_one_of(const std::string& word, const std::array<const char*, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// What a command of Slurm has to say, without its own name at the front of every line.
std::string slurm_words(const CapturedOutput& output) {
  std::vector<std::string> lines;
  for (const std::string& line : split(output.err, '\n')) {
    std::string_view rest = trim(line);
    for (const std::string_view prefix : {"sbatch: ", "squeue: ", "scontrol: ", "error: "}) {
      if (rest.substr(0, prefix.size()) == prefix) rest.remove_prefix(prefix.size());
    }
    if (!rest.empty()) lines.push_back(valid_utf8(rest));
  }
  return lines.empty() ? output.status.text() : join(lines, "; ");
}

CapturedOutput ask_slurm(const std::vector<std::string>& argv) {
  try {
    return capture({.argv = argv}, kSlurmLimit);
  } catch (const InfrastructureError& error) {
    throw InfrastructureError(
        fmt::format("{}; install Slurm's commands (package slurm-client) and see that they reach "
                    "its controller",
                    error.what()));
  }
}

Process start_question(const std::string& job_id, const fs::path& output) {
  return Process::start(
      {.argv = {"squeue", "--noheader", "--states=all", "--jobs=" + job_id, fmt::format("--format={}", kSqueueFormat)},
       .output_file = output});
}

// "Nodes=n[1-4]" of a line of scontrol.
std::string scontrol_field(std::string_view text, std::string_view name) {
  for (const std::string& word : split(text, ' ')) {
    if (word.size() > name.size() && word.compare(0, name.size(), name) == 0 && word[name.size()] == '=') {
      return std::string(trim(word.substr(name.size() + 1)));
    }
  }
  return "";
}

}  // namespace

bool SlurmJob::final() const {
  static constexpr std::array kFinal = {"COMPLETED", "FAILED",        "CANCELLED", "TIMEOUT",  "NODE_FAIL",
                                        "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED"};
  return is_one_of(state, kFinal);
}

bool SlurmJob::hopeless() const {
  static constexpr std::array kHopeless = {"PartitionConfig",         "PartitionNodeLimit",
                                           "PartitionTimeLimit",      "BadConstraints",
                                           "InvalidAccount",          "InvalidQOS",
                                           "AccountNotAllowed",       "QOSNotAllowed",
                                           "JobLaunchFailure",        "launch_failed_requeued_held",
                                           "DependencyNeverSatisfied"};
  return pending() && is_one_of(reason, kHopeless);
}

std::optional<SlurmJob> slurm_job_of_line(std::string_view line) {
  const auto fields = split(trim(line), '|');
  if (fields.size() != 4 || !parse_int(fields[0]) || fields[1].empty()) return std::nullopt;
  return SlurmJob{.id = fields[0], .state = fields[1], .reason = valid_utf8(fields[2]), .nodes = valid_utf8(fields[3])};
}

std::string submit_slurm_job(const std::vector<std::string>& options, const std::vector<std::string>& script) {
  std::vector<std::string> argv = {"sbatch", "--parsable"};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.insert(argv.end(), script.begin(), script.end());
  const CapturedOutput output = ask_slurm(argv);
  if (!output.status.ok()) throw InfrastructureError(fmt::format("Slurm refused the job: {}", slurm_words(output)));
  const std::string id = split(trim(output.out), ';').at(0);  // "12" or "12;cluster"
  if (!parse_int(id)) {
    throw InfrastructureError(fmt::format("sbatch printed no number of a job but '{}'", valid_utf8(trim(output.out))));
  }
  return id;
}

void cancel_slurm_job(const std::string& id) {
  try {
    ask_slurm({"scancel", id});
  } catch (const Error&) {  // the lease ends it
  }
}

std::optional<SlurmJob> find_slurm_job(const std::string& name) {
  const CapturedOutput output =
      ask_slurm({"squeue", "--noheader", "--states=all", "--name=" + name, fmt::format("--format={}", kSqueueFormat)});
  if (!output.status.ok()) throw InfrastructureError(fmt::format("Slurm does not answer: {}", slurm_words(output)));
  std::optional<SlurmJob> newest;
  for (const std::string& line : split(output.out, '\n')) {
    const auto job = slurm_job_of_line(line);
    if (job && (!newest || *parse_int(job->id) > *parse_int(newest->id))) newest = job;
  }
  return newest;
}

std::string slurm_partition_problem(const std::string& partition, int nnodes) {
  CapturedOutput output;
  try {
    std::vector<std::string> argv = {"scontrol", "--oneliner", "show", "partition"};
    if (!partition.empty()) argv.push_back(partition);
    output = ask_slurm(argv);
  } catch (const Error& error) {
    return error.what();
  }
  if (!output.status.ok()) {
    return partition.empty()
               ? fmt::format("Slurm does not answer: {}", slurm_words(output))
               : fmt::format("Slurm has no partition '{}' ({}); sinfo lists them", partition, slurm_words(output));
  }
  for (const std::string& line : split(output.out, '\n')) {
    const std::string name = scontrol_field(line, "PartitionName");
    if (name.empty() || (partition.empty() && scontrol_field(line, "Default") != "YES")) continue;
    const auto total = parse_int(scontrol_field(line, "TotalNodes"));
    if (total && *total < nnodes) {
      return fmt::format("partition '{}' has {} nodes, and {} are needed", name, *total, nnodes);
    }
    const std::string state = scontrol_field(line, "State");
    return state == "UP" ? "" : fmt::format("partition '{}' is not up but {}", name, state);
  }
  return partition.empty() ? "Slurm has no default partition: name one in the campaign (slurm: {partition: ...})" : "";
}

std::vector<std::string> idle_slurm_nodes(const std::string& partition, int most) {
  std::vector<std::string> argv = {"sinfo", "--noheader", "--Node", "--states=idle", "--format=%N"};
  if (!partition.empty()) argv.push_back("--partition=" + partition);
  const CapturedOutput output = ask_slurm(argv);
  if (!output.status.ok()) throw InfrastructureError("Slurm does not answer: " + slurm_words(output));
  std::vector<std::string> nodes;
  for (const std::string& line : split(output.out, '\n')) {
    const std::string name(trim(line));
    const bool is_new = !name.empty() && std::find(nodes.begin(), nodes.end(), name) == nodes.end();
    if (is_new && static_cast<int>(nodes.size()) < most) nodes.push_back(name);
  }
  return nodes;
}

SlurmQuestion::SlurmQuestion(const std::string& job_id)
    : folder_("assay-slurm"), process_(start_question(job_id, folder_.path() / "answer")), job_id_(job_id) {}

std::optional<SlurmQuestion::Answer> SlurmQuestion::poll() {
  const auto status = process_.poll();
  if (!status) return std::nullopt;
  Answer answer;
  const std::string text = read_file(folder_.path() / "answer");  // both outputs
  for (const std::string& line : split(text, '\n')) {
    const auto job = slurm_job_of_line(line);
    if (job && job->id == job_id_) answer.job = job;
  }
  answer.unknown_job = !answer.job && (status->ok() || text.find("Invalid job id") != std::string::npos);
  if (!answer.job) answer.error = valid_utf8(trim(text));
  return answer;
}

}  // namespace assay
