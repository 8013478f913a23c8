"""Trains a model of peer_models.py as a PyTorch user would who cares about speed: all threads, data in memory, gradients
set to none, channels last when asked for. Writes a JSON file. `prepare` writes the weights and samples that both sides use."""
import argparse
import json
import os
import resource
import sys
import time

import torch
import torch.distributed

import peer_models

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/peers"))
import tensor_file  # noqa: E402


def prepare(model, arguments):
    torch.manual_seed(1024)
    tensor_file.save(arguments.weights, model.make().state_dict())
    data = model.data(arguments.samples)
    tensor_file.save(arguments.data, {str(i): tensor for i, tensor in enumerate(data)})


def train(model, arguments):
    network = model.make()
    network.load_state_dict(tensor_file.load(arguments.weights))
    data = list(tensor_file.load(arguments.data).values())
    if arguments.channels_last:
        network = network.to(memory_format=torch.channels_last)
        data[0] = data[0].contiguous(memory_format=torch.channels_last)
    optimizer = model.optimizer(network)
    network.train()
    batch, started, losses = arguments.batch, None, []
    batches = len(data[0]) // batch
    if arguments.ddp:
        # As bench/scale starts it: this rank's share of every batch.
        torch.distributed.init_process_group("gloo")
        rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
        data = [torch.cat([tensor[b * batch:(b + 1) * batch].chunk(ranks)[rank] for b in range(batches)]) for tensor in data]
        batch //= ranks
        ddp = torch.nn.parallel.DistributedDataParallel
        # Gloo cannot send masks; they are the same everywhere.
        ddp._set_params_and_buffers_to_ignore_for_model(
            network, [name for name, buffer in network.named_buffers() if buffer.dtype == torch.bool])
        network = ddp(network, gradient_as_bucket_view=True)
    for step in range(arguments.warm_up + arguments.steps):
        if step == arguments.warm_up:
            started = time.perf_counter()
        begin = step % batches * batch
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(network, *(tensor[begin:begin + batch] for tensor in data))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    seconds = time.perf_counter() - started
    with open(arguments.result, "w") as file:
        json.dump({"samples_per_s": arguments.steps * arguments.batch / seconds, "losses": losses,
                   "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("prepare", "train"))
    parser.add_argument("model", choices=peer_models.MODELS)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--result")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--warm-up", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--ddp", action="store_true", help="one of several ranks, by RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = peer_models.MODELS[arguments.model]
    (prepare if arguments.action == "prepare" else train)(model, arguments)


main()
