#include "datasets/progress.h"

#include "base/error.h"
#include "base/signals.h"

namespace assay {

void check_stop() {
  if (stop_signal() != 0) throw InterruptedError("interrupted");
}

}  // namespace assay
