// The file through which `assay` hands the effective configuration to a worker: ResolvedCase::worker_json(). It is a
// contract between two programs, so the reader checks it like any other file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/json.h"
#include "config/case.h"
#include "config/reader.h"

namespace assay {

struct WorkerConfig {
  std::string case_name;  // the model: "resnet"
  std::string key;        // the whole case key
  Division division = Division::Closed;
  std::string hash;
  Target target;
  DataInfo data;
  Json config;  // Global, Engine, Model, Data, Optimizer, Distributed, ...
  std::shared_ptr<const Origins> origins;

  // A reader of one section, "Model" or "Engine.save_load", whose errors name file and line. Absent: empty. The config
  // must outlive it.
  Reader section(const std::string& path) const;
};

// Throws ConfigError or DataError naming the file.
WorkerConfig read_worker_config(const std::filesystem::path& path);
WorkerConfig worker_config_of(const Json& json);

}  // namespace assay
