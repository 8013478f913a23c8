"""Loads an exported model in Python and compares its output with what C++ computed."""
import os
import sys

import torch

import tensor_file

folder = sys.argv[1]
module = torch.jit.load(os.path.join(folder, "model.pt"))
inputs = tensor_file.load(os.path.join(folder, "input.safetensors"))
expected = tensor_file.load(os.path.join(folder, "expected.safetensors"))["output"]
with torch.no_grad():
    actual = module(*(inputs[str(i)] for i in range(len(inputs))))
difference = ((actual - expected).abs().max() / expected.abs().max()).item()
if difference > 1e-5 or not dict(module.named_parameters()):
    sys.exit(f"relative difference {difference}, {len(dict(module.named_parameters()))} parameters")
