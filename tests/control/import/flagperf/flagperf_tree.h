// A small FlagPerf tree in the form of real ones, written by a test.
#pragma once

#include "../../../common/config/temp_home.h"

namespace assay {

struct FlagperfHome : TempHome {
  FlagperfHome() {
    training("run_benchmarks/config/test_conf.py", R"('''Settings of a run'''
VENDOR = "acme"
ACCE_VISIBLE_DEVICE_ENV_NAME = "ACME_VISIBLE_DEVICES"
FLAGPERF_PATH = "/opt/FlagPerf/training"
FLAGPERF_LOG_PATH = FLAGPERF_PATH + "/result/"
ACCE_CONTAINER_OPT = " --gpus all"
CLEAR_CACHES = True
'''
{ "a text": "that is no dict" }
'''
CASES = {
    # "off:pytorch:X1:1:8:1": "/data",
    "tiny:pytorch_1.8:X1:1:8:3": "/data/tiny/",
}
)");
    training("run_benchmarks/config/cluster_conf.py",
             "HOSTS = [\"10.0.0.1\", \"10.0.0.2\"]\nMASTER_PORT = \"29501\"\nSSH_PORT = \"2222\"\n");
    base(
        "vendor: str = None\ndata_dir: str = None\nlr: float = 0.1\ntrain_batch_size: int = 32\n"
        "target_acc1: float = 75.5\nbetas = (0.9, 0.999)\nmax_steps: int = None\n");
    training("benchmarks/tiny/pytorch/config/mutable_params.py",
             "mutable_params = [\"vendor\", \"data_dir\"]\nmutable_params += ['train_batch_size']\n");
    training("benchmarks/tiny/pytorch/run_pretraining.py", "");
    config("from config_common import *\ntrain_batch_size = 64\n");
    training("acme/tiny-pytorch/config/config_common.py", "vendor = \"acme\"\nddp_type: str = \"native\"\n");
  }
  void training(const std::string& name, const std::string& text) const { write("FlagPerf/training/" + name, text); }
  void base(const std::string& text) const { training("benchmarks/tiny/pytorch/config/_base.py", text); }
  void config(const std::string& text) const { training("acme/tiny-pytorch/config/config_X1x1x8.py", text); }
  fs::path tree() const { return path() / "FlagPerf"; }
};

}  // namespace assay
