"""Runs a plain PyTorch twin of one of our models on weights and data that our tests wrote.

In the folder given: weights.safetensors (a state dict), data.safetensors (by default image [S,B,...], label [S,B]: S
training batches). Written: twin.safetensors with the output and the gradients on the first batch, in evaluation and in training
mode, and the losses of training on all S batches one after the other with SGD and momentum.
"""
import os
import sys

import torch

import tensor_file


def classify(network, image, label):
    return torch.nn.functional.cross_entropy(network(image), label)


def run(make_network, inputs=("image", "label"), num_forward=1, loss_of=classify):
    """`inputs`: the tensors of a batch; the first `num_forward` are what the network's forward takes."""
    folder = sys.argv[1]
    weights = tensor_file.load(os.path.join(folder, "weights.safetensors"))
    data = tensor_file.load(os.path.join(folder, "data.safetensors"))
    batches = list(zip(*(data[name] for name in inputs)))
    network = make_network().to(next(iter(weights.values())).dtype)  # double where the test is
    network.load_state_dict(weights)
    result = {}

    network.eval()
    with torch.no_grad():
        result["output"] = network(*batches[0][:num_forward])

    network.train()
    loss_of(network, *batches[0]).backward()
    for name, parameter in network.named_parameters():
        result["gradient." + name] = parameter.grad.clone()

    network.load_state_dict(weights)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(network, *batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    result["losses"] = torch.stack(losses)
    for name, value in network.state_dict().items():
        result["trained." + name] = value
    tensor_file.save(os.path.join(folder, "twin.safetensors"), result)
