#include "results/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/time.h"
#include "record/keys.h"
#include "results/collect.h"
#include "results/database.h"

namespace assay {

namespace {

// user_version counts the entries that a file has had. Only ever append: the steps from any older file to this one.
constexpr std::array<const char*, 2> kMigrations = {
    R"(CREATE TABLE results (
         run TEXT NOT NULL, step TEXT NOT NULL, case_key TEXT NOT NULL, round INTEGER NOT NULL,
         vendor TEXT NOT NULL, division TEXT NOT NULL, system TEXT NOT NULL, hosts TEXT NOT NULL,
         nnodes INTEGER NOT NULL, nproc INTEGER NOT NULL, started_us INTEGER NOT NULL, started TEXT NOT NULL,
         outcome TEXT NOT NULL, reason TEXT NOT NULL, precision TEXT NOT NULL, fix_hp TEXT NOT NULL,
         unit TEXT NOT NULL, metric TEXT NOT NULL, converged INTEGER,
         e2e_time REAL, init_time REAL, raw_train_time REAL, no_eval_time REAL, pure_compute_time REAL,
         p_whole REAL, p_train REAL, p_core REAL, final_accuracy REAL, final_loss REAL, steps REAL, num_samples REAL,
         mfu REAL, peak_memory_bytes REAL, total_memory_bytes REAL, energy_joules REAL, seed REAL,
         step_time_p50 REAL, step_time_p90 REAL, step_time_p99 REAL, jitter REAL,
         target TEXT NOT NULL, hashes TEXT NOT NULL, step_time TEXT NOT NULL, suspect TEXT NOT NULL,
         monitor TEXT NOT NULL, warnings TEXT NOT NULL,
         PRIMARY KEY (run, step)) WITHOUT ROWID;
       CREATE INDEX results_by_case ON results (case_key, started_us);)",
    R"(CREATE TABLE environments (hash TEXT PRIMARY KEY, environment TEXT NOT NULL) WITHOUT ROWID;
       ALTER TABLE results ADD COLUMN environment TEXT NOT NULL DEFAULT '';)",
};
constexpr int kSchemaVersion = static_cast<int>(kMigrations.size());

constexpr char kAdvice[] = "it is made from the run folders: assay history --rebuild makes it again";

// Columns and how a row fills them; reading takes them in the same order.
const std::vector<std::string>& columns() {
  static const std::vector<std::string> kColumns = [] {
    std::vector<std::string> out = {"run",       "step",       "case_key",       "round",      "vendor",     "division",
                                    "system",    "hosts",      "nnodes",         "nproc",      "started_us", "started",
                                    "outcome",   "reason",     keys::kPrecision, keys::kFixHp, "unit",       "metric",
                                    "converged", "target",     "hashes",         "step_time",  "suspect",    "monitor",
                                    "warnings",  "environment"};
    for (const std::string& key : figure_keys()) out.push_back(key);
    return out;
  }();
  return kColumns;
}

int column(std::string_view name) {
  const auto found = std::find(columns().begin(), columns().end(), name);
  return static_cast<int>(found - columns().begin());
}

std::optional<double> flag(const std::optional<bool>& value) {
  return value ? std::optional<double>(*value ? 1 : 0) : std::nullopt;
}

void bind_row(Statement& insert, const Result& row, const std::string& environment_hash) {
  const auto text = [&](const char* name, const std::string& value) { insert.bind(column(name), value); };
  const auto json = [&](const char* name, const Json& value) { insert.bind(column(name), to_line(value)); };
  const auto whole = [&](const char* name, int64_t value) { insert.bind(column(name), value); };
  text("run", row.run);
  text("step", row.step);
  text("case_key", row.case_key);
  whole("round", row.round);
  text("vendor", row.vendor);
  text("division", row.division);
  text("system", row.system);
  json("hosts", row.hosts);
  whole("nnodes", row.nnodes);
  whole("nproc", row.nproc);
  whole("started_us", row.started_us);
  text("started", utc_text(row.started_us));
  text("outcome", std::string(outcome_name(row.outcome)));
  text("reason", row.reason);
  text(keys::kPrecision, row.figures.precision);
  text(keys::kFixHp, row.figures.fix_hp);
  text("unit", row.figures.unit);
  text("metric", row.figures.metric);
  insert.bind(column("converged"), flag(row.figures.converged));
  json("target", row.target);
  json("hashes", row.hashes);
  json("step_time", row.step_time);
  json("suspect", row.suspect);
  json("monitor", row.monitor);
  json("warnings", row.figures.warnings);
  text("environment", environment_hash);
  for (const FigureSpec& spec : figure_specs()) insert.bind(column(spec.key), row.figures.value(spec.key));
}

Result row_of(const Statement& select, const std::string& where) {
  const auto text = [&](const char* name) { return select.text(column(name)); };
  const auto json = [&](const char* name) {
    const std::string value = text(name);
    return value.empty() ? Json(nullptr) : parse_json(value, where);
  };
  const auto whole = [&](const char* name) { return select.integer(column(name)); };
  Result row;
  row.run = text("run");
  row.step = text("step");
  row.case_key = text("case_key");
  row.round = static_cast<int>(whole("round"));
  row.vendor = text("vendor");
  row.division = text("division");
  row.system = text("system");
  for (const Json& host : json("hosts")) {
    if (host.is_string()) row.hosts.push_back(host.get<std::string>());
  }
  row.nnodes = static_cast<int>(whole("nnodes"));
  row.nproc = static_cast<int>(whole("nproc"));
  row.started_us = whole("started_us");
  row.outcome = outcome_of(text("outcome"));
  row.reason = text("reason");
  row.figures.precision = text(keys::kPrecision);
  row.figures.fix_hp = text(keys::kFixHp);
  row.figures.unit = text("unit");
  row.figures.metric = text("metric");
  if (const auto converged = select.number(column("converged"))) row.figures.converged = *converged != 0;
  row.target = json("target");
  row.hashes = json("hashes");
  row.step_time = json("step_time");
  row.suspect = json("suspect");
  row.monitor = json("monitor");
  for (const Json& warning : json("warnings")) {
    if (warning.is_string()) row.figures.warnings.push_back(warning.get<std::string>());
  }
  for (const FigureSpec& spec : figure_specs()) {
    if (const auto value = select.number(column(spec.key))) row.figures.values[spec.key] = *value;
  }
  return row;
}

std::vector<std::string> run_names(const std::filesystem::path& runs) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(runs, ignored)) {
    const std::string name = entry.path().filename().string();
    // A name with a dot is a run that was never ready.
    if (name[0] != '.' && std::filesystem::exists(entry.path() / layout::kPlan, ignored)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

ResultStore::ResultStore(const std::filesystem::path& runs) : path_(runs / kStoreFile) {
  make_folder(runs);
  database_ = std::make_unique<Database>(path_, kAdvice);
  migrate();
}

ResultStore::~ResultStore() = default;

void ResultStore::migrate() {
  if (database_->user_version() == kSchemaVersion) return;
  Transaction transaction(*database_);
  const int version = database_->user_version();  // another program may have been quicker
  if (version > kSchemaVersion) {
    throw DataError(
        fmt::format("{}: written by a newer assay (schema {}, this one knows {}); use that, or "
                    "assay history --rebuild",
                    path_.string(), version, kSchemaVersion));
  }
  for (int i = version; i < kSchemaVersion; ++i) database_->execute(kMigrations[static_cast<size_t>(i)]);
  database_->execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
  transaction.commit();
}

void ResultStore::store_run(const std::string& run, const std::vector<Result>& rows) {
  Transaction transaction(*database_);
  Statement remove(*database_, "DELETE FROM results WHERE run = ?");
  remove.bind(0, run);
  remove.step();
  const std::string marks = join(std::vector<std::string>(columns().size(), "?"), ", ");
  Statement insert(*database_, fmt::format("INSERT INTO results ({}) VALUES ({})", join(columns(), ", "), marks));
  Statement keep(*database_, "INSERT OR IGNORE INTO environments (hash, environment) VALUES (?, ?)");
  for (const Result& row : rows) {
    ASSAY_CHECK(row.run == run, "a row of another run");
    const std::string environment = to_line(row.environment);
    const std::string hash = sha256(environment);
    keep.bind(0, hash);
    keep.bind(1, environment);
    keep.step();
    keep.reset();
    bind_row(insert, row, hash);
    insert.step();
    insert.reset();
  }
  transaction.commit();
}

size_t ResultStore::keep_only(const std::vector<std::string>& runs) {
  Transaction transaction(*database_);
  std::vector<std::string> gone;
  {
    Statement select(*database_, "SELECT DISTINCT run FROM results");
    while (select.step()) {
      if (!std::binary_search(runs.begin(), runs.end(), select.text(0))) gone.push_back(select.text(0));
    }
  }
  Statement remove(*database_, "DELETE FROM results WHERE run = ?");
  for (const std::string& run : gone) {
    remove.bind(0, run);
    remove.step();
    remove.reset();
  }
  database_->execute("DELETE FROM environments WHERE hash NOT IN (SELECT environment FROM results)");
  transaction.commit();
  return gone.size();
}

std::vector<Result> ResultStore::history(const HistoryQuery& query) {
  // The parts of a key are separated by ':', and ';' is the next character: every key that goes on after these parts
  // lies in between.
  std::string sql = fmt::format(
      "SELECT {} FROM results WHERE (case_key = ?1 OR (case_key >= ?1 || ':' AND case_key < ?1 || ';'))"
      " AND (?2 = '' OR system = ?2) AND run <> ?3 AND (?4 = 0 OR started_us < ?4)",
      join(columns(), ", "));
  if (query.good_only) sql += " AND outcome = 'Pass' AND suspect = 'null'";
  sql += " ORDER BY started_us DESC, run DESC, step DESC LIMIT ?5";
  Statement select(*database_, sql);
  select.bind(0, query.case_name);
  select.bind(1, query.system);
  select.bind(2, query.except_run);
  select.bind(3, query.before_us);
  select.bind(4, query.limit == 0 ? int64_t{-1} : static_cast<int64_t>(query.limit));
  std::vector<Result> rows;
  while (select.step()) rows.push_back(row_of(select, path_.string()));
  std::reverse(rows.begin(), rows.end());
  return rows;
}

std::vector<std::string> ResultStore::cases() {
  Statement select(*database_, "SELECT DISTINCT case_key FROM results ORDER BY case_key");
  std::vector<std::string> out;
  while (select.step()) out.push_back(select.text(0));
  return out;
}

size_t ResultStore::num_rows() {
  Statement select(*database_, "SELECT COUNT(*) FROM results");
  return select.step() ? static_cast<size_t>(select.integer(0)) : 0;
}

Json ResultStore::environment_of(const std::string& run, const std::string& step) {
  Statement select(*database_,
                   "SELECT e.environment FROM results r JOIN environments e ON e.hash = r.environment"
                   " WHERE r.run = ? AND r.step = ?");
  select.bind(0, run);
  select.bind(1, step);
  return select.step() ? parse_json(select.text(0), path_.string()) : Json(nullptr);
}

void store_results(const std::filesystem::path& run_folder) {
  const auto folder = std::filesystem::absolute(run_folder).lexically_normal();
  ResultStore(folder.parent_path()).store_run(folder.filename().string(), collect_results(folder));
}

Rebuilt rebuild_results(const std::filesystem::path& runs) {
  Rebuilt out;
  std::unique_ptr<ResultStore> store;
  try {
    store = std::make_unique<ResultStore>(runs);
    store->num_rows();
  } catch (const DataError&) {
    store.reset();
    const auto file = runs / kStoreFile;
    const auto aside = runs / fmt::format("{}.damaged-{}", kStoreFile, utc_compact(now_us()));
    std::error_code error;
    std::filesystem::rename(file, aside, error);
    if (error) throw InfrastructureError(fmt::format("{}: cannot set it aside: {}", file.string(), error.message()));
    std::filesystem::remove(runs / fmt::format("{}-journal", kStoreFile), error);
    out.set_aside = aside.string();
    store = std::make_unique<ResultStore>(runs);
  }
  for (const std::string& name : run_names(runs)) {
    try {
      const std::vector<Result> rows = collect_results(runs / name);
      store->store_run(name, rows);
      ++out.num_runs;
      out.num_rows += rows.size();
    } catch (const DataError& error) {
      out.problems.push_back(fmt::format("{}: {}", name, error.what()));
    }
  }
  store->keep_only(run_names(runs));
  return out;
}

}  // namespace assay
