// What a component uses to read its options from the effective configuration: typed, with defaults, and strict. A key
// that nobody read is an error, so an option that a component does not know is never ignored silently.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace assay {

// Dotted path -> place, as ResolvedCase::worker_json() writes it.
using Origins = std::map<std::string, std::string>;

// Every getter throws ConfigError naming place, path, what is wanted and what was found. A null counts as absent: the
// default applies. Without a default the key must be there.
class Reader {
 public:
  // `node` must outlive the reader; null is an empty section.
  explicit Reader(const Json& node, std::string path = "", std::shared_ptr<const Origins> origins = nullptr);

  bool has(const std::string& key) const;  // there and not null
  std::vector<std::string> keys() const;
  const std::string& path() const { return path_; }

  bool get_bool(const std::string& key);
  bool get_bool(const std::string& key, bool fallback);
  int64_t get_int(const std::string& key);
  int64_t get_int(const std::string& key, int64_t fallback);
  std::optional<int64_t> get_optional_int(const std::string& key);
  double get_double(const std::string& key);
  double get_double(const std::string& key, double fallback);
  std::optional<double> get_optional_double(const std::string& key);
  std::string get_string(const std::string& key);
  std::string get_string(const std::string& key, const std::string& fallback);
  std::optional<std::string> get_optional_string(const std::string& key);
  // One of the words.
  std::string get_choice(const std::string& key, const std::vector<std::string>& words, const std::string& fallback);
  std::vector<int64_t> get_ints(const std::string& key, std::vector<int64_t> fallback = {});
  std::vector<double> get_doubles(const std::string& key, std::vector<double> fallback = {});
  std::vector<std::string> get_strings(const std::string& key, std::vector<std::string> fallback = {});
  // Absent or null: empty. The section has its own finish().
  Reader section(const std::string& key);

  // Marks a key as known, for keys that concern another component.
  void ignore(const std::string& key) { read_.insert(key); }
  // Throws for the first key that nobody read, with the nearest that was. Keys that are null do not count.
  void finish() const;
  // A component's own complaint: "PLACE: PATH.key message, found VALUE".
  [[noreturn]] void fail(const std::string& key, const std::string& message) const;

 private:
  const Json* find(const std::string& key);
  const Json& need(const std::string& key, const Json* found) const;
  std::string place(const std::string& path) const;
  template <typename Item, typename Fits>
  std::vector<Item> get_list(const std::string& key, std::vector<Item> fallback, const char* wanted, Fits fits);

  const Json* node_;
  std::string path_;
  std::shared_ptr<const Origins> origins_;
  std::set<std::string> read_;
};

}  // namespace assay
