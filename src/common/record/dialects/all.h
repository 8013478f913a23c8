// The dialects there are, one line each, in the order in which a line is offered to them: "perflog" is
// perflog_dialect(). Only the registry in dialect.cpp and the tests need this header.
#pragma once

#include "record/dialect.h"

// clang-format off
#define ASSAY_ALL_DIALECTS(DIALECT)                                                 \
  DIALECT(assay)          /* our own record lines */                                \
  DIALECT(dllogger)       /* DLLL {...} */                                          \
  DIALECT(dllogger_text)  /* DLL 2026-11-15 ... - (0, 5) loss : 0.1 */              \
  DIALECT(tcap)           /* TCAPPDLL {...} and INFO {...} */                       \
  DIALECT(tcap_text)      /* TCAPPDLL 2026-11-15 ... - Epoch: 0 Iteration: 1 */     \
  DIALECT(perflog)        /* [PerfLog] {...} */                                     \
  DIALECT(mllog)          /* :::MLLOG {...} */                                      \
  DIALECT(fleetx)         /* [train] epoch: [0/1], batch: [1/2], loss: ... */       \
  DIALECT(paddleclas)     /* [Train][Epoch 1/2][Iter: 0/10]lr(Cls): 0.1, ... */     \
  DIALECT(paddleseg)      /* [TRAIN] epoch: 1, iter: 10/20, ... */                  \
  DIALECT(paddleocr)      /* epoch: [1/24], global_step: 120, ... */
// clang-format on

namespace assay {

#define ASSAY_DECLARE_DIALECT(name) const Dialect& name##_dialect();
ASSAY_ALL_DIALECTS(ASSAY_DECLARE_DIALECT)
#undef ASSAY_DECLARE_DIALECT

}  // namespace assay
