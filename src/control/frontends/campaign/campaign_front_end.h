// campaign.yaml as a front-end: cases, rounds and hosts.
#pragma once

#include "frontends/front_end.h"

namespace assay {

FrontEnd campaign_front_end();

}  // namespace assay
