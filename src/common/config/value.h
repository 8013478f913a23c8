// A configuration tree in which every node knows the place it came from. Maps keep the order of their keys. It knows
// nothing of what the keys mean: see schema.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "config/origin.h"

namespace assay {

class Value {
 public:
  enum class Type { Null, Bool, Int, Double, String, List, Map };
  struct Entry;
  using List = std::vector<Value>;
  using Map = std::vector<Entry>;

  Value();  // null
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  static Value null(Origin origin = {});
  static Value boolean(bool value, Origin origin = {});
  static Value integer(int64_t value, Origin origin = {});
  static Value real(double value, Origin origin = {});
  static Value string(std::string value, Origin origin = {});
  static Value list(Origin origin = {});
  static Value map(Origin origin = {});
  // The same origin for every node of the tree.
  static Value of(const Json& json, const Origin& origin = {});

  Type type() const { return static_cast<Type>(data_.index()); }
  bool is_null() const { return type() == Type::Null; }
  bool is_bool() const { return type() == Type::Bool; }
  bool is_int() const { return type() == Type::Int; }
  bool is_double() const { return type() == Type::Double; }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return type() == Type::String; }
  bool is_list() const { return type() == Type::List; }
  bool is_map() const { return type() == Type::Map; }

  // Each checks the type: a wrong one is a fault of the program, since the schema has looked at user input before.
  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;  // also of an integer
  const std::string& as_string() const;
  const List& items() const;
  List& items();
  const Map& entries() const;
  Map& entries();

  // A child of a map by its key, whatever characters that has; nullptr if there is none.
  const Value* child(std::string_view key) const;
  Value* child(std::string_view key);
  // A descendant by dotted path; numbers index lists: "a.b.0.c". The empty path is the node itself. nullptr if absent.
  const Value* find(std::string_view path) const;
  Value* find(std::string_view path);
  // Sets a child of a map, in place or at the end.
  void set(std::string_view key, Value value);
  void erase(std::string_view key);
  // Sets a descendant by path through maps only, creating maps on the way; a scalar in the way is replaced.
  void set_path(std::string_view path, Value value);

  const Origin& origin() const { return origin_; }
  void set_origin(Origin origin) { origin_ = std::move(origin); }
  void set_origin_deep(const Origin& origin);

  // A map with `_inherited_: False`: it replaces what lower layers and base files say, instead of adding to it.
  bool standalone() const { return standalone_; }
  void set_standalone(bool standalone) { standalone_ = standalone; }

  // Compares values only, not origins. 1 and 1.0 are different.
  bool same_as(const Value& other) const;
  Json to_json() const;
  std::string text() const;  // one line, for messages: 'ten', 10, 0.5, [1, 2], {...}, null

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Map> data_;
  Origin origin_;
  bool standalone_ = false;
};

struct Value::Entry {
  std::string key;
  Value value;
};

// "null", "a boolean", "an integer", ... for messages.
std::string_view type_text(Value::Type type);
// Every key of the map.
std::vector<std::string> keys_of(const Value& map);
std::string join_path(std::string_view parent, std::string_view key);

}  // namespace assay
