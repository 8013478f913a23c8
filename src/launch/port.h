// TCP ports of this host, for the rank that the others of a job come to.
#pragma once

#include <string>

namespace assay {

// A port that nobody listens at, on any address of this host. Two calls in a row give different ones.
int free_port();

// Throws InfrastructureError naming the port when it cannot be listened at now.
void check_port_free(int port);

}  // namespace assay
