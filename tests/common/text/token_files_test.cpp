#include "text/token_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/process.h"
#include "text/documents.h"

namespace assay {
namespace {

const std::vector<std::vector<int32_t>> kDocuments = {{1, 2, 3}, {4}, {5, 6, 7, 8}};

void write_documents(const fs::path& prefix, int32_t vocabulary_size) {
  TokenWriter writer(prefix, vocabulary_size);
  for (const auto& document : kDocuments) writer.add(document, static_cast<int64_t>(10 * document.size()));
  writer.add({}, 5);  // has no tokens: left out
  writer.finish();
}

size_t num_files(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

std::string fault_of(const fs::path& prefix) {
  try {
    TokenFile file(prefix);
  } catch (const DataError& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(TokenFiles, RoundTripInBothWidths) {
  for (const int32_t vocabulary_size : {10, 65535, 65536, 100000}) {
    const TempFolder folder;
    const fs::path prefix = folder.path() / "sub" / "x";
    write_documents(prefix, vocabulary_size);
    EXPECT_EQ(num_files(prefix.parent_path()), 2u);
    const TokenFile file(prefix);
    EXPECT_EQ(file.num_tokens(), 8);
    EXPECT_EQ(file.num_documents(), 3);
    EXPECT_EQ(file.length_of(2), 4);
    EXPECT_EQ(file.max_token(), 8);
    EXPECT_EQ(*file.num_bytes(), (std::vector<int64_t>{30, 10, 40}));
    std::vector<int64_t> tokens(5);
    file.copy(2, 5, tokens.data());
    EXPECT_EQ(tokens, (std::vector<int64_t>{3, 4, 5, 6, 7}));
  }
}

TEST(TokenFiles, MatchesNumpyReadingOfFleetX) {
  const TempFolder folder;
  for (const auto& [vocabulary_size, dtype] : {std::pair{65535, "uint16"}, std::pair{65536, "int32"}}) {
    write_documents(folder.path() / "x", vocabulary_size);
    const CapturedOutput output =
        capture({.argv = {"/usr/bin/python3", "-c",
                          "import numpy as np\n"
                          "ids = np.load('x_ids.npy', mmap_mode='r'); z = np.load('x_idx.npz')\n"
                          "print(ids.dtype, ids.tolist(), z['lens'].dtype, z['lens'].tolist(),"
                          " z['docs'].tolist())"},
                 .cwd = folder.path()});
    EXPECT_EQ(output.out, std::string(dtype) + " [1, 2, 3, 4, 5, 6, 7, 8] int32 [3, 1, 4] [0, 1, 2, 3]\n")
        << output.err;
  }
}

TEST(TokenFiles, KeepsOldFilesWhenWriterIsUnfinished) {
  const TempFolder folder;
  const fs::path prefix = folder.path() / "x";
  write_documents(prefix, 10);
  {
    TokenWriter writer(prefix, 10);
    writer.add(std::vector<int32_t>(1'000'000, 1), 1);
    EXPECT_EQ(num_files(folder.path()), 3u);
  }
  EXPECT_EQ(num_files(folder.path()), 2u);
  EXPECT_EQ(TokenFile(prefix).num_tokens(), 8);
  TokenWriter empty(folder.path() / "y", 10);
  EXPECT_THROW(empty.finish(), InvalidError);
}

TEST(TokenFiles, RejectsFilesThatDoNotBelongTogether) {
  const TempFolder folder;
  const fs::path prefix = folder.path() / "x";
  EXPECT_NE(fault_of(prefix).find("x_ids.npy: cannot read"), std::string::npos);
  write_documents(prefix, 10);
  const auto index = [&](const std::vector<int64_t>& lens, const std::vector<int64_t>& docs) {
    write_npz_atomic(TokenPaths(prefix).index, {npz_item("lens", lens), npz_item("docs", docs)});
  };
  index({3, 5}, {0, 2});
  EXPECT_EQ(TokenFile(prefix).num_documents(), 2);
  EXPECT_FALSE(TokenFile(prefix).num_bytes());
  index({3, 4}, {0, 2});
  EXPECT_NE(fault_of(prefix).find("do not belong together"), std::string::npos);
  index({3, 6}, {0, 2});
  EXPECT_NE(fault_of(prefix).find("do not belong together"), std::string::npos);
  index({3, -1, 6}, {0, 2});
  EXPECT_NE(fault_of(prefix).find("document 1 has -1 tokens"), std::string::npos);
  index({3, INT64_MAX, 5}, {0, 2});
  EXPECT_NE(fault_of(prefix).find("document 1"), std::string::npos);
  index({3, 5}, {0, 9});
  EXPECT_NE(fault_of(prefix).find("`docs`"), std::string::npos);
  index({3, 5}, {2, 0});
  EXPECT_NE(fault_of(prefix).find("`docs`"), std::string::npos);
  const std::vector<float> floats(8, 1);
  std::ofstream(TokenPaths(prefix).ids, std::ios::binary)
      << npy_header("<f4", {8}) << std::string_view(reinterpret_cast<const char*>(floats.data()), 32);
  EXPECT_NE(fault_of(prefix).find("tokens of type '<f4'"), std::string::npos);
}

TEST(Documents, ReadsLinesAndWholeFiles) {
  const TempFolder folder;
  std::ofstream(folder.path() / "a.jsonl")
      << "{\"text\": \"one\\ntwo\", \"label\": 3}\n\n{\"text\": \"\", \"more\": []}\r\n{\"text\": \"x\"}";
  DocumentReader lines(folder.path() / "a.jsonl");
  const auto first = lines.next();
  EXPECT_EQ(first->text, "one\ntwo");
  EXPECT_EQ(first->label, 3);
  const auto second = lines.next();
  EXPECT_EQ(second->text, "");
  EXPECT_EQ(second->line, 3u);
  EXPECT_FALSE(second->label);
  EXPECT_EQ(lines.next()->text, "x");
  EXPECT_FALSE(lines.next());
  EXPECT_EQ(lines.num_bytes_read(), lines.num_bytes());

  std::ofstream(folder.path() / "b.txt") << "{\"text\": 1}\nplain\xff";
  DocumentReader whole(folder.path() / "b.txt");
  EXPECT_EQ(whole.next()->text, "{\"text\": 1}\nplain\xff");
  EXPECT_FALSE(whole.next());
}

TEST(Documents, NamesTheLineOfAFault) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a.jsonl";
  const auto fault = [&](const std::string& line) -> std::string {
    std::ofstream(path) << "{\"text\": \"fine\"}\n" << line << "\n";
    DocumentReader reader(path);
    reader.next();
    try {
      reader.next();
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  for (const std::string line :
       {"{\"text\": 3}", "{}", "[1]", "\"text\"", "nonsense", "{\"text\": \"a\"", "\x80\x81"}) {
    EXPECT_NE(fault(line).find("a.jsonl:2: "), std::string::npos) << line;
  }
  for (const std::string label : {"-1", "1.5", "\"spam\"", "null", "99999999999"}) {
    EXPECT_NE(fault("{\"text\": \"a\", \"label\": " + label + "}").find("a.jsonl:2: label"), std::string::npos)
        << label;
  }
  EXPECT_NE(fault(std::string(100'000, '[')).find("a.jsonl:2: "), std::string::npos);
  EXPECT_THROW(DocumentReader(folder.path() / "none.jsonl"), DataError);
  std::ofstream(folder.path() / "a.csv") << "x";
  EXPECT_THROW(DocumentReader(folder.path() / "a.csv"), DataError);
}

}  // namespace
}  // namespace assay
