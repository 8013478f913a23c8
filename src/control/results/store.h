// results.sqlite in the folder of runs: every result of every run there, for `assay history` and for SQL. It is made
// from the run folders and can be made again at any time.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "results/result.h"

namespace assay {

class Database;

inline constexpr char kStoreFile[] = "results.sqlite";

// A case key, or any leading parts of one: "resnet", "resnet:libtorch:cpu".
struct HistoryQuery {
  std::string case_name;
  std::string system = {};      // empty: any
  std::string except_run = {};  // left out
  int64_t before_us = 0;        // only what started earlier; 0: all
  bool good_only = false;       // passed, and not suspect
  size_t limit = 0;             // the newest so many; 0: all
};

class ResultStore {
 public:
  // Opens or creates the file in the folder of runs; an older schema is brought up to date. Throws DataError (damaged,
  // or written by a newer assay) and InfrastructureError.
  explicit ResultStore(const std::filesystem::path& runs);
  ~ResultStore();

  // Replaces whatever is there of the run, in one transaction: a run stored twice is there once.
  void store_run(const std::string& run, const std::vector<Result>& rows);
  // Removes what is not in the list, for runs whose folders are gone. Returns how many runs that were.
  size_t keep_only(const std::vector<std::string>& runs);

  // Oldest first. Without `environment`, which is large.
  std::vector<Result> history(const HistoryQuery& query);
  std::vector<std::string> cases();  // every case key, sorted
  size_t num_rows();
  Json environment_of(const std::string& run, const std::string& step);  // null: no such row

 private:
  void migrate();
  std::filesystem::path path_;
  std::unique_ptr<Database> database_;
};

// Stores one run in results.sqlite beside its folder.
void store_results(const std::filesystem::path& run_folder);

struct Rebuilt {
  size_t num_runs = 0;
  size_t num_rows = 0;
  std::vector<std::string> problems;  // run folders that could not be read: "20261115-...: reason"
  std::string set_aside;              // where a damaged file went; empty: there was none
};
// Reads every run folder again. A damaged file is set aside first. Rows of other programs that write meanwhile stay.
Rebuilt rebuild_results(const std::filesystem::path& runs);

}  // namespace assay
