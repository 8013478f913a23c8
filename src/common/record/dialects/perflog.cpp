// FlagPerf's PerfLog: [PerfLog] {"event": "STEP_END", "value": {...}, "metadata": {"file": ..., "lineno": ...,
// "time_ms": ..., "rank": 0}}. A text message has "other" in place of "value"; step, epoch and loss may stand between.
#include "record/dialects/all.h"
#include "record/dialects/json_dialect.h"
#include "record/keys.h"

namespace assay {

namespace {

// What FlagPerf writes when it does not know where a line came from.
constexpr char kUnknownFile[] = "(unknown file)";
constexpr int kUnknownLine = -1;

std::string event_of(const Record& record) {
  switch (record.type) {
    case Record::Type::Event: return record.name;
    case Record::Type::Parameters: return "PARAMETERS";
    case Record::Type::Metadata: return "METADATA";
    case Record::Type::Metrics: return keys::kStepEnd;
    case Record::Type::Environment: return "ENVIRONMENT";
    case Record::Type::Result: return keys::kFinished;
    case Record::Type::Message: return record.name.empty() ? "MESSAGE" : record.name;
  }
  return "MESSAGE";
}

bool is_plain_message(const Record& record) {
  return record.type == Record::Type::Message && record.data.is_object() && record.data.size() == 1 &&
         record.data.contains("text") && record.data["text"].is_string();
}

class PerflogDialect : public JsonDialect {
 public:
  std::string_view name() const override { return "perflog"; }
  std::string_view summary() const override { return "FlagPerf ([PerfLog] {...})"; }

 protected:
  const std::vector<std::string>& marks() const override {
    static const std::vector<std::string> kMarks{"[PerfLog] "};
    return kMarks;
  }

  Json encode(const Record& record) const override {
    Json object = Json::object();
    object["event"] = event_of(record);
    if (is_plain_message(record)) {
      object["other"] = record.data["text"];
    } else if (record.data != Json::object()) {
      object["value"] = record.data;
    }
    if (record.type == Record::Type::Metadata) object["name"] = record.name;
    if (record.step) object["step"] = *record.step;
    const bool unknown = record.file.empty() && record.line == 0;
    Json metadata = Json::object();
    metadata["file"] = unknown ? kUnknownFile : record.file;
    metadata["lineno"] = unknown ? kUnknownLine : record.line;
    metadata["time_ms"] = record.time_us / 1000;
    metadata["rank"] = record.rank;
    object["metadata"] = std::move(metadata);
    return object;
  }

  Record decode(const Json& object) const override {
    Record record;
    set_event(record, object);
    const Json* metadata = member(object, "metadata");
    if (!metadata) return record;
    record.file = string_member(*metadata, "file");
    if (record.file == kUnknownFile) {
      record.file.clear();
    } else if (const Json* line = member(*metadata, "lineno")) {
      record.line = small_integer(*line).value_or(0);
    }
    record.time_us = microseconds(integer_member(*metadata, "time_ms"));
    if (const Json* rank = member(*metadata, "rank")) record.rank = small_integer(*rank).value_or(0);
    return record;
  }

 private:
  static void set_event(Record& record, const Json& object) {
    const std::string event = string_member(object, "event");
    const Json* value = member(object, "value");
    const Json* other = member(object, "other");
    if (value) record.data = *value;
    record.step = integer_list(member(object, "step"));
    record.type = Record::Type::Event;
    if (event == "PARAMETERS") {
      record.type = Record::Type::Parameters;
    } else if (event == "METADATA") {
      record.type = Record::Type::Metadata;
      record.name = string_member(object, "name");
    } else if (event == "ENVIRONMENT") {
      record.type = Record::Type::Environment;
    } else if (event == keys::kStepEnd && record.step && value) {
      record.type = Record::Type::Metrics;
    } else if (other && other->is_string() && !value) {
      record.type = Record::Type::Message;
      record.data = {{"text", *other}};
      if (event != "MESSAGE") record.name = event;
    } else {
      record.name = event;
      add_training_info(record, object);
    }
  }

  // step, epoch, loss and whatever else a driver adds beside the value.
  static void add_training_info(Record& record, const Json& object) {
    if (!record.data.is_object()) return;
    for (const auto& [key, value] : object.items()) {
      const bool known = key == "event" || key == "value" || key == "metadata" || (key == "step" && record.step);
      if (!known && !record.data.contains(key)) record.data[key] = value;
    }
  }
};

}  // namespace

const Dialect& perflog_dialect() {
  static const PerflogDialect kDialect;
  return kDialect;
}

}  // namespace assay
