"""PyTorch's own schedules and optimizers, for our tests: writes reference.safetensors into the folder given.

schedule.<name>: the learning rate of each of STEPS updates. optimizer.<name>: the weight after each of 20 updates with
the gradients g[t][i] = sin(0.3 * t + i) and the first weights w[i] = cos(i), i = 0..9. optimizer64.<name>: the same in
float64. rows.<name>: the same with sparse gradients, see row_updates. LAMB, which PyTorch does not have, is its paper's formula (You et al. 2020, algorithm 2) in numpy.
"""
import math
import os
import sys

import numpy
import torch
from torch.optim import lr_scheduler, swa_utils

import tensor_file

STEPS, WARMUP = 50, 8


def rates(make):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))], lr=0.5)
    schedule = make(optimizer)
    values = []
    for _ in range(STEPS):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return torch.tensor(values, dtype=torch.float64)


def after_warmup(make):
    def both(optimizer):
        rise = lr_scheduler.LambdaLR(optimizer, lambda t: (t + 1) / WARMUP)
        return lr_scheduler.SequentialLR(optimizer, [rise, make(optimizer)], milestones=[WARMUP])

    return both


def updates(make, dtype):
    index = torch.arange(10, dtype=dtype)
    weight = torch.nn.Parameter(torch.cos(index).reshape(2, 5))
    optimizer = make([weight])
    values = []
    for t in range(20):
        weight.grad = torch.sin(0.3 * t + index).reshape(2, 5)
        if make is CLIPPED:
            torch.nn.utils.clip_grad_norm_([weight], 1.0)
        optimizer.step()
        values.append(weight.detach().clone())
    return torch.stack(values)


def lamb(rate, decay, beta1=0.9, beta2=0.999, epsilon=1e-6):
    index = numpy.arange(10, dtype=numpy.float64)
    w, m, v = numpy.cos(index), numpy.zeros(10), numpy.zeros(10)
    values = []
    for t in range(20):
        g = numpy.sin(0.3 * t + index)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        r = (m / (1 - beta1 ** (t + 1))) / (numpy.sqrt(v / (1 - beta2 ** (t + 1))) + epsilon) + decay * w
        w = w - rate * numpy.linalg.norm(w) / numpy.linalg.norm(r) * r
        values.append(torch.tensor(w).reshape(2, 5))
    return torch.stack(values)


def average(decay):
    """The weights and their averages of PyTorch's AveragedModel over 20 updates of SGD."""
    index = torch.arange(10, dtype=torch.float32)
    network = torch.nn.Linear(5, 2, bias=False)
    network.weight.data = torch.cos(index).reshape(2, 5)
    averaged = swa_utils.AveragedModel(network, avg_fn=lambda a, w, n: decay * a + (1 - decay) * w)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    values = []
    for t in range(20):
        network.weight.grad = torch.sin(0.3 * t + index).reshape(2, 5)
        optimizer.step()
        averaged.update_parameters(network)
        values.append(averaged.module.weight.detach().clone())
    return torch.stack(values)


def row_updates(make, clip=None):
    """Weights [6, 3] after each of 20 updates whose gradients are of some rows, one of them twice."""
    weight = torch.nn.Parameter(torch.cos(torch.arange(18, dtype=torch.float64)).reshape(6, 3))
    optimizer = make([weight])
    values = []
    for t in range(20):
        rows = torch.tensor([[t % 6, (t + 2) % 5, t % 6]])
        numbers = torch.sin(0.3 * t + torch.arange(9, dtype=torch.float64)).reshape(3, 3)
        weight.grad = torch.sparse_coo_tensor(rows, numbers, (6, 3)).coalesce()
        if clip:
            weight.grad = weight.grad * min(1.0, clip / (weight.grad.to_dense().norm() + 1e-6))
        optimizer.step()
        values.append(weight.detach().clone())
    return torch.stack(values)


def CLIPPED(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


schedules = {
    "constant": lambda o: lr_scheduler.LambdaLR(o, lambda t: 1.0),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS, eta_min=0.01),
    "linear": lambda o: lr_scheduler.LinearLR(o, 1.0, 0.02, STEPS),
    "polynomial": lambda o: lr_scheduler.PolynomialLR(o, STEPS, power=2.5),
    "multistep": lambda o: lr_scheduler.MultiStepLR(o, [10, 30], 0.2),
    "one_cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.5, STEPS, pct_start=0.3, cycle_momentum=False),
    "one_cycle_short": lambda o: lr_scheduler.OneCycleLR(o, 0.5, STEPS, pct_start=0.04, cycle_momentum=False),
    "warm_cosine": after_warmup(lambda o: lr_scheduler.LambdaLR(
        o, lambda t: (1 + math.cos(math.pi * t / (STEPS - WARMUP))) / 2)),
    "warm_linear": after_warmup(lambda o: lr_scheduler.LambdaLR(o, lambda t: 1 - t / (STEPS - WARMUP))),
}
optimizers = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.05, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, weight_decay=0.01, eps=1e-8),
    "clipped": CLIPPED,
}
result = {"schedule." + name: rates(make) for name, make in schedules.items()}
result.update({"optimizer." + name: updates(make, torch.float32) for name, make in optimizers.items()})
result.update({"optimizer64." + name: updates(make, torch.float64) for name, make in optimizers.items()})
result["optimizer64.lamb"] = lamb(0.05, 0.01)
result["optimizer.lamb"] = result["optimizer64.lamb"].float()
result["average"] = average(0.9)
result["rows.sgd"] = row_updates(lambda p: torch.optim.SGD(p, lr=0.1))
result["rows.clipped"] = row_updates(lambda p: torch.optim.SGD(p, lr=0.1), clip=0.5)
result["rows.adam"] = row_updates(lambda p: torch.optim.SparseAdam(p, lr=0.05, eps=1e-12))
result["rows.adagrad"] = row_updates(lambda p: torch.optim.Adagrad(p, lr=0.1, eps=1e-8))
tensor_file.save(os.path.join(sys.argv[1], "reference.safetensors"), result)
