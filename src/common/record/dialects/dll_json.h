// What DLLogger's JSON stream and its descendant tcap_dllogger have in common.
#pragma once

#include "record/dialects/json_dialect.h"
#include "record/log_time.h"

namespace assay {

// The "step" of a LOG line: a list, "PARAMETER", or the name of an event.
Json dll_step(const Record& record);
void set_dll_step(Record& record, const Json& step);

// timestamp, datetime and elapsedtime in their order; and back, from whichever are there.
Json dll_head(const Record& record, const std::string& datetime);
void set_dll_head(Record& record, const Json& object, Zone zone);

}  // namespace assay
