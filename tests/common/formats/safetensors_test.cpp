#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"

using namespace assay;

namespace {

const std::vector<float> kValues = {1.5f, -2, 3, 4, 5, 6};
const std::vector<int64_t> kLabels = {7, 8};

std::vector<TensorView> example() {
  return {{"weight", "F32", {2, 3}, reinterpret_cast<const std::byte*>(kValues.data()), 24},
          {"labels", "I64", {2}, reinterpret_cast<const std::byte*>(kLabels.data()), 16},
          {"empty", "F32", {0, 3}, reinterpret_cast<const std::byte*>(kValues.data()), 0}};
}

void put(const fs::path& path, const std::string& header, size_t data_size) {
  std::ofstream file(path, std::ios::binary);
  const uint64_t size = header.size();
  file.write(reinterpret_cast<const char*>(&size), 8);
  file << header << std::string(data_size, '\0');
}

}  // namespace

TEST(Safetensors, WritesAndReadsBack) {
  const TempFolder folder;
  const auto path = folder.path() / "t.safetensors";
  const std::string hash = write_safetensors(path, example(), {{"format", "pt"}, {"weights", "abc"}});
  EXPECT_EQ(hash, sha256_file(path));
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.metadata().at("weights"), "abc");
  EXPECT_EQ(file.at("weight").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(file.at("weight").bytes, kValues.data(), 24), 0);
  EXPECT_EQ(std::memcmp(file.at("labels").bytes, kLabels.data(), 16), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.at("weight").bytes) % 8, 0u);
  try {
    file.at("wieght");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'weight'"), std::string::npos);
  }
}

TEST(Safetensors, MatchesWhatPythonReads) {
  const TempFolder folder;
  const auto path = folder.path() / "t.safetensors";
  write_safetensors(path, example());
  // The format, as its specification gives it.
  const std::string script =
      "import json,struct,sys\n"
      "b=open(sys.argv[1],'rb').read(); n=struct.unpack('<Q',b[:8])[0]; h=json.loads(b[8:8+n]); e=h['weight']\n"
      "d=b[8+n:]; s,t=e['data_offsets']; print(e['dtype'],e['shape'],struct.unpack('<6f',d[s:t]))";
  const CapturedOutput output = capture({.argv = {"/usr/bin/python3", "-c", script, path.string()}});
  EXPECT_EQ(output.out, "F32 [2, 3] (1.5, -2.0, 3.0, 4.0, 5.0, 6.0)\n") << output.err;
}

TEST(Safetensors, RejectsLiesInTheHeader) {
  const TempFolder folder;
  const auto path = folder.path() / "bad";
  const auto refused = [&](const std::string& header, size_t data_size) {
    put(path, header, data_size);
    EXPECT_THROW(SafetensorsFile{path}, DataError) << header;
  };
  refused("{", 0);
  refused("[]", 0);
  refused("{\"a\":1}", 0);
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4);                      // too few bytes
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 4);                      // outside
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8);                      // bytes left over
  refused(R"({"a":{"dtype":"X1","shape":[1],"data_offsets":[0,4]}})", 4);                       // unknown type
  refused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4);                     // negative
  refused(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0);  // overflow
  refused(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      4);
  refused(std::string(100'000, '['), 0);  // nested
  std::ofstream(path, std::ios::binary) << "abc";
  EXPECT_THROW(SafetensorsFile{path}, DataError);
  EXPECT_THROW(SafetensorsFile{"/no/such/file"}, DataError);
  EXPECT_THROW(SafetensorsFile{folder.path()}, DataError);
}

TEST(Safetensors, SurvivesDamagedFiles) {
  const TempFolder folder;
  const auto path = folder.path() / "t";
  write_safetensors(path, example(), {{"k", "v"}});
  const std::string good = read_file(path);
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 1 + round % 4; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    if (round % 3 == 0) bad.resize(random() % bad.size());
    std::ofstream(path, std::ios::binary) << bad;
    try {
      const SafetensorsFile file(path);
      for (const TensorView& tensor : file.tensors()) {
        size_t sum = 0;  // every byte can be read
        for (size_t i = 0; i < tensor.num_bytes; ++i) sum += static_cast<size_t>(tensor.bytes[i]);
        ASSERT_LE(sum, 255 * tensor.num_bytes);
      }
    } catch (const DataError&) {
    }
  }
}
