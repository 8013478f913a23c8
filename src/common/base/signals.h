// SIGINT and SIGTERM as a request to stop, seen by whoever waits. A second one ends the program at once.
#pragma once

namespace assay {

// Installs the handlers; call once, early in main.
void catch_stop_signals();
// From now on a second signal is no more than the first: for who must end others before itself.
void end_in_peace();
// The signal that asked for a stop, 0 if none did.
int stop_signal();
// Readable once a stop was asked for: for poll(2) loops; -1 before catch_stop_signals().
int stop_fd();

}  // namespace assay
