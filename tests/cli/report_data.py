"""Results (docs/reference/formats.md, assay/result-v1) for the tests of the reports, computed from formulas, always the same."""
import math
import random

STARTED = "2026-11-15T19:43:05.339754Z"


def step(number, name, kind, seconds, started, outcome="Pass", **more):
    base = {
        "number": number, "name": name, "kind": kind, "outcome": outcome, "reason": "", "started": started,
        "seconds": seconds, "exit_code": 0 if seconds is not None else None, "signal": None,
        "attempts": 0 if seconds is None else 1, "max_rss_bytes": None, "folder": f"steps/{number}-{name}", "last_lines": [],
    }
    return {**base, **more}


def at(seconds):
    """The time so many seconds after the start of the run, within the same hour."""
    total = 43 * 60 + 5.339754 + seconds
    return f"2026-11-15T19:{int(total // 60):02}:{total % 60:09.6f}Z"


def demo_curves(num_steps=2345, every=10):
    rng = random.Random(7)
    xs = list(range(every, num_steps + 1, every))
    loss, ips, lr, data, forward, backward, grad = [], [], [], [], [], [], []
    for x in xs:
        t = x / num_steps
        noise = rng.gauss(0, 1)
        loss.append(0.155 + 2.15 * math.exp(-x / 95) + 0.42 * math.exp(-x / 700) + 0.035 * noise * (0.4 + math.exp(-x / 500)))
        rate = 2480 * (1 - 0.25 * math.exp(-x / 40)) + 40 * rng.gauss(0, 1)
        ips.append(rate - (500 if x % 590 == 0 else 0))
        lr.append(0.1 * min(1, x / 200) * 0.5 * (1 + math.cos(math.pi * t)))
        total = 128 / rate
        data.append(0.021 * total)
        forward.append(0.318 * total)
        backward.append(0.597 * total)
        grad.append(0.064 * total)
    epochs = list(range(469, num_steps + 1, 469)) or [num_steps]
    accuracy = [0.8391, 0.8726, 0.8934, 0.9058, 0.9132][:len(epochs)]
    val_loss = [0.4372, 0.3487, 0.2925, 0.2604, 0.2418][:len(epochs)]

    def curve(name, stage, unit, x, y, label=""):
        return {"name": name, "stage": stage, "unit": unit, "label": label, "source": "", "total_points": 0, "x": x, "y": y}

    return [
        curve("train.loss", "TRAIN", "", xs, loss),
        curve("val.loss", "VALID", "", epochs, val_loss),
        curve("val.metric", "VALID", "", epochs, accuracy, "accuracy"),
        curve("train.ips", "TRAIN", "images/s", xs, ips),
        curve("train.lr", "TRAIN", "", xs, lr),
        curve("train.data_time", "TRAIN", "s", xs, data),
        curve("train.fp_time", "TRAIN", "s", xs, forward),
        curve("train.bp_time", "TRAIN", "s", xs, backward),
        curve("train.grad_time", "TRAIN", "s", xs, grad),
    ]


PARAMETERS = {
    "Global.seed": 42, "Global.device": "cpu", "Global.division": "closed", "Engine.max_epochs": 5,
    "Engine.log_interval": 10, "Engine.precision": "float32", "Engine.eval_every_epochs": 1, "Engine.threads": None,
    "Model.name": "resnet", "Model.num_classes": 10, "Model.widths": [32, 64, 128], "Model.blocks": [1, 1, 1],
    "Data.name": "fashion-mnist", "Data.root": "/usr/share/dataset-fashion-mnist", "Data.batch_size": 128,
    "Data.eval_batch_size": 500, "Data.shuffle": True, "Data.loader_threads": 2, "Optimizer.name": "SGD",
    "Optimizer.lr": 0.1, "Optimizer.momentum": 0.9, "Optimizer.weight_decay": 0.0005, "Optimizer.schedule": "cosine",
    "Optimizer.warmup_steps": 200, "Distributed.dp_degree": 1, "Distributed.mp_degree": 1, "Distributed.pp_degree": 1,
}

ENVIRONMENT = {
    "machine": {"host": "bench-01", "cpu": "Intel Xeon Platinum 8370C, 2 cores", "memory": "16.0 GiB",
                "system": "Debian GNU/Linux 12", "kernel": "6.1.0-26-amd64"},
    "software": {"assay": "0.1.0", "libtorch": "1.13.1", "oneDNN": "2.7.3", "BLAS": "OpenBLAS 0.3.21 (OpenMP)",
                 "compiler": "g++ 12.2.0"},
    "devices": {"accelerators": None, "threads": 2},
}


def demo():
    """A run in which everything passed."""
    return {
        "schema": "assay/result-v1", "id": "20261115-194305-demo", "title": "demo: resnet on Fashion-MNIST",
        "command": "assay demo", "outcome": "Pass", "reason": "", "started": STARTED, "ended": at(151.9), "seconds": 151.9,
        "steps": [
            step(1, "train", "train", 129.4, at(0.2), max_rss_bytes=633339904),
            step(2, "evaluate", "evaluate", 5.31, at(129.8), max_rss_bytes=401604608),
            step(3, "export", "export", 2.87, at(135.3), max_rss_bytes=389021696),
            step(4, "infer", "infer", 6.02, at(138.4), max_rss_bytes=371195904),
            step(5, "compare", "compare", 3.44, at(144.6), max_rss_bytes=96468992),
        ],
        "verdicts": [
            {"name": "accuracy reaches its target", "outcome": "Pass", "reason": "0.9132 >= 0.9000",
             "figures": {"accuracy": 0.9132, "target": 0.9}},
            {"name": "the export predicts what the model predicts", "outcome": "Pass",
             "reason": "10000 of 10000 predictions agree, largest difference 2.4e-06", "figures": {}},
            {"name": "the export is as accurate as the model", "outcome": "Pass", "reason": "0.9132 = 0.9132", "figures": {}},
            {"name": "every loss is a number", "outcome": "Pass", "reason": "234 losses, all finite", "figures": {}},
            {"name": "the configuration is closed", "outcome": "Pass", "reason": "no immutable key was changed", "figures": {}},
        ],
        "results": [{
            "case": "resnet:libtorch:cpu:1:1:1", "precision": "fp32", "fix_hp": None, "e2e_time": 129.4, "init_time": 1.84,
            "raw_train_time": 127.1, "no_eval_time": 120.9, "pure_compute_time": 118.2, "p_whole": 2360.3, "p_train": 2481.4,
            "p_core": 2538.1, "unit": "images/s", "converged": True, "final_accuracy": 0.9132,
            "target": {"metric": "accuracy", "value": 0.9, "goal": "max"}, "steps": 2345, "mfu": None,
            "peak_memory_bytes": 633339904, "energy_joules": None, "seed": 42,
            "hashes": {"case": "5d1c0e3a9b7f42c6", "data": "8f1e90c2aa31d7b4", "code": "20c88969d0aa", "weights": "c41b7f0e6629d3a8"},
        }],
        "environment": ENVIRONMENT, "parameters": PARAMETERS, "curves": demo_curves(),
    }


def failing():
    """A run whose loss broke and whose later steps were skipped."""
    result = demo()
    result |= {
        "id": "20261115-201122-demo", "title": "demo: resnet on Fashion-MNIST, 学习率 3.0", "outcome": "Error",
        "command": "assay demo --set Optimizer.lr=3.0", "reason": "step 1 (train) broke: the loss is not a number at step 870",
        "ended": at(61.2), "seconds": 61.2,
    }
    log = [f"epoch 2 step {s} loss {v} 2466.1 images/s" for s, v in ((840, "9.113"), (850, "88.41"), (860, "1204.7"))]
    log += ["\x1b[31merror:\x1b[0m non-finite loss nan at global step 870, before the optimizer update",
            "hint: lower Optimizer.lr (3.0) or raise Optimizer.warmup_steps (200)"]
    result["steps"] = [
        step(1, "train", "train", 48.6, at(0.2), "Error", reason="the loss is not a number at step 870", exit_code=67,
             attempts=2, max_rss_bytes=633339904, last_lines=log),
        step(2, "evaluate", "evaluate", None, None, "Skipped", reason="needs step 1 (train), which did not pass"),
        step(3, "export", "export", None, None, "Skipped", reason="needs step 1 (train), which did not pass"),
    ]
    result["verdicts"] = [
        {"name": "every loss is a number", "outcome": "Fail", "reason": "NaN at step 870", "figures": {"step": 870}},
        {"name": "accuracy reaches its target", "outcome": "Invalid", "reason": "accuracy was not measured",
         "figures": {"accuracy": None}},
        {"name": "the export predicts what the model predicts", "outcome": "Skipped", "reason": "there is no export",
         "figures": {}},
        {"name": "the configuration is closed", "outcome": "Pass", "reason": "no immutable key was changed", "figures": {}},
    ]
    case = result["results"][0]
    for key in ("final_accuracy", "converged", "p_whole", "p_train", "p_core", "raw_train_time", "no_eval_time"):
        case[key] = None
    case["e2e_time"] = 48.6
    curves = demo_curves(870)
    for curve in curves:
        if curve["name"] == "train.loss":
            curve["y"] = [v if x < 780 else v + math.exp((x - 800) / 22) for x, v in zip(curve["x"], curve["y"])]
            curve["y"][40] = "Infinity"
            curve["y"][-1] = "NaN"
    result["curves"] = [c for c in curves if c["name"] != "val.metric"]
    return result


def empty():
    """A plan with no step."""
    return {
        "schema": "assay/result-v1", "id": "20261115-210000-empty", "title": "", "command": "assay run nothing.yaml",
        "outcome": "Invalid", "reason": "the plan has no step", "started": STARTED, "ended": None, "seconds": None,
        "steps": [], "verdicts": [], "results": [], "environment": {}, "parameters": {}, "curves": [],
    }


HOSTILE = "</script></style></title><script>document.documentElement.dataset.owned='1'</script>" \
          "<img src=x onerror=\"document.documentElement.dataset.owned='2'\">'\"`${1}&amp;\u2028\u2029|**b**]]>\x00\x1b[2J"


def hostile():
    """Every text that comes from outside tries to become markup."""
    result = failing()
    for key in ("id", "title", "command", "reason"):
        result[key] = f"{key} {HOSTILE}"
    for one in result["steps"]:
        one |= {"name": HOSTILE, "kind": HOSTILE, "reason": HOSTILE, "folder": HOSTILE, "last_lines": [HOSTILE, "```", "````"]}
    for one in result["verdicts"]:
        one |= {"name": HOSTILE, "reason": HOSTILE}
    result["results"][0] |= {"case": HOSTILE, "unit": HOSTILE, "precision": HOSTILE, HOSTILE: HOSTILE,
                             "target": {"metric": HOSTILE, "value": 0.9}}
    result["environment"] = {HOSTILE: {HOSTILE: HOSTILE}, "flat": HOSTILE}
    result["parameters"] = {HOSTILE: HOSTILE, "nested": {HOSTILE: [HOSTILE]}}
    for one in result["curves"][:3]:
        one |= {"stage": HOSTILE, "unit": HOSTILE, "label": HOSTILE, "source": HOSTILE}
    result["curves"][0]["name"] = HOSTILE
    return result
