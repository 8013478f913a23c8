// Holding a layer against the schema: unknown keys, types, ranges. Messages name file, line, key and the nearest known
// key.
#pragma once

#include <string>

#include "config/schema.h"
#include "config/value.h"

namespace assay {

// Checks one layer and brings its values to their types: an integer for a number becomes a number, -1 for "no limit"
// becomes null. `declared` is the effective configuration of the case alone: in open sections a layer may use the keys
// that the case has, with the same types; nullptr for the case file itself, which may declare any. Throws ConfigError.
void check_layer(Value& layer, const Schema& schema, const Value* declared);

// Checks what only the whole shows: required keys, parameters that the chosen schedule does not take.
void check_complete(const Value& effective, const Schema& schema);

// Adds the defaults that apply, in the order of the schema.
Value with_defaults(const Value& given, const Schema& schema);

// Is this a key or section that the schema knows or the case declares? Throws ConfigError naming the nearest if not.
void check_path(const std::string& path, const Schema& schema, const Value& declared, const std::string& where);

}  // namespace assay
