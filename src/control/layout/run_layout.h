// The names of all files and folders of a run, in one place: those of the run folder, and those of the folder of a step
// in it. Whoever writes or reads one takes its name from here. Knows names only; what the files hold is said where they
// are written. docs/reference/formats.md shows them to users.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::layout {

// --- the run folder
inline constexpr char kPlan[] = "plan.json";
inline constexpr char kJournal[] = "journal.jsonl";
inline constexpr char kEnvironment[] = "environment.json";
inline constexpr char kLock[] = "lock";
// What the hosts of a campaign must have, and the versions that they reported.
inline constexpr char kPreflight[] = "preflight.json";
inline constexpr char kVersions[] = "versions.json";
inline constexpr char kSteps[] = "steps";
inline constexpr char kCode[] = "code";  // of cases, plugins and vendors, copied in when the run is made
// Reports; result.json is written last, so where it is the others are complete.
inline constexpr char kResult[] = "result.json";
inline constexpr char kJunit[] = "junit.xml";
inline constexpr char kMarkdown[] = "report.md";
inline constexpr char kHtml[] = "report.html";

// --- the folder of a step
inline constexpr char kStatus[] = "status.json";  // a rendering of its end in the journal: nothing reads it
inline constexpr char kCommand[] = "command.json";
inline constexpr char kConfig[] = "config.json";  // what the program reads
inline constexpr char kOutput[] = "output";       // what the program makes
// Where the ranks of a command stand, each in a folder of its own: "work/attempt1/rank0".
inline constexpr char kWork[] = "work";
inline constexpr char kCheckpoints[] = "output/checkpoints";
inline constexpr char kVerdicts[] = "verdicts.json";
inline constexpr char kDisturbance[] = "disturbance.json";
inline constexpr char kComparison[] = "comparison.json";       // of two trainings
inline constexpr char kExtractMark[] = "harvest.json";         // beside records that were extracted from a log
inline constexpr std::string_view kRecordsPrefix = "records";  // of the records files of all ranks
inline constexpr std::string_view kRankLogPrefix = "rank";
inline constexpr std::string_view kSetupLogPrefix = "setup";

// "steps/2-evaluate": the folder of a step, from its place in the plan, 1 the first.
std::string step_folder(size_t number, std::string_view step_name);
// "code/resnet"
std::string code_path(std::string_view name);
// Whether a path of the run folder lies in `folder`, which is kSteps or kCode.
bool is_in(std::string_view path, std::string_view folder);
// "work/attempt1/rank3", in the folder of a step.
std::string work_folder(int attempt, int rank);
// What stands for the run folder in the words of a plan, which is on another path on every host: "{run}/code/resnet".
inline constexpr std::string_view kRunFolder = "{run}";
// "{run}/code/resnet"
std::string in_run_folder(std::string_view path);
// "rank3.log": what a rank printed.
std::string rank_log(int rank);
// "setup.node0.log": what the vendor's setup printed on that node.
std::string setup_log(int node);
// "records.jsonl" of rank 0, "records.rank3.jsonl" of the others.
std::string records_file(int rank);
bool is_records_file(std::string_view name);
// What the supervisor of a node says about its job, and what it sampled meanwhile; launch/host/job.h has its other
// files, which concern nobody else.
std::string node_state(int node);
std::string node_monitor(int node);

}  // namespace assay::layout
