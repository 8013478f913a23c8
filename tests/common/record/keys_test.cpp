#include "record/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../../control/source_literals.h"

using namespace assay;

namespace {

// Keys that mean nothing else: train.loss, p_train, RESUMED. Words such as "step" and "unit" have other meanings too.
bool is_distinctive(const std::string& key) {
  const bool is_event = std::all_of(key.begin(), key.end(), [](char c) { return c == '_' || (c >= 'A' && c <= 'Z'); });
  return is_event || key.find_first_of("._") != std::string::npos;
}

}  // namespace

// Who writes or reads records takes their keys from keys.h. Not looked at: the dialects of others, which have names of
// their own, and the worker's options and checkpoints, where some of the words are names of other things.
TEST(Keys, AreSpelledInOnePlace) {
  const fs::path source = ASSAY_SOURCE_DIR;
  std::set<std::string> keys;
  const std::regex constant(R"re(inline constexpr char k\w+\[\] = "([^"]+)")re");
  const std::string header = read_file(source / "src/common/record/keys.h");
  for (auto at = std::sregex_iterator(header.begin(), header.end(), constant); at != std::sregex_iterator(); ++at) {
    EXPECT_TRUE(keys.insert((*at)[1]).second || !is_distinctive((*at)[1])) << (*at)[1] << " is there twice";
  }
  ASSERT_GE(keys.size(), 80u);
  std::vector<std::string> found;
  const auto is_key = [&](const std::string& text) { return keys.contains(text) && is_distinctive(text); };
  for (const SourceLiteral& literal : source_literals({source / "src/control", source / "apps"})) {
    if (is_key(literal.text)) found.push_back(literal.place());
  }
  for (const SourceLiteral& literal : source_literals({source / "src/worker", source / "src/common"})) {
    const bool is_event =
        std::none_of(literal.text.begin(), literal.text.end(), [](char c) { return std::islower(c); });
    const bool is_metric = literal.text.find('.') != std::string::npos;
    const bool is_elsewhere =
        literal.file.ends_with("record/keys.h") || literal.file.find("/dialects/") != std::string::npos;
    if (is_key(literal.text) && (is_event || is_metric) && !is_elsewhere) found.push_back(literal.place());
  }
  EXPECT_EQ(found, std::vector<std::string>{}) << "take the key from record/keys.h";
}
