"""Pictures by PIL, NumPy and PyTorch, as torchvision's transforms do it. For bench/decode.
decode_peer.py make FOLDER          writes JPEGs of the sizes and the bytes a pixel that ImageNet's have
decode_peer.py read FOLDER WORKERS SECONDS   prints how many a second a DataLoader gives"""
import json
import math
import pathlib
import random
import sys
import time

import numpy
import torch
from PIL import Image

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


def scene(seed, width, height):
    """Noise of every scale, stronger at the large ones, as in photographs."""
    source = numpy.random.RandomState(seed)
    total = numpy.zeros((height, width, 3))
    for octave in range(8):
        cells = 2 ** (octave + 1)
        coarse = source.uniform(-1, 1, (max(2, cells * height // width + 2), cells + 2, 3))
        layers = [Image.fromarray(coarse[..., c].astype(numpy.float32), "F").resize((width, height), Image.BICUBIC)
                  for c in range(3)]
        total += numpy.stack([numpy.asarray(layer) for layer in layers], -1) * 90 / 1.55 ** octave
    return Image.fromarray(numpy.clip(total + 128, 0, 255).astype(numpy.uint8), "RGB")


def make(folder, count=192):
    for index in range(count):
        # ImageNet: about 500 x 400 pixels on average, 110 kB.
        width, height = [(500, 375), (500, 333), (375, 500), (640, 480)][index % 4]
        target = folder / f"train/class{index % 4}/{index:04}.JPEG"
        target.parent.mkdir(parents=True, exist_ok=True)
        scene(index, width, height).save(target, quality=92)


def random_part(width, height):
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = random.randint(0, width - w), random.randint(0, height - h)
            return left, top, left + w, top + h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, (width + side) // 2, (height + side) // 2


class Pictures(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.files = sorted((folder / "train").glob("*/*"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with open(self.files[index], "rb") as file:
            image = Image.open(file).convert("RGB")
        image = image.crop(random_part(*image.size)).resize((224, 224), Image.BILINEAR)
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        tensor = torch.from_numpy(numpy.array(image)).permute(2, 0, 1).contiguous().to(torch.float32).div_(255)
        return tensor.sub_(MEAN).div_(STD), 0


def read(folder, workers, seconds):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Pictures(folder), batch_size=32, shuffle=True, drop_last=True,
                                         num_workers=workers, persistent_workers=True)
    done, start = 0, time.monotonic()
    epoch = 0
    while time.monotonic() - start < seconds:
        for images, _ in loader:
            if epoch > 0:
                done += len(images)
        if epoch == 0:
            start = time.monotonic()
        epoch += 1
    print(json.dumps({"images_per_s": round(done / (time.monotonic() - start), 1)}))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(pathlib.Path(sys.argv[2]))
    else:
        read(pathlib.Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
