// What every subcommand of `assay` shares.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "base/console.h"
#include "base/error.h"

namespace assay {

struct Context {
  Console console;
  bool json = false;                 // --json: machine-readable standard output
  std::filesystem::path home;        // the folder that holds cases/ and vendors/
  std::filesystem::path runs;        // where run folders go
  std::vector<std::string> command;  // as typed
  int exit_code = kExitPass;         // set by the subcommand that ran
};

// Each adds its subcommand; the callback may throw assay::Error.
void add_demo_command(CLI::App& app, Context& context);
void add_train_command(CLI::App& app, Context& context);
void add_generate_command(CLI::App& app, Context& context);
void add_verify_command(CLI::App& app, Context& context);
void add_run_command(CLI::App& app, Context& context);
void add_ps_command(CLI::App& app, Context& context);
void add_logs_command(CLI::App& app, Context& context);
void add_stop_command(CLI::App& app, Context& context);
void add_resume_command(CLI::App& app, Context& context);
void add_report_command(CLI::App& app, Context& context);
void add_table_command(CLI::App& app, Context& context);
void add_history_command(CLI::App& app, Context& context);
void add_diff_command(CLI::App& app, Context& context);
void add_cases_command(CLI::App& app, Context& context);
void add_config_command(CLI::App& app, Context& context);
void add_check_command(CLI::App& app, Context& context);
void add_import_command(CLI::App& app, Context& context);
void add_log_command(CLI::App& app, Context& context);
void add_data_command(CLI::App& app, Context& context);
void add_doctor_command(CLI::App& app, Context& context);
void add_completion_command(CLI::App& app, Context& context);
// What launchers start on the hosts of a job; not for people.
void add_supervise_command(CLI::App& app, Context& context);
void add_relay_command(CLI::App& app, Context& context);

// Subcommands of `assay data`.
void add_data_prepare_command(CLI::App& data, Context& context);
void add_data_list_command(CLI::App& data, Context& context);
void add_data_tokenizer_command(CLI::App& data, Context& context);
void add_data_encode_command(CLI::App& data, Context& context);

// What other hosts run for us; not for people.
void add_probe_command(CLI::App& app, Context& context);
void add_slurm_command(CLI::App& app, Context& context);

// What may stand in place of the last of these words, one a line: what the shells' completion scripts ask.
void print_completions(const CLI::App& app, const Context& context, const std::vector<std::string>& words);

}  // namespace assay
