#include "formats/npy.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "base/process.h"

using namespace assay;

namespace {

std::string python(const std::string& script, const fs::path& file) {
  const CapturedOutput output = capture({.argv = {"/usr/bin/python3", "-c", script, file.string()}});
  EXPECT_TRUE(output.status.ok()) << output.err;
  return output.out;
}

void put_bytes(const fs::path& path, std::string_view bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// A small file of the kind that NumPy writes, with a header of one's own.
std::string npy_with(const std::string& header, size_t data_size) {
  std::string text = header;
  while ((10 + text.size() + 1) % 16 != 0) text += ' ';
  text += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(text.size() & 0xff);
  out += static_cast<char>(text.size() >> 8);
  return out + text + std::string(data_size, '\1');
}

const std::vector<int32_t> kLens = {3, 0, 70000, -1};
const std::vector<int64_t> kBig = {1, int64_t{1} << 40, 7};

}  // namespace

TEST(Npy, ReadsWhatNumpyWrites) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a.npy";
  python("import numpy as np, sys; np.save(sys.argv[1], np.arange(1000, dtype=np.uint16) * 65)", path);
  const NpyFile file(path);
  EXPECT_EQ(file.header().dtype, "<u2");
  EXPECT_EQ(file.header().shape, std::vector<int64_t>{1000});
  const auto items = file.items<uint16_t>();
  ASSERT_EQ(items.size(), 1000u);
  EXPECT_EQ(items[999], 64935);
  python("import numpy as np, sys; np.save(sys.argv[1], np.zeros((2, 3, 0), dtype=np.int32))", path);
  EXPECT_EQ(NpyFile(path).header().shape, (std::vector<int64_t>{2, 3, 0}));
  python("import numpy as np, sys; np.save(sys.argv[1], np.array(5, dtype=np.float64))", path);
  EXPECT_EQ(NpyFile(path).header().num_items, 1u);
}

TEST(Npy, WritesWhatNumpyReads) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a.npy";
  for (const size_t room : {0, 128, 300}) {
    put_bytes(path, npy_header("<i4", {2, 2}, room) + std::string(reinterpret_cast<const char*>(kLens.data()), 16));
    EXPECT_EQ(python("import numpy as np, sys; a = np.load(sys.argv[1]); print(a.dtype, a.tolist())", path),
              "int32 [[3, 0], [70000, -1]]\n");
  }
}

TEST(Npy, RejectsLiesInTheHeader) {
  const auto refused = [](const std::string& header, size_t data_size) {
    EXPECT_THROW(parse_npy(npy_with(header, data_size), "x"), DataError) << header;
  };
  EXPECT_EQ(parse_npy(npy_with("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", 12), "x").num_items, 3u);
  refused("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", 11);
  refused("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", 13);
  refused("{'descr': '<i4', 'fortran_order': True, 'shape': (3,), }", 12);
  refused("{'descr': '>i4', 'fortran_order': False, 'shape': (3,), }", 12);
  refused("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", 12);
  refused("{'descr': '<i4', 'fortran_order': False, 'shape': (-3,), }", 12);
  refused("{'descr': '<i4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 0);
  refused("{'descr': '<i8', 'fortran_order': False, 'shape': (4611686018427387904,), }", 0);
  refused("{'descr': '<i4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,3), }", 12);
  refused("{'descr': '<i4', 'shape': (3,), }", 12);
  refused("{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", 12);
  refused("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), } x", 12);
  refused("{'descr': '<i4", 12);
  refused("", 12);
  EXPECT_THROW(parse_npy("", "x"), DataError);
  EXPECT_THROW(parse_npy("\x93NUMPY", "x"), DataError);
}

TEST(Npz, ReadsWhatNumpyWrites) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a.npz";
  const std::string make =
      "import numpy as np, sys; np.FUNCTION(sys.argv[1], lens=np.array([3, 0, 70000, -1], np.int32),"
      "docs=np.arange(100000), small=np.array([1, 2], np.uint8), f=np.zeros(3))";
  for (const std::string function : {"savez", "savez_compressed"}) {
    std::string script = make;
    script.replace(script.find("FUNCTION"), 8, function);
    python(script, path);
    const NpzFile file(path);
    EXPECT_EQ(file.read("lens").integers("x"), (std::vector<int64_t>{3, 0, 70000, -1}));
    std::vector<int64_t> expected(100000);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(file.read("docs").integers("x"), expected);
    EXPECT_EQ(file.read("small").integers("x"), (std::vector<int64_t>{1, 2}));
    EXPECT_THROW(file.read("f").integers("x"), DataError);
    EXPECT_THROW(file.read("sents"), DataError);
    EXPECT_FALSE(file.has("sents"));
  }
}

TEST(Npz, WritesWhatNumpyReads) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a.npz";
  write_npz_atomic(path, {npz_item("lens", kLens), npz_item("big", kBig), npz_item("square", kLens, {2, 2})});
  EXPECT_EQ(python("import numpy as np, sys; z = np.load(sys.argv[1])\n"
                   "print({k: (str(z[k].dtype), z[k].tolist()) for k in sorted(z.files)})",
                   path),
            "{'big': ('int64', [1, 1099511627776, 7]), 'lens': ('int32', [3, 0, 70000, -1]), "
            "'square': ('int32', [[3, 0], [70000, -1]])}\n");
  const NpzFile file(path);
  EXPECT_EQ(file.read("big").integers("x"), kBig);
}

// Every prefix, and many changed bytes: an error or the same numbers, since a checksum guards the data; never
// a crash, never a huge allocation.
TEST(Npz, DetectsDamage) {
  const TempFolder folder;
  const fs::path good = folder.path() / "good.npz", deflated = folder.path() / "deflated.npz",
                 bad = folder.path() / "bad";
  write_npz_atomic(good, {npz_item("lens", kLens)});
  python("import numpy as np, sys; np.savez_compressed(sys.argv[1], lens=np.array([3, 0, 70000, -1], np.int32))",
         deflated);
  for (const fs::path& source : {good, deflated}) {
    const std::string whole = read_file(source);
    for (size_t size = 0; size < whole.size(); ++size) {
      put_bytes(bad, whole.substr(0, size));
      EXPECT_THROW(NpzFile(bad).read("lens").integers("x"), DataError) << size;
    }
    std::mt19937 random(1);
    for (int round = 0; round < 1000; ++round) {
      std::string changed = whole;
      const int changes = 1 + static_cast<int>(random() % 4);
      for (int i = 0; i < changes; ++i) changed[random() % changed.size()] = static_cast<char>(random());
      put_bytes(bad, changed);
      try {
        EXPECT_EQ(NpzFile(bad).read("lens").integers("x"), (std::vector<int64_t>{3, 0, 70000, -1}));
      } catch (const DataError&) {
      }
    }
  }
}

TEST(Npz, RejectsRandomBytes) {
  const TempFolder folder;
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 400, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    put_bytes(folder.path() / "x", bytes);
    EXPECT_THROW(NpzFile(folder.path() / "x"), DataError);
    EXPECT_THROW(NpyFile(folder.path() / "x"), DataError);
  }
}
