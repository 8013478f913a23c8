"""Runs a plain PyTorch twin of one of our models on weights and data that our tests wrote.

In the folder given: weights.safetensors (a state dict), data.safetensors (image [S,B,...], label [S,B]: S training
batches). Written: twin.safetensors with the output and the gradients on the first batch, in evaluation and in training
mode, and the losses of training on all S batches one after the other with SGD and momentum.
"""
import os
import sys

import torch

import tensor_file


def run(make_network):
    folder = sys.argv[1]
    weights = tensor_file.load(os.path.join(folder, "weights.safetensors"))
    data = tensor_file.load(os.path.join(folder, "data.safetensors"))
    images, labels = data["image"], data["label"]
    network = make_network()
    network.load_state_dict(weights)
    result = {}

    network.eval()
    with torch.no_grad():
        result["output"] = network(images[0])

    network.train()
    loss = torch.nn.functional.cross_entropy(network(images[0]), labels[0])
    loss.backward()
    for name, parameter in network.named_parameters():
        result["gradient." + name] = parameter.grad.clone()

    network.load_state_dict(weights)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    losses = []
    for image, label in zip(images, labels):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(image), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    result["losses"] = torch.stack(losses)
    for name, value in network.state_dict().items():
        result["trained." + name] = value
    tensor_file.save(os.path.join(folder, "twin.safetensors"), result)
