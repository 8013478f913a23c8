// Every key and event name that records have, in one place: what the worker writes, what is extracted from logs, and
// what results, verdicts and reports read. tests/common/record/keys_test.cpp fails for a key that is spelled out
// elsewhere.
#pragma once

namespace assay::keys {

// Metrics, with the names that tcap_dllogger's users know. Iterations are 1-based within the epoch.
inline constexpr char kTrainLoss[] = "train.loss";
inline constexpr char kTrainIps[] = "train.ips";  // samples per second since the last log line
inline constexpr char kTrainLr[] = "train.lr";
inline constexpr char kTrainLossScale[] = "train.loss_scale";
inline constexpr char kTrainFoundInf[] = "train.found_inf";  // steps skipped since the last log line
inline constexpr char kTrainDataTime[] = "train.data_time";  // seconds per step, mean since the last log line
inline constexpr char kTrainForwardTime[] = "train.fp_time";
inline constexpr char kTrainBackwardTime[] = "train.bp_time";
inline constexpr char kTrainOptimizerTime[] = "train.grad_time";
inline constexpr char kTrainCommTime[] = "train.comm_time";  // of these, waiting for other processes, if any
inline constexpr char kTrainMfu[] = "train.mfu";             // model FLOPS over peak FLOPS; null when either is unknown
inline constexpr char kTrainPeakMemory[] = "train.peak_memory_bytes";  // largest resident size so far
inline constexpr char kTrainComputeTime[] = "train.compute_time";      // forward + backward + optimizer
inline constexpr char kGlobalStep[] = "global_step";  // optimizer steps done; in every train metric record
inline constexpr char kMaxSteps[] = "max_steps";      // in the TRAIN_START event: for progress bars
inline constexpr char kValLoss[] = "val.loss";
inline constexpr char kValIps[] = "val.ips";
inline constexpr char kValMetric[] = "val.metric";  // which one: metadata "name", e.g. "accuracy"
inline constexpr char kSummaryEpoch[] = "summary.epoch";
inline constexpr char kSummaryMetric[] = "summary.metric";
inline constexpr char kSummaryBestEpoch[] = "summary.best_epoch";
inline constexpr char kSummaryBestMetric[] = "summary.best_metric";

// Events of FlagPerf's driver.
inline constexpr char kInitStart[] = "INIT_START";
inline constexpr char kInitEnd[] = "INIT_END";
inline constexpr char kTrainStart[] = "TRAIN_START";
inline constexpr char kTrainEnd[] = "TRAIN_END";
inline constexpr char kEpochBegin[] = "EPOCH_BEGIN";
inline constexpr char kEpochEnd[] = "EPOCH_END";
inline constexpr char kStepBegin[] = "STEP_BEGIN";
inline constexpr char kStepEnd[] = "STEP_END";
inline constexpr char kBackward[] = "BACKWARD";
inline constexpr char kInitEvaluation[] = "INIT_EVALUATION";
inline constexpr char kEvaluate[] = "EVALUATE";
inline constexpr char kLaunchTraining[] = "LAUNCH_TRAINING";
inline constexpr char kConvertModel[] = "CONVERT_MODEL";
inline constexpr char kCreateOptimizer[] = "CREATE_OPTIMIZER";
inline constexpr char kModelToFp16[] = "MODEL_TO_FP16";
inline constexpr char kModelToDdp[] = "MODEL_TO_DDP";
inline constexpr char kFinished[] = "FINISHED";
inline constexpr char kSubmitInfo[] = "SUBMIT_INFO";
// Ours: an attempt continued from a checkpoint; data {global_step}. Metrics of earlier attempts beyond that step are
// void.
inline constexpr char kResumed[] = "RESUMED";
// Ours: a step made no update, since a gradient or the loss was not finite; data {global_step, loss_scale, next_scale}.
inline constexpr char kStepSkipped[] = "STEP_SKIPPED";
// Ours: a checkpoint that resuming passed over; data {checkpoint, reason}.
inline constexpr char kDamagedCheckpoint[] = "DAMAGED_CHECKPOINT";
// Ours: a checkpoint is on disk; data {checkpoint, global_step, weights_hash}. Written in the background, so it comes
// some steps after global_step.
inline constexpr char kCheckpoint[] = "CHECKPOINT";
// Ours: training begins with given weights; data {path, weights_hash}.
inline constexpr char kPretrained[] = "PRETRAINED";
// Ours: operators of custom_black_list or custom_white_list that the first step of this process did not run, so that
// listing them changed nothing; data {operators}.
inline constexpr char kIdleOperators[] = "IDLE_OPERATORS";
// Ours: evaluations stopped getting better; data {global_step, evaluations}.
inline constexpr char kEarlyStop[] = "EARLY_STOP";
// Ours: the replicas of a weight are not the same; data {step, parameter, rank}: a rank that differs from the first.
inline constexpr char kReplicaDiffers[] = "REPLICA_DIFFERS";
// Ours: a parameter server waits for trainers, and has ended; data {server, num_servers, num_trainers, mode, ...}.
inline constexpr char kServerStart[] = "SERVER_START";
inline constexpr char kServerEnd[] = "SERVER_END";
// Ours: a failure; data {kind, message}.
inline constexpr char kFailure[] = "FAILURE";

// The result of a case.
inline constexpr char kE2eTime[] = "e2e_time";
inline constexpr char kInitTime[] = "init_time";
inline constexpr char kRawTrainTime[] = "raw_train_time";
inline constexpr char kNoEvalTime[] = "no_eval_time";
inline constexpr char kPureComputeTime[] = "pure_compute_time";
inline constexpr char kThroughputWhole[] = "p_whole";
inline constexpr char kThroughputTrain[] = "p_train";
inline constexpr char kThroughputCore[] = "p_core";
inline constexpr char kThroughputUnit[] = "unit";
inline constexpr char kConverged[] = "converged";
inline constexpr char kFinalAccuracy[] = "final_accuracy";
inline constexpr char kTarget[] = "target";
inline constexpr char kSteps[] = "steps";
inline constexpr char kMfu[] = "mfu";
inline constexpr char kPeakMemory[] = "peak_memory_bytes";
inline constexpr char kEnergy[] = "energy_joules";
inline constexpr char kSeed[] = "seed";
inline constexpr char kHashes[] = "hashes";  // {case, data, code, weights}
inline constexpr char kHashOfCase[] = "case";
inline constexpr char kHashOfData[] = "data";
inline constexpr char kHashOfCode[] = "code";
inline constexpr char kHashOfWeights[] = "weights";
inline constexpr char kFinalLoss[] = "final_loss";
inline constexpr char kNumSamples[] = "num_samples";
inline constexpr char kTotalMemory[] = "total_memory_bytes";
inline constexpr char kPrecision[] = "precision";
inline constexpr char kFixHp[] = "fix_hp";  // what differs from the standard case, in words
// Of the times of steps, as results/step_times.h computes them.
inline constexpr char kStepTimeP50[] = "step_time_p50";
inline constexpr char kStepTimeP90[] = "step_time_p90";
inline constexpr char kStepTimeP99[] = "step_time_p99";
inline constexpr char kJitter[] = "jitter";

// Members of targets, metadata, messages and events.
inline constexpr char kMetric[] = "metric";  // of a target: {metric, value, goal}
inline constexpr char kValue[] = "value";
inline constexpr char kGoal[] = "goal";
inline constexpr char kUnit[] = "unit";        // of a metric, in its metadata
inline constexpr char kName[] = "name";        // of a metric, in its metadata: "accuracy"
inline constexpr char kText[] = "text";        // of a message
inline constexpr char kMessage[] = "message";  // of FAILURE
inline constexpr char kStep[] = "step";
inline constexpr char kEpoch[] = "epoch";
inline constexpr char kParameter[] = "parameter";
inline constexpr char kRank[] = "rank";

}  // namespace assay::keys
