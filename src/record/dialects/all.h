// The dialects there are. Only the registry in dialect.cpp and the tests need this header.
#pragma once

#include "record/dialect.h"

namespace assay {

const Dialect& assay_dialect();          // our own record lines
const Dialect& dllogger_dialect();       // DLLL {...}
const Dialect& dllogger_text_dialect();  // DLL 2026-11-15 ... - (0, 5) loss : 0.1
const Dialect& tcap_dialect();           // TCAPPDLL {...} and INFO {...}
const Dialect& tcap_text_dialect();      // TCAPPDLL 2026-11-15 ... - Epoch: 0 Iteration: 1
const Dialect& perflog_dialect();        // [PerfLog] {...}
const Dialect& mllog_dialect();          // :::MLLOG {...}
const Dialect& fleetx_dialect();         // [train] epoch: [0/1], batch: [1/2], loss: ...
const Dialect& paddleocr_dialect();      // epoch: [1/24], global_step: 120, ...
const Dialect& paddleclas_dialect();     // [Train][Epoch 1/2][Iter: 0/10]lr(Cls): 0.1, ...
const Dialect& paddleseg_dialect();      // [TRAIN] epoch: 1, iter: 10/20, ...

}  // namespace assay
