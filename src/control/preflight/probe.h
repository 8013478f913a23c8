// What a host says about itself: the other end of preflight.h, run there as `assay probe JSON`.
#pragma once

#include <filesystem>

#include "base/json.h"

namespace assay {

// Question: {"paths": [...], "programs": {name: PATH or ""}, "data": [{"path", "sha256": {file: hash},
// "check_hashes"}],
//   "disk": path ("": .assay in the home folder, which is also where relative ones are), "ports": [...], "hardware",
//   "device_command": [...], "versions": {name: argv}, "locks": folder}, all optional.
// Answer: {"assay": {"version", "commit"}, "host", "time_us", "paths": {path: bool}, "programs": {name: path or null},
//   "data": [{"path", "exists", "bytes", "wrong": [{"file", "problem": "missing" | "differs", "found"}]}],
//   "disk": {"path", "free_bytes"}, "ports": {port: null or why it is not free}, "devices": {"count", "output",
//   "error"}, "locks": [{"hardware", "index", "run", "user", "pid", "host"}], "versions": {name: text or null},
//   "page_cache": bool}. What was not asked for is not there.
// Throws DataError for a question that is none.
Json answer_probe(const Json& question);

// Locks of devices that somebody holds now, by the folder of launch/host/device_lock.h.
Json held_locks(const std::filesystem::path& folder);

}  // namespace assay
