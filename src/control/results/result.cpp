#include "results/result.h"

#include "base/time.h"
#include "record/keys.h"

namespace assay {

namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

std::string Result::config_hash() const {
  const auto found = hashes.is_object() ? hashes.find("case") : hashes.end();
  return hashes.is_object() && found != hashes.end() && found->is_string() ? found->get<std::string>() : "";
}

Json to_json(const Result& row) {
  Json out = {{"run", row.run},
              {"step", row.step},
              {"case", row.case_key},
              {"round", row.round},
              {"started", utc_text(row.started_us)},
              {"outcome", outcome_name(row.outcome)},
              {"reason", row.reason},
              {"vendor", text_or_null(row.vendor)},
              {"division", text_or_null(row.division)},
              {"system", text_or_null(row.system)},
              {"hosts", row.hosts},
              {"nnodes", row.nnodes},
              {"nproc", row.nproc},
              {keys::kPrecision, text_or_null(row.figures.precision)},
              {keys::kFixHp, text_or_null(row.figures.fix_hp)}};
  for (const FigureSpec& spec : figure_specs()) out[spec.key] = figure_json(spec, row.figures.value(spec.key));
  out[keys::kThroughputUnit] = text_or_null(row.figures.unit);
  out["metric"] = text_or_null(row.figures.metric);
  out[keys::kConverged] = row.figures.converged ? Json(*row.figures.converged) : Json(nullptr);
  out[keys::kTarget] = row.target;
  out[keys::kHashes] = row.hashes;
  out["step_time"] = row.step_time;
  out["suspect"] = row.suspect;
  out["monitor"] = row.monitor;
  out["warnings"] = row.figures.warnings;
  return out;
}

Result shown_result(const Json& shown) {
  Result result;
  result.shown = shown;
  if (!shown.is_object()) return result;
  const auto text = [&](const char* key) {
    return shown.contains(key) && shown[key].is_string() ? shown[key].get<std::string>() : "";
  };
  const auto object = [&](const char* key) {
    return shown.contains(key) && shown[key].is_object() ? shown[key] : Json(nullptr);
  };
  result.step = text("step");
  result.case_key = text("case");
  result.figures = read_figures(shown, Voice::Ours);
  result.target = object(keys::kTarget);
  if (const Json hashes = object(keys::kHashes); !hashes.is_null()) result.hashes = hashes;
  result.step_time = object("step_time");
  result.monitor = object("monitor");
  if (shown.contains("round") && shown["round"].is_number_integer()) result.round = shown["round"].get<int>();
  if (shown.contains("suspect") && shown["suspect"].is_array()) result.suspect = shown["suspect"];
  return result;
}

}  // namespace assay
