// tcap_dllogger's JSON: TCAPPDLL {...} as DLLogger's, but with local time and with `data` as the text of a Python
// dictionary of strings; and INFO {...} for what is not measured.
#include "base/text.h"
#include "record/dialects/all.h"
#include "record/dialects/dll_json.h"
#include "record/python_text.h"

namespace assay {

namespace {

constexpr char kInfo[] = "INFO ";

bool has_info_form(const Record& record) {
  return record.type == Record::Type::Parameters ||
         (record.type == Record::Type::Message && record.data.is_object() && record.data.size() == 1 &&
          !string_member(record.data, "text").empty());
}

// {'rank': '0', 'train.loss': '1.721'}: the rank comes first, every value is its str().
std::string data_text(const Record& record) {
  if (!record.data.is_object()) return python_str(record.data);
  Json strings = Json::object();
  if (!record.data.contains("rank")) strings["rank"] = std::to_string(record.rank);
  for (const auto& [key, value] : record.data.items()) strings[key] = python_str(value);
  return python_repr_of_strings(strings);
}

void set_data(Record& record, const Json& data) {
  if (!data.is_string()) {
    record.data = data;
    return;
  }
  const std::optional<Json> parsed = parse_python_literal(data.get_ref<const std::string&>());
  if (!parsed || !parsed->is_object()) {
    record.data = value_of_python_str(data.get_ref<const std::string&>());
    return;
  }
  record.data = Json::object();
  bool first = true;
  for (const auto& [key, value] : parsed->items()) {
    Json typed = value.is_string() ? value_of_python_str(value.get_ref<const std::string&>()) : value;
    const std::optional<int64_t> rank = first && key == "rank" ? small_integer(typed) : std::nullopt;
    first = false;
    if (rank) {
      record.rank = static_cast<int>(*rank);
    } else {
      record.data[key] = std::move(typed);
    }
  }
}

class TcapDialect : public JsonDialect {
 public:
  std::string_view name() const override { return "tcap"; }
  std::string_view summary() const override { return "tcap_dllogger, JSON (TCAPPDLL {...}, INFO {...})"; }

  bool recognises(std::string_view line) const override {
    if (line.find("TCAPPDLL {") == std::string_view::npos &&
        line.find("\"type\": \"INFO\"") == std::string_view::npos) {
      return false;  // any program may print INFO {
    }
    return JsonDialect::recognises(line);
  }

 protected:
  const std::vector<std::string>& marks() const override {
    static const std::vector<std::string> kMarks{"TCAPPDLL ", kInfo};
    return kMarks;
  }
  const std::string& mark_of(const Json& object) const override {
    return marks()[string_member(object, "type") == "INFO" ? 1 : 0];
  }

  Json encode(const Record& record) const override {
    const std::string datetime = datetime_text(record.time_us, Zone::Local);
    if (has_info_form(record)) {
      Json object = Json::object();
      object["local_rank"] = record.rank;
      object["datetime"] = datetime;
      object["type"] = "INFO";
      object["data"] = record.type == Record::Type::Message ? record.data.at("text") : record.data;
      return object;
    }
    Json object = dll_head(record, datetime);
    if (record.type == Record::Type::Metadata) {
      object["type"] = "METADATA";
      object["metric"] = record.name;
      object["metadata"] = record.data;
    } else {
      object["type"] = "LOG";
      object["step"] = dll_step(record);
      object["data"] = data_text(record);
    }
    return object;
  }

  Record decode(const Json& object) const override {
    Record record;
    set_dll_head(record, object, Zone::Local);
    const std::string type = string_member(object, "type");
    const Json* data = member(object, "data");
    if (type == "METADATA") {
      record.type = Record::Type::Metadata;
      record.name = string_member(object, "metric");
      if (const Json* metadata = member(object, "metadata")) record.data = *metadata;
    } else if (type == "INFO") {
      const bool text = data && data->is_string();
      record.type = text ? Record::Type::Message : Record::Type::Parameters;
      if (data) record.data = text ? Json{{"text", *data}} : *data;
      if (const Json* rank = member(object, "local_rank")) record.rank = small_integer(*rank).value_or(0);
    } else {
      const Json* step = member(object, "step");
      set_dll_step(record, step ? *step : Json());
      if (data) set_data(record, *data);
    }
    return record;
  }
};

}  // namespace

const Dialect& tcap_dialect() {
  static const TcapDialect kDialect;
  return kDialect;
}

}  // namespace assay
