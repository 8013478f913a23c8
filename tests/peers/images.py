"""Images by PIL, for the tests of the readers: writes files of every kind, and what PIL reads from them.

images.py FOLDER: FOLDER/train/<class>/*.jpg, *.png, FOLDER/val/..., and FOLDER/expected.bin with, for each line of
FOLDER/expected.txt ("path width height"), the bytes of the RGB image; then the same for an image resized to 40 pixels on
the shorter side, of which the 32x32 in the centre are kept (expected32.bin)."""
import pathlib
import sys

import numpy
from PIL import Image


def scene(seed, width, height):
    """Soft shapes with some noise, as photographs are."""
    random = numpy.random.RandomState(seed)
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float64)
    channels = []
    for _ in range(3):
        value = numpy.zeros((height, width))
        for _ in range(6):
            fx, fy, phase = random.uniform(-0.15, 0.15), random.uniform(-0.15, 0.15), random.uniform(0, 6.28)
            value += random.uniform(10, 40) * numpy.sin(fx * x + fy * y + phase)
        channels.append(value + 128 + random.normal(0, 4, value.shape))
    return Image.fromarray(numpy.clip(numpy.stack(channels, -1), 0, 255).astype(numpy.uint8), "RGB")


def write(folder):
    cases = []

    def save(path, image, **options):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        image.save(target, **options)
        cases.append(path)

    save("train/cat/plain.jpg", scene(1, 200, 150), quality=90)
    save("train/cat/fine.JPEG", scene(2, 131, 201), quality=95, subsampling=0)
    save("train/cat/progressive.jpg", scene(3, 97, 64), quality=85, progressive=True)
    save("train/cat/grey.jpg", scene(4, 120, 80).convert("L"), quality=90)
    save("train/cat/inks.jpg", scene(5, 90, 110).convert("CMYK"), quality=95)
    save("train/dog/plain.png", scene(6, 101, 77))
    save("train/dog/palette.png", scene(7, 80, 80).convert("P", palette=Image.ADAPTIVE))
    save("train/dog/grey.png", scene(8, 64, 90).convert("L"))
    save("train/dog/bits.png", scene(9, 70, 50).convert("1"))
    alpha = scene(10, 88, 66).convert("RGBA")
    alpha.putalpha(100)
    save("train/dog/alpha.png", alpha)
    save("train/dog/greyalpha.png", scene(11, 66, 99).convert("LA"))
    save("val/cat/tiny.png", scene(12, 20, 30))
    save("val/dog/large.jpg", scene(13, 900, 700), quality=90)
    with open(folder / "expected.bin", "wb") as whole, open(folder / "expected32.bin", "wb") as small, \
            open(folder / "expected.txt", "w") as names:
        for path in cases:
            image = Image.open(folder / path).convert("RGB")
            whole.write(image.tobytes())
            names.write(f"{path} {image.width} {image.height}\n")
            shorter = min(image.size)
            resized = image.resize((40 * image.width // shorter, 40 * image.height // shorter), Image.BILINEAR)
            left = int(numpy.floor((resized.width - 32) / 2 + 0.5))
            top = int(numpy.floor((resized.height - 32) / 2 + 0.5))
            small.write(resized.crop((left, top, left + 32, top + 32)).tobytes())


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
