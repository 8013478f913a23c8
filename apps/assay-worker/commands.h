// The commands of the worker. Each throws assay::Error for what the user can do something about.
#pragma once

#include "job.h"

namespace assay {

void run_train(Job& job);
void run_evaluate(Job& job);
void run_export(Job& job);
void run_infer(Job& job);

}  // namespace assay
