"""Writes resnet50.safetensors into the folder given, under the names of torchvision's published weights, and expected.safetensors:
a batch and what the network makes of it."""
import os
import sys

import torch

import tensor_file
from resnet50 import ResNet

# Some of torchvision's names: the twin has them, or this is not what is published.
PUBLISHED = ["conv1.weight", "bn1.running_var", "layer1.0.conv1.weight", "layer1.0.downsample.0.weight",
             "layer1.0.downsample.1.bias", "layer2.3.bn3.weight", "layer3.5.conv2.weight", "layer4.2.bn2.running_mean", "fc.bias"]

torch.manual_seed(3)
network = ResNet(depth=50)
for module in network.modules():  # statistics of a trained network
    if isinstance(module, torch.nn.BatchNorm2d):
        module.running_mean.normal_(0, 0.1)
        module.running_var.uniform_(0.5, 1.5)
network.eval()
weights = {name: value for name, value in network.state_dict().items() if not name.endswith("num_batches_tracked")}
assert all(name in weights for name in PUBLISHED) and len(weights) == 53 * 5 + 2
assert sum(p.numel() for p in network.parameters()) == 25557032
image = torch.randn(2, 3, 64, 64)
with torch.no_grad():
    output = network(image)
tensor_file.save(os.path.join(sys.argv[1], "resnet50.safetensors"), weights)
tensor_file.save(os.path.join(sys.argv[1], "expected.safetensors"), {"image": image, "output": output})
