#include "base/journal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <random>
#include <thread>

#include "base/error.h"

using namespace assay;

namespace {

void put(const fs::path& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

}  // namespace

TEST(Journal, WritesAndReads) {
  const TempFolder folder;
  const auto path = folder.path() / "j";
  {
    Journal journal(path, Journal::Sync::EveryLine);
    journal.append({{"n", 1}});
    journal.append({{"text", "a\nb \xff"}});
  }
  const JournalContents contents = read_journal(path);
  ASSERT_EQ(contents.lines.size(), 2u);
  EXPECT_FALSE(contents.torn);
  EXPECT_EQ(contents.lines[0]["n"], 1);
  EXPECT_EQ(contents.lines[1]["text"], "a\nb \xEF\xBF\xBD");
}

TEST(Journal, ReadsAMissingFileAsEmpty) { EXPECT_TRUE(read_journal("/no/such/file").lines.empty()); }

TEST(Journal, DropsATornLineAtEveryByte) {
  const TempFolder folder;
  const auto path = folder.path() / "j";
  const std::string whole = "{\"n\":1}\n{\"n\":2}\n";
  for (size_t size = 0; size <= whole.size(); ++size) {
    put(path, whole.substr(0, size));
    const size_t expected = size >= 16 ? 2 : size >= 8 ? 1 : 0;
    const JournalContents contents = read_journal(path);
    EXPECT_EQ(contents.lines.size(), expected) << size;
    EXPECT_EQ(contents.torn, size != 0 && size != 8 && size != 16) << size;
    Journal(path, Journal::Sync::Never).append({{"n", 9}});
    const JournalContents after = read_journal(path);
    ASSERT_EQ(after.lines.size(), expected + 1) << size;
    EXPECT_EQ(after.lines.back()["n"], 9);
    EXPECT_FALSE(after.torn);
  }
}

TEST(Journal, NamesTheLineOfDamageBeforeTheEnd) {
  const TempFolder folder;
  const auto path = folder.path() / "j";
  for (const char* text :
       {"{\"n\":1}\nnonsense\n{\"n\":3}\n", "{\"n\":1}\n[1]\n{\"n\":3}\n", "{\"n\":1}\n\n{\"n\":3}\n"}) {
    put(path, text);
    try {
      read_journal(path);
      FAIL() << text;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos) << error.what();
    }
    EXPECT_THROW(Journal(path, Journal::Sync::Never), DataError);
    EXPECT_EQ(read_file(path), text) << "a damaged journal is left as it is";
  }
}

TEST(Journal, SurvivesGarbage) {
  const TempFolder folder;
  const auto path = folder.path() / "j";
  std::mt19937 random(7);
  const std::string alphabet = "{}[]\",:\n\\ 0n\x80\xff";
  for (int round = 0; round < 2000; ++round) {
    std::string text = round % 2 ? "{\"n\":1}\n" : "";
    const size_t length = random() % 40;
    for (size_t i = 0; i < length; ++i) text += alphabet[random() % alphabet.size()];
    put(path, text);
    try {
      read_journal(path);
    } catch (const DataError&) {
    }
  }
}

TEST(Journal, LosesAtMostTheLastLineOfAKilledWriter) {
  const TempFolder folder;
  for (int round = 0; round < 10; ++round) {
    const auto path = folder.path() / std::to_string(round);
    const pid_t writer = ::fork();
    if (writer == 0) {
      Journal journal(path, Journal::Sync::Never);
      for (int i = 0;; ++i) journal.append({{"i", i}, {"padding", std::string(300, 'x')}});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + 3 * round));
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    const JournalContents contents = read_journal(path);
    for (size_t i = 0; i < contents.lines.size(); ++i) ASSERT_EQ(contents.lines[i]["i"], i);
  }
}
