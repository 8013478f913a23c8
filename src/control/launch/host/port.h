// TCP ports of this host, for the rank that the others of a job come to.
#pragma once

#include <string>

namespace assay {

// A port that nobody listens at, on any address of this host. Not one of the last 64 that it gave.
int free_port();

// Throws InfrastructureError naming the port when it cannot be listened at now.
void check_port_free(int port);

}  // namespace assay
