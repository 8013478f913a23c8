"""The models of bench/train in plain PyTorch, with data, loss and the fastest optimizer variant a CPU has. Adding one:
an entry in MODELS, and its native counterpart in bench_models.cpp."""
import gzip
import os
import sys

import numpy
import torch
import torch.nn.functional as functional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/peers"))
from bert import Bert, pretraining_loss  # noqa: E402
from deepfm import DeepFm, click_loss  # noqa: E402
from glm import Glm, infilling_loss  # noqa: E402
from gpt import Gpt, language_loss  # noqa: E402
from llama import Llama  # noqa: E402
from ocr_det import Detector, loss_of as detection_loss  # noqa: E402
from resnet import ResNet as SmallResNet  # noqa: E402
from resnet50 import ResNet  # noqa: E402
from simplenet import SimpleNet  # noqa: E402


def choose_blas_kernels():
    """For the processes started from now on: an OpenBLAS older than the processor uses kernels of 2004, and a user who looks
    for the fastest setting finds this one. Ours does the same by itself (src/worker/device/blas_kernels.h)."""
    with open("/proc/cpuinfo") as file:
        if " avx512dq " in file.read():
            os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")


FASHION = "/usr/share/datasets/fashion-mnist"  # of the package dataset-fashion-mnist


def fashion(count):
    def read(name, header):
        with gzip.open(os.path.join(FASHION, name)) as file:
            return numpy.frombuffer(file.read(), numpy.uint8, offset=header)
    pixels = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)[:count]
    images = torch.from_numpy(pixels.astype(numpy.float32) / 255.0).sub_(0.286).div_(0.353)
    return [images, torch.from_numpy(read("train-labels-idx1-ubyte.gz", 8)[:count].astype(numpy.int64))]


def large_images(count, size=224):
    images, labels = fashion(count)
    images = functional.interpolate(images, (size, size), mode="bilinear", align_corners=False)
    return [images.expand(-1, 3, -1, -1).contiguous(), labels]


def classify(network, images, labels):
    return functional.cross_entropy(network(images), labels)


class Model:
    """make() builds the network, data(count) the samples with the label last, loss(network, *batch) the loss. `image`:
    channels last may be faster, try both. flops: of forward and backward for one sample, multiply and add counted."""

    def __init__(self, make, data, loss, optimizer, batch, image=False, flops=None, steps=200, warm_up=20,
                 tolerance=2e-3, sizes=(None, None, None)):
        # For bench/scale: how many numbers all parameters are, those that the first and the last segment share, a segment.
        self.parameters, self.shared, self.segment = sizes
        self.make, self.data, self.loss, self.optimizer = make, data, loss, optimizer
        self.tolerance = tolerance  # relative, of the last loss: sums in another order drift apart step by step
        self.batch, self.image, self.flops, self.steps, self.warm_up = batch, image, flops, steps, warm_up


def adam(network):
    return torch.optim.Adam(network.parameters(), lr=1e-3, foreach=False)


def adamw(network):
    return torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.02, foreach=False)


def momentum(network):
    return torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4, foreach=False)


class SparseAndDense:
    """Adam that updates the rows of embeddings which the batch has, and everything of the other layers."""

    def __init__(self, network):
        tables = [layer.weight for layer in network.modules() if isinstance(layer, torch.nn.Embedding)]
        others = [p for p in network.parameters() if all(p is not table for table in tables)]
        self.parts = [torch.optim.SparseAdam(tables, lr=1e-3), torch.optim.Adam(others, lr=1e-3, foreach=False)]

    def zero_grad(self, set_to_none):
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)

    def step(self):
        for part in self.parts:
            part.step()


def adamw_no_decay(network):
    """Biases and normalisations do not decay, as usual for transformers."""
    parameters = list(network.parameters())
    groups = [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.02},
              {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-4, foreach=False)


def text(vocabulary, length):
    """Random tokens, and for each the one that follows."""
    def make(count):
        tokens = torch.randint(vocabulary, (count, length + 1))
        return [tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()]
    return make


def masked_text(vocabulary, length):
    """Random tokens of two segments; 15 % of them are asked for; no padding."""
    def make(count):
        tokens = torch.randint(vocabulary, (count, length))
        types = (torch.arange(length) >= length // 2).long().expand(count, length).contiguous()
        masked = torch.full((count, length), -100)
        for row in range(count):
            chosen = torch.randperm(length)[:length * 15 // 100]
            masked[row, chosen] = torch.randint(vocabulary, (len(chosen),))
        return [tokens, types, torch.ones_like(tokens), masked, torch.randint(2, (count,))]
    return make


def blanks(vocabulary, length):
    """Random tokens; a text of three quarters of them, and one span behind it."""
    def make(count):
        begin = length * 3 // 4
        place = torch.arange(length)
        positions = torch.stack([place.clamp_max(begin), (place - begin + 1).clamp_min(0)])
        labels = torch.randint(vocabulary, (count, length))
        labels[:, :begin] = -100
        return [torch.randint(vocabulary, (count, length)), positions.expand(count, 2, length).contiguous(),
                torch.full((count,), begin), labels]
    return make


def clicks(fields):
    """A random value of every field, and whether it was clicked."""
    def make(count):
        return [torch.randint(size, (count,)) for size in fields] + [torch.randint(2, (count,)).float()]
    return make


def pictures_of_text(size):
    """Noise with one text each, the maps of what is to be found, and no outlines: those are for evaluation."""
    def make(count):
        maps = torch.zeros(4, count, size, size)
        _, shrink_mask, threshold_map, threshold_mask = maps
        shrink_mask.fill_(1)
        threshold_map.fill_(0.3)
        for row in range(count):
            top = size // 8 + row % 4 * size // 8
            maps[0, row, top + 10:top + 30, 50:size // 2] = 1
            threshold_map[row, top:top + 10, 40:size // 2 + 10] = 0.7
            threshold_mask[row, top:top + 40, 40:size // 2 + 10] = 1
        return [torch.randn(count, 3, size, size), *maps, torch.zeros(count, 1, 4, 2), torch.full((count, 1), -1)]
    return make


def gpt_flops(length):
    """As gpt::Gpt::flops_per_sample: only the half of attention that is causal counts."""
    return 6 * (12 * 12 * 768**2 + 768 * 50257) * length + 12 * 6 * length * (length + 1) * 768


def bert_flops(length, masked):
    """As bert::Bert::flops_per_sample."""
    return 6 * 12 * 12 * 768**2 * length + 6 * (768**2 + 768 * 30522) * masked + 12 * 12 * length**2 * 768


MODELS = {
    "simplenet": Model(SimpleNet, fashion, classify, adam, batch=128, flops=6 * 784 * (4 * 784 + 10)),
    "resnet": Model(SmallResNet, fashion, classify, adamw, batch=128, image=True, tolerance=5e-2),
    # 4.089e9 multiply-adds forward at 224x224, the published count of this architecture.
    "resnet50": Model(ResNet, large_images, classify, momentum, batch=8, image=True, flops=6 * 4.089e9, steps=5, warm_up=2, tolerance=5e-2),
    "ocr_det": Model(lambda: Detector(0.5, use_se=False, neck=96), pictures_of_text(640), detection_loss, adamw, batch=2,
                     image=True, steps=10, warm_up=2, tolerance=5e-2),
    # SparseAdam adds epsilon before it corrects the second moment, Adam behind it; losses drift apart.
    "deepfm": Model(lambda: DeepFm(dropout=0.0, sparse=True), clicks((671, 9066)), click_loss, SparseAndDense, batch=512,
                    tolerance=1e-2),
    "gpt124m": Model(Gpt, text(50257, 1024), language_loss, adamw_no_decay, batch=1, flops=gpt_flops(1024), steps=3, warm_up=1),
    "gpt124m-short": Model(Gpt, text(50257, 256), language_loss, adamw_no_decay, batch=4, flops=gpt_flops(256), steps=5,
                           warm_up=2, sizes=(124439808, 50257 * 768, 7087872)),
    "bert_base": Model(Bert, masked_text(30522, 128), pretraining_loss, adamw_no_decay, batch=8, flops=bert_flops(128, 19),
                       steps=5, warm_up=2),
    # Texts of half the published length, so that a step takes seconds: as GLM's own flops_per_sample counts.
    "glm_base": Model(Glm, blanks(30592, 256), infilling_loss, adamw_no_decay, batch=2, steps=3, warm_up=1,
                      flops=6 * 12 * 12 * 768**2 * 256 + 12 * 12 * 256**2 * 768),
    "llama": Model(lambda: Llama(vocabulary=32000, width=768, layers=12, heads=12, shared=4, inner=2048),
                   text(32000, 256), language_loss, adamw_no_decay, batch=2, steps=3, warm_up=1,
                   flops=6 * (12 * (2 * 768**2 + 2 * 768 * 256 + 3 * 768 * 2048) + 768 * 32000) * 256 + 12 * 6 * 256 * 257 * 768),
}
