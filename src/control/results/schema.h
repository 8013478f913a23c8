// The one schema of results: every figure a case can have, whatever program measured it, and the names that other
// programs give it. Knows records and numbers; knows no run and no file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace assay {

// What a figure may be, and which way is better.
struct FigureSpec {
  enum class Kind { Seconds, Rate, Bytes, Fraction, Count, Joules, Any };
  enum class Better { Higher, Lower, ByGoal, Neither };  // ByGoal: as the target says, and higher without one
  const char* key;
  Kind kind;
  Better better;
};
// All of them, in the order people read them. Each is a column of the store.
const std::vector<FigureSpec>& figure_specs();
const FigureSpec* find_figure(std::string_view key);
std::vector<std::string> figure_keys();

// Counts as whole numbers.
Json figure_json(const FigureSpec& spec, const std::optional<double>& value);

// What another program calls one of our figures. In the order of preference: of two names of one figure in the same
// object the earlier counts.
struct FigureAlias {
  const char* name;
  const char* key;
  const char* unit;    // of a throughput whose name tells it; "" otherwise
  const char* metric;  // what a final_accuracy of this name is; "" otherwise
};
const std::vector<FigureAlias>& figure_aliases();

// What one object of results says. Figures that are absent were not measured.
struct Figures {
  std::map<std::string, double> values;  // by the keys of figure_specs(); finite
  std::optional<bool> converged;
  std::string unit;    // of the throughputs; empty: unknown
  std::string metric;  // of final_accuracy; empty: unknown
  std::string precision;
  std::string fix_hp;
  std::optional<double> stated_peak;  // operations a second that another program says its MFU is a share of
  // What was left out, and why: "final_accuracy: '80.83.2%' is not a number".
  std::vector<std::string> warnings;

  std::optional<double> value(std::string_view key) const;
};

// Who says so: our own result records state an MFU only where they know the peak of the device; others have to name the
// peak they used ("peak_flops") beside it.
enum class Voice { Ours, Foreign };

// Reads an object that a program reported. Never throws: what is not what it should be is left out, with a warning.
Figures read_figures(const Json& object, Voice voice);
// What `later` has replaces what `figures` has; warnings are kept.
void merge_figures(Figures& figures, Figures later);

}  // namespace assay
