"""What Python's loggers write for the same calls, for tests/common/record/dialects/peer_test.cpp.

Written from the description of the formats, on Python's own json, str and datetime. Each line of FILE is one of our
records; each line of the output is what the named logger writes for it.

loggers.py dllogger|dllogger-text|tcap|tcap-text|perflog|mllog FILE
"""
import datetime
import json
import sys

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class Peer:
    def __init__(self):
        self.metadata = {}

    @staticmethod
    def times(record):
        utc = EPOCH + datetime.timedelta(microseconds=record["time_us"])
        local = utc.astimezone().replace(tzinfo=None)
        elapsed = datetime.timedelta(microseconds=record["elapsed_us"]).total_seconds()
        return utc, local, elapsed

    @staticmethod
    def step(record):
        kind = record["type"]
        if kind == "parameters":
            return "PARAMETER"
        if kind == "event":
            return record["name"]
        return tuple(record["step"])

    def stream(self, mark, record, when, data):
        utc, _, elapsed = self.times(record)
        stamp = str(utc.timestamp())
        if record["type"] == "metadata":
            body = {"timestamp": stamp, "elapsedtime": str(elapsed), "datetime": when,
                    "type": "METADATA", "metric": record["name"], "metadata": record["data"]}
        else:
            body = {"timestamp": stamp, "datetime": when, "elapsedtime": str(elapsed),
                    "type": "LOG", "step": self.step(record), "data": data}
        return mark + " " + json.dumps(body)

    def dllogger(self, record):
        utc, _, _ = self.times(record)
        return self.stream("DLLL", record, str(utc), record["data"])

    def tcap(self, record):
        _, local, _ = self.times(record)
        if record["type"] in ("parameters", "message"):
            data = record["data"] if record["type"] == "parameters" else record["data"]["text"]
            return "INFO " + json.dumps({"local_rank": record["rank"], "datetime": str(local), "type": "INFO",
                                         "data": data})
        texts = {"rank": str(record["rank"])}
        texts.update({key: str(value) for key, value in record["data"].items()})
        return self.stream("TCAPPDLL", record, str(local), str(texts))

    def values(self, data, formatted):
        parts = []
        for name, value in data.items():
            known = self.metadata.get(name, {})
            form = "{" + known.get("format", "") + "}" if formatted else "{}"
            text = form.format(value) if value is not None else str(value)
            parts.append("{} : {} {}".format(name, text, known.get("unit", "")))
        return " ".join(parts)

    def dllogger_text(self, record):
        utc, _, _ = self.times(record)
        if record["type"] == "metadata":
            self.metadata.setdefault(record["name"], {}).update(record["data"])
            return None
        return "DLL {} - {} {}".format(utc.replace(tzinfo=None), self.step(record), self.values(record["data"], True))

    def tcap_text(self, record):
        _, local, _ = self.times(record)
        if record["type"] == "metadata":
            self.metadata.setdefault(record["name"], {}).update(record["data"])
            return None
        if record["type"] == "message":
            return record["data"]["text"]
        step = self.step(record)
        if not isinstance(step, str):
            names = ("Epoch", "Iteration", "Validation Iteration")
            step = "".join("{}: {} ".format(name, index) for name, index in zip(names, step))
        return "TCAPPDLL {} - {} {}".format(local, step, self.values({"rank": record["rank"], **record["data"]}, False))

    @staticmethod
    def perflog(record):
        body = {"event": record["name"]}
        if record["type"] == "message":
            body["other"] = record["data"]["text"]
        elif record["type"] == "metrics":
            body = {"event": "STEP_END", "value": record["data"], "step": record["step"]}
        elif record["data"]:
            body["value"] = record["data"]
        body["metadata"] = {"file": record.get("file", "(unknown file)"), "lineno": record.get("line", -1),
                            "time_ms": record["time_us"] // 1000, "rank": record["rank"]}
        return "[PerfLog] " + json.dumps(body)

    @staticmethod
    def mllog(record):
        place = {"file": record.get("file", ""), "lineno": record.get("line", 0)}
        key, kind, value = record["name"], "POINT_IN_TIME", None
        if record["type"] == "metrics":
            key, value = "tracked_stats", record["data"]
            place["step"] = record["step"]
        else:
            data = dict(record["data"])
            value = data.pop("value", None)
            place.update(data)
            if key.lower().endswith(("_start", "_begin")):
                kind = "INTERVAL_START"
            if key.lower().endswith(("_end", "_stop")):
                kind = "INTERVAL_END"
        body = {"namespace": "", "time_ms": record["time_us"] // 1000, "event_type": kind, "key": key, "value": value,
                "metadata": place}
        return ":::MLLOG " + json.dumps(body)


def main():
    peer = Peer()
    write = getattr(peer, sys.argv[1].replace("-", "_"))
    with open(sys.argv[2], encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            record.setdefault("name", "")
            text = write(record)
            if text is not None:
                print(text)


if __name__ == "__main__":
    main()
