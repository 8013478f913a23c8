// A SQLite file with errors of our kind. Knows SQL, not results.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace assay {

class Database;

// A prepared statement. Parameters and columns count from 0.
class Statement {
 public:
  Statement(Database& database, const std::string& sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int parameter, const std::string& text);
  void bind(int parameter, int64_t value);
  void bind(int parameter, const std::optional<double>& value);  // nullopt: NULL
  bool step();                                                   // true: there is a row
  void reset();                                                  // to be bound and run again

  std::string text(int column) const;  // "" for NULL
  int64_t integer(int column) const;   // 0 for NULL
  std::optional<double> number(int column) const;

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
};

// One connection. Not thread-safe. Two processes may write the same file: each waits for the other, at most
// `busy_seconds`.
class Database {
 public:
  // Creates the file when it is missing. Throws InfrastructureError (cannot open, locked for too long, disk full) and
  // DataError (not a database, damaged), both naming the file; `advice` ends the sentence about a damaged one.
  Database(std::filesystem::path path, std::string advice, double busy_seconds = 30);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void execute(const std::string& sql);
  int user_version();
  [[noreturn]] void fail(int code) const;
  sqlite3* handle() { return handle_; }

 private:
  std::filesystem::path path_;
  std::string advice_;
  sqlite3* handle_ = nullptr;
};

// BEGIN IMMEDIATE ... COMMIT; rolled back when commit() was not reached.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace assay
