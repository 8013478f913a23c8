// MLPerf's MLLOG: :::MLLOG {"namespace": "", "time_ms": ..., "event_type": "POINT_IN_TIME", "key": ..., "value": ...,
// "metadata": {"file": ..., "lineno": ...}}. Metrics are written under the key "tracked_stats", which MLPerf's
// submitters use for them.
#include "base/text.h"
#include "record/dialects/all.h"
#include "record/dialects/json_dialect.h"

namespace assay {

namespace {

constexpr char kTrackedStats[] = "tracked_stats";

std::string event_type(const std::string& key) {
  const std::string name = lower(key);
  for (const char* end : {"_start", "_begin"}) {
    if (name.ends_with(end)) return "INTERVAL_START";
  }
  for (const char* end : {"_end", "_stop"}) {
    if (name.ends_with(end)) return "INTERVAL_END";
  }
  return "POINT_IN_TIME";
}

// Types that MLLOG does not have use their own name as key.
bool is_event(const Record& record) { return record.type == Record::Type::Event && record.data.is_object(); }

std::string key_of(const Record& record) {
  if (record.type == Record::Type::Event) return record.name;
  if (record.type == Record::Type::Metrics) return kTrackedStats;
  return std::string(type_name(record.type));
}

class MllogDialect : public JsonDialect {
 public:
  std::string_view name() const override { return "mllog"; }
  std::string_view summary() const override { return "MLPerf (:::MLLOG {...})"; }

 protected:
  const std::vector<std::string>& marks() const override {
    static const std::vector<std::string> kMarks{":::MLLOG "};
    return kMarks;
  }

  Json encode(const Record& record) const override {
    Json metadata = Json::object();
    metadata["file"] = record.file;
    metadata["lineno"] = record.line;
    Json value = record.data;
    if (is_event(record)) {
      const Json* found = member(record.data, "value");
      value = found ? *found : Json();
      for (const auto& [key, item] : record.data.items()) {
        if (key != "value") metadata[key] = item;
      }
    } else if (!record.name.empty() && record.type != Record::Type::Event) {
      metadata["name"] = record.name;
    }
    if (record.step) metadata["step"] = *record.step;
    if (record.rank != 0) metadata["rank"] = record.rank;

    const std::string key = key_of(record);
    Json object = Json::object();
    object["namespace"] = "";
    object["time_ms"] = record.time_us / 1000;
    object["event_type"] = event_type(key);
    object["key"] = key;
    object["value"] = std::move(value);
    object["metadata"] = std::move(metadata);
    return object;
  }

  Record decode(const Json& object) const override {
    Record record;
    record.time_us = microseconds(integer_member(object, "time_ms"));
    const std::string key = string_member(object, "key");
    const Json* value = member(object, "value");
    const Json* found = member(object, "metadata");
    const Json metadata = found && found->is_object() ? *found : Json::object();
    record.file = string_member(metadata, "file");
    if (const Json* line = member(metadata, "lineno")) record.line = small_integer(*line).value_or(0);
    if (const Json* rank = member(metadata, "rank")) record.rank = small_integer(*rank).value_or(0);
    record.step = integer_list(member(metadata, "step"));

    const std::optional<Record::Type> type = key == kTrackedStats ? Record::Type::Metrics : type_of(key);
    if (type && *type != Record::Type::Event && value && value->is_object()) {
      record.type = *type;
      record.name = string_member(metadata, "name");
      record.data = *value;
      return record;
    }
    record.type = Record::Type::Event;
    record.name = key;
    if (value && !value->is_null()) record.data["value"] = *value;
    for (const auto& [name, item] : metadata.items()) {
      const bool taken =
          name == "file" || name == "lineno" || (name == "step" && record.step) || (name == "rank" && record.rank != 0);
      if (!taken) record.data[name] = item;
    }
    return record;
  }
};

}  // namespace

const Dialect& mllog_dialect() {
  static const MllogDialect kDialect;
  return kDialect;
}

}  // namespace assay
