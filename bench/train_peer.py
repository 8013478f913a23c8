"""Trains a model of tests/peers on Fashion-MNIST as a PyTorch user would who cares about speed: all threads, data in
memory and normalised once, channels last where it helps, the fastest optimizer variant on a CPU. Prints one JSON line."""
import argparse
import gzip
import json
import os
import sys
import time

import numpy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/peers"))


def read_idx(path, header):
    with gzip.open(path) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=("simplenet", "resnet"))
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm-up", type=int, default=20)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1024)

    pixels = read_idx(os.path.join(arguments.data, "train-images-idx3-ubyte.gz"), 16).reshape(-1, 1, 28, 28)
    images = torch.from_numpy(pixels.astype(numpy.float32) / 255.0).sub_(0.286).div_(0.353)
    labels = torch.from_numpy(read_idx(os.path.join(arguments.data, "train-labels-idx1-ubyte.gz"), 8).astype(numpy.int64))

    if arguments.model == "simplenet":
        from simplenet import SimpleNet
        network = SimpleNet()
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, foreach=False)
    else:
        from resnet import ResNet
        network = ResNet().to(memory_format=torch.channels_last)
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.02, foreach=False)
    network.train()
    order = torch.randperm(len(images))
    batch, started, done = arguments.batch, None, 0
    for step in range(arguments.warm_up + arguments.steps):
        if step == arguments.warm_up:
            started = time.perf_counter()
        begin = step * batch % (len(images) - batch)
        index = order[begin:begin + batch]
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(network(images[index]), labels[index])
        loss.backward()
        optimizer.step()
        loss.item()
        done += batch if started else 0
    seconds = time.perf_counter() - started
    print(json.dumps({"model": arguments.model, "samples_per_s": done / seconds, "threads": torch.get_num_threads()}))


main()
