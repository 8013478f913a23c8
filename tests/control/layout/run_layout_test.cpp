#include "layout/run_layout.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "../source_literals.h"

using namespace assay;

TEST(RunLayout, NamesTheFilesOfAStep) {
  EXPECT_EQ(layout::step_folder(2, "evaluate"), "steps/2-evaluate");
  EXPECT_EQ(layout::records_file(0), "records.jsonl");
  EXPECT_EQ(layout::records_file(3), "records.rank3.jsonl");
  EXPECT_TRUE(layout::is_records_file("records.rank3.jsonl"));
  EXPECT_EQ(layout::rank_log(1), "rank1.log");
  EXPECT_TRUE(layout::is_in("steps/1-train/output", layout::kSteps));
  EXPECT_FALSE(layout::is_in("steps", layout::kSteps));
  EXPECT_FALSE(layout::is_in("stepsaside/x", layout::kSteps));
}

// Every name of run_layout.h, and the forms of those that have a number in them. Words that mean other things too
// (lock, output, rank) are not looked for.
TEST(RunLayout, IsTheOnlyPlaceThatSpellsTheNames) {
  const fs::path source = ASSAY_SOURCE_DIR;
  std::set<std::string> names = {"rank{}.log", "rank0.log", "records.jsonl", "records.rank{}.jsonl"};
  const std::regex constant(R"re(inline constexpr char k\w+\[\] = "([^"]+\.[a-z]+)")re");
  const std::string header = read_file(source / "src/control/layout/run_layout.h");
  for (auto at = std::sregex_iterator(header.begin(), header.end(), constant); at != std::sregex_iterator(); ++at) {
    names.insert((*at)[1]);
  }
  ASSERT_GE(names.size(), 18u);
  std::vector<std::string> found;
  for (const SourceLiteral& literal : source_literals({source / "src/control", source / "apps/assay"})) {
    if (literal.file.find("control/layout/") != std::string::npos) continue;
    const std::string name = literal.text.substr(literal.text.rfind('/') + 1);
    const bool is_path = literal.text.starts_with("steps/") || literal.text.starts_with("code/");
    if (names.contains(name) || is_path) found.push_back(literal.place());
  }
  EXPECT_EQ(found, std::vector<std::string>{}) << "take the name from layout/run_layout.h";
}
