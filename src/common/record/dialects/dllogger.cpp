// NVIDIA DLLogger's JSON stream: DLLL {"timestamp": ..., "type": "LOG", "step": [0, 5], "data": {...}}.
#include "base/text.h"
#include "record/dialects/all.h"
#include "record/dialects/dll_json.h"

namespace assay {

Json dll_step(const Record& record) {
  switch (record.type) {
    case Record::Type::Parameters: return "PARAMETER";
    case Record::Type::Environment: return "ENVIRONMENT";
    case Record::Type::Message: return "MESSAGE";
    case Record::Type::Event: return record.name;
    case Record::Type::Metrics: return record.step ? Json(*record.step) : Json();
    case Record::Type::Result: return Json::array();  // the run's summary
    case Record::Type::Metadata: break;               // has no step
  }
  return nullptr;
}

void set_dll_step(Record& record, const Json& step) {
  record.type = Record::Type::Metrics;
  if (step.is_string()) {
    const auto& text = step.get_ref<const std::string&>();
    record.type = text == "PARAMETER"     ? Record::Type::Parameters
                  : text == "ENVIRONMENT" ? Record::Type::Environment
                  : text == "MESSAGE"     ? Record::Type::Message
                                          : Record::Type::Event;
    if (record.type == Record::Type::Event) record.name = text;
  } else if (step.is_number_integer()) {
    const Json list = Json::array({step});
    record.step = integer_list(&list);
  } else {
    record.step = integer_list(&step);
  }
}

Json dll_head(const Record& record, const std::string& datetime) {
  Json head = Json::object();
  head["timestamp"] = seconds_text(record.time_us);
  if (record.type == Record::Type::Metadata) {  // both loggers write these two the other way round here
    head["elapsedtime"] = seconds_text(record.elapsed_us);
    head["datetime"] = datetime;
  } else {
    head["datetime"] = datetime;
    head["elapsedtime"] = seconds_text(record.elapsed_us);
  }
  return head;
}

void set_dll_head(Record& record, const Json& object, Zone zone) {
  const auto seconds = [&](const char* key) -> std::optional<int64_t> {
    const Json* value = member(object, key);
    if (value && value->is_number()) return parse_seconds(python_float(value->get<double>()));
    return value && value->is_string() ? parse_seconds(value->get_ref<const std::string&>()) : std::nullopt;
  };
  record.elapsed_us = seconds("elapsedtime").value_or(0);
  if (const auto time_us = seconds("timestamp")) {
    record.time_us = *time_us;
  } else if (const auto parsed = parse_time(string_member(object, "datetime"), zone)) {
    record.time_us = parsed->time_us;
  }
}

namespace {

class DlloggerDialect : public JsonDialect {
 public:
  std::string_view name() const override { return "dllogger"; }
  std::string_view summary() const override { return "NVIDIA DLLogger, JSON stream (DLLL {...})"; }

 protected:
  const std::vector<std::string>& marks() const override {
    static const std::vector<std::string> kMarks{"DLLL "};
    return kMarks;
  }

  Json encode(const Record& record) const override {
    Json object = dll_head(record, datetime_text(record.time_us, Zone::Utc) + "+00:00");
    if (record.type == Record::Type::Metadata) {
      object["type"] = "METADATA";
      object["metric"] = record.name;
      object["metadata"] = record.data;
    } else {
      object["type"] = "LOG";
      object["step"] = dll_step(record);
      object["data"] = record.data;
    }
    return object;
  }

  Record decode(const Json& object) const override {
    Record record;
    set_dll_head(record, object, Zone::Utc);
    if (string_member(object, "type") == "METADATA") {
      record.type = Record::Type::Metadata;
      record.name = string_member(object, "metric");
      if (const Json* data = member(object, "metadata")) record.data = *data;
      return record;
    }
    const Json* step = member(object, "step");
    set_dll_step(record, step ? *step : Json());
    if (const Json* data = member(object, "data")) record.data = *data;
    return record;
  }
};

}  // namespace

const Dialect& dllogger_dialect() {
  static const DlloggerDialect kDialect;
  return kDialect;
}

}  // namespace assay
