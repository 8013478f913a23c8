#include "launch/slurm/slurm.h"

#include <fmt/format.h>

#include <unistd.h>

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "launch/host/job.h"
#include "launch/host/job_state.h"
#include "launch/slurm/slurm_place.h"
#include "launch/slurm/slurm_queue.h"
#include "launch/slurm/slurm_step.h"

namespace assay {

namespace {

// Values come as arguments, so that nothing has to be quoted: assay, the step's folder, the number of nodes.
constexpr const char* kBatchScript = R"(#!/bin/sh
# One supervisor a node; written by assay. Arguments: assay, the folder of the step, the number of nodes.
unset ASSAY_TREE
"$1" slurm place "$2" || exit $?
exec srun --nodes="$3" --ntasks="$3" --ntasks-per-node=1 --kill-on-bad-exit=0 --cpu-bind=none \
  "$1" slurm supervise "$2"
)";
// What the job gets beyond the step's limit, so that it is always assay that ends a step in time: to start, to be
// stopped, and for the lease.
constexpr double kSlurmExtraSeconds = 300;
constexpr size_t kMaxNoteBytes = 1 << 20;

std::string slurm_job_name(const LaunchRequest& request) {
  return fmt::format("assay-{}-{}-a{}", request.run_id, request.folder.filename().string(), request.attempt);
}

std::vector<std::string> sbatch_options(const SlurmOptions& options, const LaunchRequest& request) {
  std::vector<std::string> out = {
      "--no-requeue",
      "--job-name=" + slurm_job_name(request),
      fmt::format("--nodes={}", request.ranks.nnodes),
      "--ntasks-per-node=1",
      fmt::format("--cpus-per-task={}", request.ranks.nproc),
      "--chdir=" + request.command.cwd.string(),
      "--open-mode=append",
      "--output=" + (request.folder / slurm_log_name(request.attempt)).string(),
  };
  if (!options.partition.empty()) out.push_back("--partition=" + options.partition);
  if (!options.account.empty()) out.push_back("--account=" + options.account);
  if (request.time_limit_s > 0) {
    const double seconds = request.time_limit_s + request.site.lease_s + kSlurmExtraSeconds;
    out.push_back(fmt::format("--time={}", static_cast<int64_t>(std::ceil(seconds / 60))));
  }
  out.insert(out.end(), options.options.begin(), options.options.end());
  return out;
}

void check_slurm_request(const LaunchRequest& request) {
  if (!request.folder.is_absolute() || !request.command.cwd.is_absolute()) {
    throw InternalError("jobs of Slurm need absolute folders");
  }
  if (request.folder.string().find('%') != std::string::npos) {  // sbatch replaces it in names of files
    throw ConfigError(fmt::format("{}: Slurm cannot write to a folder with % in its path", request.folder.string()));
  }
  if (request.ranks.num_servers > 0 && request.ranks.nnodes > 1) {
    throw ConfigError("parameter servers are for jobs on one node");
  }
}

Json fresh_note(const LaunchRequest& request) {
  return {{"run_id", request.run_id}, {"attempt", request.attempt}, {"name", slurm_job_name(request)},
          {"job_id", nullptr},        {"state", "submitting"},      {"reason", ""},
          {"nodes", nullptr}};
}

void write_slurm_note(const LaunchRequest& request, const Json& note) {
  write_file_atomic(request.folder / kSlurmFile, to_pretty(note) + "\n");
}

// Null when there is none; a damaged one is as good as none, since jobs are found by name too.
Json read_slurm_note(const LaunchRequest& request) {
  try {
    const Json note = parse_json(read_limited(request.folder / kSlurmFile, kMaxNoteBytes), kSlurmFile);
    const auto text = [&](const char* key) { return note.contains(key) && note.at(key).is_string(); };
    const bool whole = note.is_object() && text("run_id") && text("name") && note.contains("attempt") &&
                       note.at("attempt").is_number_integer() && note.contains("job_id");
    return whole ? note : Json(nullptr);
  } catch (const DataError&) {
    return nullptr;
  }
}

// Ends the job of an earlier attempt. Its number is trusted only together with its name: numbers begin anew when a
// cluster is set up again.
void end_earlier_job(const Json& note) {
  if (!note.is_object()) return;
  const auto job = find_slurm_job(note.at("name").get<std::string>());
  if (!job || job->final()) return;
  cancel_slurm_job(job->id);
  constexpr double kLimit = 40;
  for (const Stopwatch watch; watch.seconds() < kLimit;) {
    const auto now = find_slurm_job(note.at("name").get<std::string>());
    if (!now || now->final()) return;
    ::usleep(200'000);
  }
  throw InfrastructureError(fmt::format("Slurm job {} of an earlier attempt does not end", job->id));
}

void write_slurm_jobs(const LaunchRequest& request) {
  for (int node = 0; node < request.ranks.nnodes; ++node) {
    LaunchRequest job = request;
    job.ranks.node_rank = node;
    job.placement.nodes.clear();  // known when Slurm has given them: launch/slurm/slurm_place.h
    std::error_code none;
    for (const JobFile old : {JobFile::State, JobFile::Stop}) {
      fs::remove(request.folder / job_file_name(old, node), none);
    }
    write_job(request.folder, job);
    renew_lease(request.folder, node);
  }
}

}  // namespace

std::string slurm_log_name(int attempt) { return fmt::format("slurm.attempt{}.log", attempt); }

std::unique_ptr<RunningStep> SlurmLauncher::start(const LaunchRequest& request) {
  check_slurm_request(request);
  end_earlier_job(read_slurm_note(request));
  write_slurm_jobs(request);
  const fs::path script = request.folder / "slurm.sh";
  write_file_atomic(script, kBatchScript);
  Json note = fresh_note(request);
  write_slurm_note(request, note);  // so that attach looks for it by name, should we end before we have its number
  const fs::path program = options_.program.empty() ? program_folder() / "assay" : options_.program;
  note["job_id"] = submit_slurm_job(
      sbatch_options(options_, request),
      {script.string(), program.string(), request.folder.string(), std::to_string(request.ranks.nnodes)});
  note["state"] = "queued";
  try {
    write_slurm_note(request, note);
  } catch (const InfrastructureError&) {
    cancel_slurm_job(note["job_id"].get<std::string>());
    throw;
  }
  return std::make_unique<SlurmStep>(request, note);
}

std::unique_ptr<RunningStep> SlurmLauncher::attach(const LaunchRequest& request) {
  Json note = read_slurm_note(request);
  if (note.is_null()) return nullptr;
  if (note.at("run_id") != request.run_id || note.at("attempt") != request.attempt) {
    end_earlier_job(note);
    return nullptr;
  }
  const auto job = find_slurm_job(note.at("name").get<std::string>());
  if (job) {
    note["job_id"] = job->id;
    write_slurm_note(request, note);
    return std::make_unique<SlurmStep>(request, note);
  }
  // Slurm forgets jobs some minutes after their end; their nodes have said how they ended, or nobody ever will.
  if (!note.at("job_id").is_string()) return nullptr;
  for (int node = 0; node < request.ranks.nnodes; ++node) {
    const auto state = read_state(request.folder, node);
    const bool ended = state && state->ended() && state->run_id == request.run_id && state->attempt == request.attempt;
    if (!ended) return nullptr;
  }
  return std::make_unique<SlurmStep>(request, note);
}

}  // namespace assay
