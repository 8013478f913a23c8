#include "results/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/error.h"

namespace assay {

Statement::Statement(Database& database, const std::string& sql) : database_(database) {
  const int code =
      sqlite3_prepare_v2(database.handle(), sql.c_str(), static_cast<int>(sql.size()), &statement_, nullptr);
  if (code != SQLITE_OK) database_.fail(code);
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::bind(int parameter, const std::string& text) {
  const int code =
      sqlite3_bind_text(statement_, parameter + 1, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  if (code != SQLITE_OK) database_.fail(code);
}

void Statement::bind(int parameter, int64_t value) {
  const int code = sqlite3_bind_int64(statement_, parameter + 1, value);
  if (code != SQLITE_OK) database_.fail(code);
}

void Statement::bind(int parameter, const std::optional<double>& value) {
  const int code =
      value ? sqlite3_bind_double(statement_, parameter + 1, *value) : sqlite3_bind_null(statement_, parameter + 1);
  if (code != SQLITE_OK) database_.fail(code);
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.fail(code);
  return false;
}

void Statement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return bytes ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : "";
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

std::optional<double> Statement::number(int column) const {
  const int type = sqlite3_column_type(statement_, column);
  if (type != SQLITE_FLOAT && type != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_double(statement_, column);
}

Database::Database(std::filesystem::path path, std::string advice, double busy_seconds)
    : path_(std::move(path)), advice_(std::move(advice)) {
  const int code = sqlite3_open_v2(path_.c_str(), &handle_,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  try {
    if (code != SQLITE_OK) fail(code);
    sqlite3_extended_result_codes(handle_, 1);
    sqlite3_busy_timeout(handle_, static_cast<int>(busy_seconds * 1000));
    execute("PRAGMA foreign_keys = ON");
  } catch (const Error&) {
    sqlite3_close(handle_);
    throw;
  }
}

Database::~Database() { sqlite3_close(handle_); }

void Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

int Database::user_version() {
  Statement statement(*this, "PRAGMA user_version");
  return statement.step() ? static_cast<int>(statement.integer(0)) : 0;
}

void Database::fail(int code) const {
  const std::string why = handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // a table or column that is not there: not a file of ours
    case SQLITE_MISMATCH:
    case SQLITE_CONSTRAINT: throw DataError(fmt::format("{}: {}; {}", path_.string(), why, advice_));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw InfrastructureError(fmt::format("{}: another program holds it for too long ({})", path_.string(), why));
    default: throw InfrastructureError(fmt::format("{}: {}", path_.string(), why));
  }
}

Transaction::Transaction(Database& database) : database_(database) { database_.execute("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace assay
