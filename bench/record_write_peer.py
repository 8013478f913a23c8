"""The same records through a Python logger of DLLogger's form: json.dumps of a dictionary, written to a file.

Prints one JSON line: "buffered" leaves flushing to the file object, as DLLogger does (a kill loses what it holds);
"flushed" flushes each line, which is what flush_every 1 gives.
"""
import datetime
import json
import math
import os
import sys
import tempfile
import time


class Logger:
    def __init__(self, path, flush):
        self.file = open(path, "w", encoding="utf-8")
        self.flush = flush
        self.started = datetime.datetime.now(datetime.timezone.utc)

    def log(self, step, data):
        now = datetime.datetime.now(datetime.timezone.utc)
        elapsed = (now - self.started).total_seconds()
        self.file.write("DLLL " + json.dumps({
            "timestamp": str(now.timestamp()), "datetime": str(now), "elapsedtime": str(elapsed),
            "type": "LOG", "step": step, "data": data}) + "\n")
        if self.flush:
            self.file.flush()


def rates(flush, count):
    """Records per second of processor time and of wall time, each the best of three rounds."""
    best_cpu = best_wall = 0
    for _ in range(3):
        with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
            logger = Logger(os.path.join(folder, "log.json"), flush)
            wall, cpu = time.perf_counter(), time.thread_time()
            for i in range(count):
                logger.log((i // 1000, i % 1000), {
                    "train.loss": 2.3 / math.sqrt(1.0 + i), "train.ips": 16000.0 + 997.0 / (1 + i % 1013),
                    "train.lr": 0.1 * math.exp(-1e-6 * i), "train.data_time": 1e-3 + 1e-6 / (1 + i % 97)})
            logger.file.close()
            best_cpu = max(best_cpu, count / (time.thread_time() - cpu))
            best_wall = max(best_wall, count / (time.perf_counter() - wall))
    return best_cpu, best_wall


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
    found = {"Python, buffered": rates(False, count), "Python, flushed": rates(True, count)}
    print(json.dumps({"bench": "record_write_peer", "num_records": count,
                      "records_per_cpu_s": {name: round(cpu) for name, (cpu, _) in found.items()},
                      "records_per_s": {name: round(wall) for name, (_, wall) in found.items()}}))


if __name__ == "__main__":
    main()
