// One standard case of FlagPerf with the adaptions of all vendors to it, as files of ours.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "import/flagperf/import.h"

namespace assay {

// A number may be written with or without a fraction: 1 and 1.0 are the same here.
bool same_python_value(const Value& left, const Value& right);
// Whole numbers become numbers with a fraction where `other` has those, so that both have one type; 0 and 1 become
// false and true where `other` is one of those, as in Python.
Value with_types_of(Value value, const Value& other);

// The files cases/<model>/*.yaml and vendors/*/<case>/*, into `out`.
void import_case(const FlagperfTree& tree, size_t case_index, FlagperfImport& out);

}  // namespace assay
