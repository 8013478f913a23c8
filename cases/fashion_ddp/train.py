"""Fashion-MNIST by PyTorch's DistributedDataParallel: a training script as people have them, started by a campaign on any number
of hosts. It knows nothing of assay: the usual variables in (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), printed lines out."""
import argparse
import gzip
import os
import time

import numpy
import torch
import torch.distributed
import torch.nn.functional as functional


def read(folder, split):
    def numbers(name, header):
        with gzip.open(os.path.join(folder, f"{split}-{name}-ubyte.gz")) as file:
            return numpy.frombuffer(file.read(), numpy.uint8, offset=header)
    images = numbers("images-idx3", 16).reshape(-1, 784).astype(numpy.float32) / 255
    return torch.from_numpy((images - 0.286) / 0.353), torch.from_numpy(numbers("labels-idx1", 8).astype(numpy.int64))


def train(network, images, labels, arguments, rank, world_size):
    optimizer = torch.optim.Adam(network.parameters(), lr=arguments.lr)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(arguments.seed))
    own = order[rank::world_size]
    begin = before = time.time()
    for step in range(arguments.steps):
        at = (step * arguments.batch) % (len(own) - arguments.batch)
        batch = own[at:at + arguments.batch]
        loss = functional.cross_entropy(network(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % arguments.log_every == 0:
            torch.distributed.all_reduce(loss.detach())
            now = time.time()
            seconds = (now - before) / arguments.log_every
            before = now
            if rank == 0:
                print(f"step {step + 1} loss {loss.item():.6f} ips {arguments.batch * world_size / seconds:.1f} "
                      f"step_time {seconds:.6f}", flush=True)
    return time.time() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=128, help="of one rank")
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-every", type=int, default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    torch.distributed.init_process_group("gloo")
    rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    network = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)))
    images, labels = read(arguments.data, "train")
    seconds = train(network, images, labels, arguments, rank, world_size)
    if rank == 0:
        images, labels = read(arguments.data, "t10k")
        with torch.no_grad():
            accuracy = (network.module(images).argmax(1) == labels).float().mean().item()
        print(f"trained {arguments.steps} steps in {seconds:.3f} s")
        print(f"speed {arguments.steps * arguments.batch * world_size / seconds:.1f} images/s")
        print(f"accuracy {accuracy:.4f}", flush=True)
    torch.distributed.barrier()  # a rank that leaves early can hang the one that still talks to it
    torch.distributed.destroy_process_group()


main()
