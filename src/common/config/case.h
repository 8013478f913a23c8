// From a case key to the one effective configuration, every value with its origin.
//
// Layers, lowest first: built-in defaults < cases/<model>/case.yaml (of a size: <size>.yaml) <
// vendors/<vendor>/<model>/config_<HW>x<n>x<p>.yaml < plan < command line. In the closed division the vendor file and
// the plan may change only what the case lists under `mutable`; in the open division everything, recorded. The command
// line is the user's own: it may change everything, but what is not mutable makes the result open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "config/case_key.h"
#include "config/value.h"

namespace assay {

enum class Division { Closed, Open };
std::string_view division_name(Division division);  // "closed", "open"
Division division_of(std::string_view name);        // throws UsageError

enum class Goal { Maximize, Minimize };

struct Target {
  std::string metric;  // "accuracy"
  double value = 0;
  Goal goal = Goal::Maximize;
  bool reached_by(double measured) const;  // false for NaN
};
Json to_json(const Target& target);  // {"metric", "value", "goal": "maximize" | "minimize"}
Target target_of(const Json& json);  // throws ConfigError

struct DataInfo {
  std::string name;
  std::string layout;
  std::optional<fs::path> path;               // folder; nullopt when the case has none
  std::map<std::string, std::string> sha256;  // file name, relative to the folder -> hex
};
Json to_json(const DataInfo& data);
DataInfo data_info_of(const Json& json);  // throws ConfigError

// One `a.b.0.c=value` and where it was written.
struct Setting {
  std::string text;
  std::string source;  // "--set Engine.max_steps=10", "--step 10"
  Setting(std::string assignment) : text(std::move(assignment)), source("--set " + text) {}
  Setting(const char* assignment) : Setting(std::string(assignment)) {}
  Setting(std::string assignment, std::string argument) : text(std::move(assignment)), source(std::move(argument)) {}
};

struct ResolveRequest {
  fs::path home = {};  // holds cases/ and vendors/
  CaseKey key = {};
  std::string vendor =
      {};  // empty: the only vendor that has a file for the key's hardware; no vendor layer without hardware
  Division division = Division::Closed;
  std::optional<fs::path> plan_file = std::nullopt;
  // What a plan that is part of another file says: a map of the plan's layer, each value with its place in that file.
  std::optional<Value> plan_values = std::nullopt;
  std::vector<Setting> sets = {};
};

struct Override {
  std::string path;
  Value before;  // of the layers below; null when absent
  Value after;   // its origin says who
  bool is_mutable = false;
};

struct ResolvedCase {
  CaseKey key = {};
  fs::path home;
  std::string task, source, licence, framework;
  std::optional<int64_t> num_parameters;  // as the case declares them
  std::vector<std::string> entry;         // command of a case that is not native
  std::string vendor;                     // of the vendor layer; empty without one
  Division division = Division::Closed;   // open when any override was not mutable
  Value config;                           // effective, all sections
  Target target;
  DataInfo data;
  std::vector<Override> overrides;  // what the layers above the case changed, in order
  Value head;                       // effective model, framework, data, target, mutable, ... with origins

  bool is_native() const { return entry.empty(); }
  Json config_json() const;  // plain effective configuration
  // {"case", "division", "overrides": [{key, before, after, layer, place, mutable}], "values": [{key, value, layer,
  // place}]}; places are relative to `home`.
  Json describe() const;
  // What the worker reads, see worker_config.h.
  Json worker_json() const;
  // SHA-256 of what is measured: model, framework, target, data hashes and configuration, without the places where
  // files lie, so that two machines agree.
  std::string hash() const;
  // The origin's text with files relative to `home`.
  std::string place(const Origin& origin) const;
};

// Throws ConfigError (files, keys, values) or UsageError (settings that are not a.b=v).
ResolvedCase resolve_case(const ResolveRequest& request);

// Where a case stands: cases/<model>/case.yaml, or cases/<model>/<size>.yaml for a further size, <model>-<size>.
struct CaseFile {
  fs::path path;
  std::string model;  // the folder
};
std::optional<CaseFile> find_case(const fs::path& home, const std::string& name);

// Names of the cases, sorted by folder; the further sizes of a case follow it.
std::vector<std::string> list_cases(const fs::path& home);
// Folders under vendors/, sorted.
std::vector<std::string> list_vendors(const fs::path& home);

}  // namespace assay
