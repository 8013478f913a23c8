// A record as a JSON object and back, member by member. The names are those of our own record lines.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "record/record.h"

namespace assay {

// Every member, defaults too; "step" is null where the record has none.
Json members_of(const Record& record);

// Sets one member; throws DataError, naming `where` and the key, when the key is unknown or the value does not fit.
void set_member(Record& record, const std::string& key, Json value, const std::string& where);

// The members of `wanted` that `found` does not have, to the last digit and type; {} when they are the same record.
Json difference(const Record& found, const Record& wanted);

}  // namespace assay
