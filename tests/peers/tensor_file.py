"""safetensors files in Python: the package is not in Debian, and the format needs few lines."""
import json
import struct

import numpy
import torch

_TYPES = {"F32": numpy.float32, "F64": numpy.float64, "I64": numpy.int64, "U8": numpy.uint8}


def load(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        array = numpy.frombuffer(data[begin:end], dtype=_TYPES[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(array.copy())
    return tensors


def save(path, tensors):
    header, chunks, offset = {}, [], 0
    for name, tensor in tensors.items():
        array = tensor.detach().contiguous().numpy()
        kind = next(key for key, value in _TYPES.items() if value == array.dtype)
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        chunks.append(array.tobytes())
        offset += array.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def metadata(path):
    with open(path, "rb") as file:
        return json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))["__metadata__"]
