#include "results/database.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"

using namespace assay;

TEST(Database, BindsAndReads) {
  TempFolder folder;
  Database database(folder.path() / "d", "");
  database.execute("CREATE TABLE t (a TEXT, b INTEGER, c REAL)");
  Statement insert(database, "INSERT INTO t VALUES (?, ?, ?)");
  const std::string odd("a\0b'", 4);
  insert.bind(0, odd);
  insert.bind(1, int64_t{1} << 60);
  insert.bind(2, std::optional<double>());
  EXPECT_FALSE(insert.step());
  Statement select(database, "SELECT * FROM t");
  ASSERT_TRUE(select.step());
  EXPECT_EQ(select.text(0), odd);
  EXPECT_EQ(select.integer(1), int64_t{1} << 60);
  EXPECT_FALSE(select.number(2)) << "NULL is no number";
  EXPECT_FALSE(select.step());
}

TEST(Database, DropsAnUncommittedTransaction) {
  TempFolder folder;
  Database database(folder.path() / "d", "");
  database.execute("CREATE TABLE t (a TEXT)");
  {
    Transaction transaction(database);
    database.execute("INSERT INTO t VALUES ('x')");
  }
  EXPECT_FALSE(Statement(database, "SELECT * FROM t").step());
}

TEST(Database, NamesAFileLockedForTooLong) {
  TempFolder folder;
  Database first(folder.path() / "d", "");
  Transaction transaction(first);
  Database second(folder.path() / "d", "", /*busy_seconds=*/0.05);
  EXPECT_THROW(Transaction{second}, InfrastructureError);
}
