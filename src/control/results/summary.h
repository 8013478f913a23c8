// The rounds of a case as one line: means with their intervals, and how well a case scales over processes. Formulas:
// docs/guide/results.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results/result.h"
#include "verify/statistics.h"

namespace assay {

// The rounds of one case key on one system.
struct CaseSummary {
  std::string case_key;
  std::string system;
  std::vector<Result> rounds;                  // all of them, oldest first
  size_t num_failed = 0;                       // left out of the figures
  size_t num_suspect = 0;                      // passed, but measured on a disturbed machine; left out unless all are
  bool all_suspect = false;                    // the figures are of suspect rounds, for want of others
  std::map<std::string, Description> figures;  // by the keys of results/schema.h, of the rounds that count

  size_t num_counted() const;
  // The newest round that counts; nullptr: none does.
  const Result* example() const;
  const Description* figure(std::string_view key) const;  // nullptr: never measured
  std::optional<double> mean(std::string_view key) const;
  // Values of the rounds that count.
  std::vector<double> values(std::string_view key) const;
  std::vector<std::string> config_hashes() const;  // the different ones of the rounds that count
  // What a reader must know: rounds left out and why, suspect rounds, configurations that differ, warnings.
  std::vector<std::string> remarks() const;
};

bool counts(const CaseSummary& summary, const Result& row);

// In the order in which the cases first appear.
std::vector<CaseSummary> summarise(const std::vector<Result>& rows);

// throughput(world) / throughput(smallest world) over world / smallest world.
struct Scaling {
  std::string family;  // "resnet:libtorch:A100"
  struct Point {
    std::string case_key;
    int nnodes = 1;
    int nproc = 1;
    double throughput = 0;
    double efficiency = 0;  // 1 for the smallest
  };
  std::string figure;  // "p_train", or "p_whole" where more sizes have it
  std::string unit;
  std::vector<Point> points;  // by world size
};
// Of the same model, framework, hardware and system; families with a single size have none.
std::vector<Scaling> scaling_of(const std::vector<CaseSummary>& summaries);

Json to_json(const Description& description);
Json to_json(const CaseSummary& summary);
Json to_json(const Scaling& scaling);

}  // namespace assay
