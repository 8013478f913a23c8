// A case's own file, or its folder, as a front-end: trained as `assay train` does without options.
#pragma once

#include "frontends/front_end.h"

namespace assay {

FrontEnd native_front_end();

}  // namespace assay
