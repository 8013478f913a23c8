// Two sets of results, case by case: what became better, what worse, and what nobody can tell from so few rounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/summary.h"
#include "results/thresholds.h"
#include "verify/statistics.h"

namespace assay {

enum class Change { Better, Worse, Same, Inconclusive };

struct FigureChange {
  std::string figure;  // "p_train"
  Change change = Change::Inconclusive;
  std::string word;  // for people: "faster", "slower", "less memory", "no difference shown", "inconclusive"
  Comparison comparison;
  std::optional<double> threshold;  // percent; nullopt: not judged
  bool regression = false;          // shown to be worse, and by more than the threshold
};

struct CaseChange {
  std::string case_key;
  std::string unit;
  std::vector<FigureChange> figures;  // those that both sides have
  // Why there is nothing to compare: "only in the baseline", "every round failed"; empty: there is.
  std::string missing;
  bool broken = false;  // passed in the baseline, and not a single round now
  std::vector<std::string> remarks;
};

struct RunComparison {
  std::vector<CaseChange> cases;
  size_t num_compared = 0;  // figures with enough rounds on both sides for an answer
  size_t num_regressions = 0;
  size_t num_broken = 0;
  // 1: a regression, or a case that no longer passes; 3: nothing could be compared; 0 otherwise.
  int exit_code() const;
};

// Cases are matched by their key. Rounds that failed or are suspect do not count.
RunComparison compare_results(const std::vector<Result>& baseline, const std::vector<Result>& measured,
                              const Thresholds& thresholds);

std::string_view change_name(Change change);  // "better", "worse", "same", "inconclusive"
Json to_json(const RunComparison& comparison);

}  // namespace assay
