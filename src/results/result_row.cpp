#include "results/result_row.h"

#include "base/time.h"
#include "record/keys.h"

namespace assay {

namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

std::string ResultRow::config_hash() const {
  const auto found = hashes.is_object() ? hashes.find("case") : hashes.end();
  return hashes.is_object() && found != hashes.end() && found->is_string() ? found->get<std::string>() : "";
}

Json to_json(const ResultRow& row) {
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
              {"precision", text_or_null(row.figures.precision)},
              {"fix_hp", text_or_null(row.figures.fix_hp)}};
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

}  // namespace assay
