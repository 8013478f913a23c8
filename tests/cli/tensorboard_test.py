"""TensorBoard's files, read by a reader written from the published formats: TFRecord framing
(tensorflow/core/lib/io/record_writer.h), masked CRC-32C, protobuf's wire format, event.proto and summary.proto."""
import glob
import os
import shutil
import struct
import tempfile
import unittest

from worker_support import WorkerTest, case

SHORT = {"Engine.max_steps": 12, "Engine.logging_freq": 2, "Engine.eval_freq": 6, "Engine.run_mode": "step",
         "Engine.tensorboard": True, "Engine.save_load.save_steps": 5, "Global.local_batch_size": 32,
         "Data.Eval.dataset.limit": 200, "Data.Train.dataset.limit": 2000}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frames(data):
    """The messages of a TFRecord file; a cut last frame is left out, a wrong checksum raises."""
    while len(data) >= 12:
        length, = struct.unpack("<Q", data[:8])
        if len(data) < 16 + length:
            return
        if struct.unpack("<I", data[8:12])[0] != masked(data[:8]):
            raise ValueError("checksum of the length")
        message = data[12:12 + length]
        if struct.unpack("<I", data[12 + length:16 + length])[0] != masked(message):
            raise ValueError("checksum of the data")
        yield message
        data = data[16 + length:]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """{field number: [values]} of one protobuf message."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack("<d", data[at:at + 8])[0], at + 8
        elif kind == 5:
            value, at = struct.unpack("<f", data[at:at + 4])[0], at + 4
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            raise ValueError(f"wire type {kind}")
        found.setdefault(key >> 3, []).append(value)
    return found


def read_folder(folder):
    """What TensorBoard shows: {tag: {step: value}}, files in the order of their names, restarts honoured."""
    scalars = {}
    for path in sorted(glob.glob(os.path.join(folder, "events.out.tfevents.*"))):
        with open(path, "rb") as file:
            events = [fields(message) for message in frames(file.read())]
        assert events[0][3] == [b"brain.Event:2"], events[0]
        for event in events[1:]:
            step = event[2][0]
            assert event[1][0] > 1.6e9, "wall time in seconds"
            if 7 in event and fields(event[7][0])[1] == [1]:  # SessionLog START: what is beyond is void
                for values in scalars.values():
                    for old in [s for s in values if s >= step]:
                        del values[old]
            for summary in event.get(5, []):
                for value in fields(summary).get(1, []):
                    entry = fields(value)
                    scalars.setdefault(entry[1][0].decode(), {})[step] = entry[2][0]
    return scalars


class TensorBoard(WorkerTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="assay-tensorboard-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.config = self.write_config(self.folder, case("simplenet", **SHORT))

    def check_same_as_records(self, output):
        board = read_folder(os.path.join(output, "tensorboard"))
        expected = {step: struct.unpack("<f", struct.pack("<f", float(loss)))[0]
                    for step, loss in self.losses(output).items()}
        self.assertEqual(board["train/loss"], expected)
        self.assertEqual(sorted(board["val/metric"]), [6, 12])
        self.assertEqual(sorted(board["train/ips"]), [2, 4, 6, 8, 10, 12])
        self.assertNotIn("train/mfu", {tag for tag, values in board.items() if 0 in values.values()})

    def test_writes_the_scalars_of_the_records(self):
        output = os.path.join(self.folder, "out")
        self.run_worker("train", self.config, output)
        self.check_same_as_records(output)

    def test_keeps_the_later_attempt_after_a_kill(self):
        output = os.path.join(self.folder, "out")
        process = self.start("train", self.config, output)
        for line in process.stdout:
            if line.startswith("[train]") and "batch: [8/" in line:
                break
        process.kill()
        process.communicate()
        path, = glob.glob(os.path.join(output, "tensorboard/*"))
        with open(path, "ab") as file:
            file.write(b"\x20\0\0")  # an event that a kill cut off
        self.run_worker("train", self.config, output)
        self.assertEqual(len(glob.glob(os.path.join(output, "tensorboard/*"))), 2)
        self.check_same_as_records(output)

    def test_writes_nothing_unless_requested(self):
        output = os.path.join(self.folder, "off")
        config = self.write_config(self.folder, case("simplenet", **{**SHORT, "Engine.tensorboard": False,
                                                                     "Engine.max_steps": 1}))
        self.run_worker("train", config, output)
        self.assertFalse(os.path.exists(os.path.join(output, "tensorboard")))


if __name__ == "__main__":
    unittest.main()
