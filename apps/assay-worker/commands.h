// The commands of the worker. Each throws assay::Error for what the user can do something about.
#pragma once

#include "job.h"

namespace assay {

class ParameterServerStrategy;

void run_train(Job& job);
void run_serve(Job& job);
void run_evaluate(Job& job);
void run_export(Job& job);
void run_infer(Job& job);
void run_generate(Job& job);

// Of a trainer. Throws ConfigError when configuration and environment do not agree that there are servers,
// CommunicationError when one does not answer.
std::unique_ptr<ParameterServerStrategy> connect_to_servers(Job& job);

// Checks a vendor's plugin and prints one line per check. True when all passed. Throws ConfigError when it cannot be
// loaded.
bool check_plugin(const std::string& plugin);

}  // namespace assay
