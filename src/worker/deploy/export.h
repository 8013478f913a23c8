// TorchScript from a C++ module: its parameters, buffers and children are mirrored into a script module of the same
// names, and one forward pass is traced. Python and C++ load the file without any of our code.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"
#include "engine/module.h"

namespace assay {

// The name of the description inside the file.
inline constexpr char kExportDescription[] = "assay.json";

struct ExportInfo {
  std::string case_name;
  std::string weights_hash;       // of the weights that were exported
  std::vector<InputSpec> inputs;  // the first extent is free
  std::string sample_unit;        // "images"
  double units_per_sample = 1;    // tokens of a sequence
  std::string file_hash;          // SHA-256 of the exported file; empty inside the file itself
};
Json to_json(const ExportInfo& info);
ExportInfo export_info_of(const Json& json, const std::string& where);  // throws DataError

// Writes `path` (model.pt) atomically and, beside it, export.json. The same description lies inside the file. The
// module must be initialised; it is left in evaluation mode. Throws InternalError when what was traced does not compute
// what the module does.
ExportInfo export_torchscript(Module& module, const std::filesystem::path& path, const std::string& case_name);

}  // namespace assay
