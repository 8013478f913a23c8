#include "import/flagperf/entry_import.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {

namespace {

// {} is the JSON of the case's own values as a string of Python.
constexpr char kConfigText[] =
    R"(# The vendor's configuration as assay has checked it, in the form that FlagPerf imports.
# First the vendor's own file, for objects that YAML cannot hold; over it the values of the effective configuration
# that differ from what the vendor's file or the case has.
import importlib.util as _importlib_util
import json as _json
import os as _os
import sys as _sys

_base = _json.loads({})


def _same(left, right):
    return (list(left) if isinstance(left, tuple) else left) == right


def _load():
    path = _os.environ["ASSAY_FLAGPERF_CONFIG"]
    _sys.path.insert(0, _os.path.dirname(path))
    spec = _importlib_util.spec_from_file_location("assay_vendor_config", path)
    module = _importlib_util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _sys.path.pop(0)
    values = {{k: v for k, v in vars(module).items() if not k.startswith("_")}}
    with open(_os.environ["ASSAY_CONFIG"]) as file:
        checked = _json.load(file)
    for key, value in checked.get("config", checked).items():
        if value is None or _same(values.get(key, _base.get(key)), value):
            continue
        if isinstance(value, float) and value.is_integer() and type(_base.get(key)) is int:
            value = int(value)  # YAML has one type a key: another vendor's fraction made all of them numbers
        values[key] = value
    return values


globals().update(_load())
)";

// Frameworks whose scripts take FlagPerf's usual arguments.
bool has_usual_arguments(const std::string& framework) {
  return framework == "pytorch" || framework == "paddle" || framework == "tensorflow2" || framework == "flagaipytorch";
}

}  // namespace

FlagperfEntry flagperf_entry(const FlagperfTree& tree, const FlagperfCase& found, const Json& base) {
  FlagperfEntry out;
  const std::string script = (found.folder / "run_pretraining.py").string();
  if (!has_usual_arguments(found.framework)) {
    out.argv = {"python3", "-u", script};
    out.missing = fmt::format(
        "FlagPerf starts cases for {} by a script of its own, start_{}_task.py: complete `entry` with its arguments",
        found.framework, found.framework);
    return out;
  }
  if (!found.has_script) out.missing = "there is no run_pretraining.py: `entry` names a file that is not there";
  const std::string adaption = (tree.training / "{vendor}" / (found.model + "-" + found.framework)).string();
  const std::string config_file = fmt::format("assay_{}_config.py", found.framework);
  // A string of JSON is one of Python too.
  out.files[config_file] = fmt::format(kConfigText, to_line(Json(to_line(base))));
  out.argv = {"env", "ASSAY_CONFIG={config}",
              fmt::format("ASSAY_FLAGPERF_CONFIG={}/config/config_{{hardware}}x{{nnodes}}x{{nproc}}.py", adaption),
              "python3", "-u", script, "--data_dir={data}",
              // One word each: a campaign takes a word that is a file of the case's folder for the path of that file,
              // and the program joins the two itself.
              "--extern_config_dir={case_dir}", "--extern_config_file=" + config_file, "--enable_extern_config",
              "--extern_module_dir=" + adaption + "/extern"};
  if (found.framework != "tensorflow2") out.argv.push_back("--vendor={vendor}");
  return out;
}

}  // namespace assay
