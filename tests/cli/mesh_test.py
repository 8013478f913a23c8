"""Several processes of assay-worker: checkpoints from one mesh to another, precision, evaluation, and a loss that is not finite.
A process costs 0.35 s of libtorch's start, whatever it trains: the short tests take one or two meshes for each property, and
those with @long_test every mesh."""
import itertools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

import parallel_data
import worker_support
from support import DEADLINE_S, long_test
from worker_support import ASSAY, BIN, WorkerTest, mixed
import tensor_file

TINY = {"Model.hidden_size": 32, "Model.num_layers": 4, "Model.num_attention_heads": 4, "Model.ffn_hidden_size": 64,
        "Model.max_position_embeddings": 16, "Model.hidden_dropout_prob": 0, "Model.attention_probs_dropout_prob": 0,
        "Data.Train.dataset.max_seq_len": 16, "Data.Eval.dataset.max_seq_len": 16, "Engine.logging_freq": 1,
        "Engine.eval_freq": None, "Engine.eval_iters": 1, "Engine.num_train_epochs": 1000, "Optimizer.epsilon": 1e-3, "Optimizer.lr.decay_steps": 20,
        "Optimizer.lr.warmup_rate": None}
SHORT = {"Engine.logging_freq": 1, "Engine.eval_freq": None, "Engine.num_train_epochs": 1000}
TINY_OF = {"gpt": TINY, "deepfm": {"Model.hidden_sizes": [16, 16, 16], "Model.dropout": 0, **SHORT},
           "resnet": {"Model.width": 8, "Model.blocks": [2, 1, 1], "Optimizer.epsilon": 1e-3, "Optimizer.lr.name": "constant",
                      "Optimizer.lr.learning_rate": 1e-3, **SHORT}}
BATCH = 8
PLUGINS = pathlib.Path(os.environ.get("ASSAY_TEST_PLUGINS", os.path.join(BIN, "../test_plugins")))
LAMB_AND_EMA = {"Optimizer.name": "LAMB", "Optimizer.lr.learning_rate": 0.01, "Optimizer.ema.decay": 0.7}


BFLOAT16_O2 = mixed("bfloat16", "O2")
# Name -> processes, keys, replicas.
MESHES = {
    "one": (1, {}, 1),
    "dp2": (2, {}, 2),
    "tp2": (2, {"Distributed.mp_degree": 2}, 1),
    "sp2": (2, {"Distributed.mp_degree": 2, "Distributed.sequence_parallel": True}, 1),
    "pp2": (2, {"Distributed.pp_degree": 2, "Global.micro_batch_size": 2}, 1),
    "pp2-time": (2, {"Distributed.pp_degree": 2, "Global.micro_batch_size": 2, "Distributed.pp_segments": "time"}, 1),
    "sharded1": (2, {"Distributed.sharding.sharding_degree": 2, "Distributed.sharding.sharding_stage": 1}, 2),
    "sharded2": (2, {"Distributed.sharding.sharding_degree": 2, "Distributed.sharding.sharding_stage": 2}, 2),
    "sharded3": (2, {"Distributed.sharding.sharding_degree": 2, "Distributed.sharding.sharding_stage": 3}, 2),
    "interleaved": (2, {"Distributed.pp_degree": 2, "Distributed.virtual_pp_degree": 2, "Global.micro_batch_size": 2}, 1),
    "dp2xsharded3": (4, {"Distributed.sharding.sharding_degree": 2, "Distributed.sharding.sharding_stage": 3}, 4),
    "sharded3xtp2": (4, {"Distributed.sharding.sharding_degree": 2, "Distributed.sharding.sharding_stage": 3,
                         "Distributed.mp_degree": 2}, 2),
    "sharded2xpp2": (4, {"Distributed.sharding.sharding_degree": 2, "Distributed.sharding.sharding_stage": 2,
                         "Distributed.pp_degree": 2, "Global.micro_batch_size": 2}, 2),
    "sharded1xtp2": (4, {"Distributed.sharding.sharding_degree": 2, "Distributed.mp_degree": 2}, 2),
}


def unused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class MeshTest(WorkerTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-mesh-"))
        cls.data = {}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def data_of(self, case):
        if case not in self.data:
            assay = lambda *words: subprocess.run([ASSAY, *map(str, words)], check=True, capture_output=True)
            self.data[case] = parallel_data.prepare(case, assay, self.folder / case)
        return self.data[case]

    def train(self, name, mesh, code=0, case="gpt", resume=False, env={}, **sets):
        """Trains under a mesh; the folder of its output."""
        processes, keys, replicas = MESHES[mesh]
        folder = self.folder / name
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        values = {**TINY_OF[case], "Engine.precision": "float64", "Global.local_batch_size": BATCH // replicas, **keys, **sets}
        config = worker_support.case(f"{case}:libtorch::1:{processes}:1", *self.data_of(case), **values)
        config_file = self.write_config(str(folder), config)
        environment = {**env, "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(unused_port()), "ASSAY_THREADS": "1"}
        ranks = [self.start("train", config_file, str(folder / "output"),
                            env={**environment, "RANK": str(rank), "ASSAY_RECORDS": str(folder / f"records{rank}.jsonl")})
                 for rank in range(processes)]
        ends = [(process, *process.communicate(timeout=DEADLINE_S)) for process in ranks]
        for process, out, err in ends:
            self.assertEqual(process.returncode, code, f"{name}: {out[-1000:]}\n{err}")
        self.errors = [err for _, _, err in ends]
        self.printed = [out for _, out, _ in ends]
        return folder

    def assert_near(self, folder, reference, limit, file="output/model.safetensors"):
        ours, theirs = ({name: tensor for name, tensor in tensor_file.load(str(path / file)).items()
                         if not name.startswith("random.")} for path in (folder, reference))
        self.assertEqual(ours.keys(), theirs.keys())
        for name, tensor in theirs.items():
            apart = (ours[name].double() - tensor.double()).abs().max().item()
            self.assertLessEqual(apart, limit * max(tensor.double().abs().max().item(), 1e-2), name)

    def assert_close_losses(self, folder, reference, relative):
        for ours, theirs in zip(self.logged(folder), reference, strict=True):
            self.assertAlmostEqual(ours, theirs, delta=relative * theirs)

    def logged(self, folder):
        return self.figures(folder, "train.loss")

    def figures(self, folder, key):
        return [r["data"][key] for r in self.records(str(folder), "records0.jsonl") if key in r.get("data", {})]


class Checkpoints(MeshTest):
    def chain(self, meshes, **sets):
        """Two steps under each mesh, each starting from the checkpoint of the one before."""
        checkpoint, steps = None, 0
        for i, mesh in enumerate(meshes):
            steps += 2
            values = {**sets, "Engine.max_steps": steps, "Engine.save_load.save_steps": 2}
            if checkpoint:
                values["Engine.save_load.ckpt_dir"] = str(checkpoint)
            folder = self.train(f"link{i}", mesh, **values)
            checkpoint = max((folder / "output/checkpoints").glob(f"*_step_{steps}"))  # two where an epoch ends
        return folder, steps

    def check_chain(self, meshes, whole_mesh="one", limit=1e-10, **sets):
        """A chain of meshes ends with the weights of an undivided training."""
        last, steps = self.chain(meshes, **sets)
        self.assert_near(last, self.train("whole", whole_mesh, **sets, **{"Engine.max_steps": steps}), limit)

    def test_continues_from_another_mesh(self):
        self.check_chain(["dp2", "tp2", "pp2", "sharded3", "one"])

    @long_test
    def test_continues_from_any_mesh_to_any_other(self):
        self.check_chain(["one", "dp2", "tp2", "pp2", "sharded3", "interleaved", "sharded1xtp2", "one"])
        self.check_chain(["sharded2", "pp2-time", "sharded1", "sp2", "sharded3", "dp2"])

    def check_statistics_and_tables(self, **meshes_of):
        """resnet has buffers, and batches that must not be cut into micro-batches; deepfm has tables with sparse gradients."""
        for case, meshes in meshes_of.items():
            with self.subTest(case):  # a rate that does not depend on the number of steps
                self.check_chain(meshes, case=case, **{"Optimizer.lr.name": "constant"})

    def test_continues_statistics_and_tables_from_another_mesh(self):
        self.check_statistics_and_tables(resnet=["dp2", "sharded3"], deepfm=["pp2", "sharded2"])

    @long_test
    def test_continues_statistics_and_tables_from_any_mesh_to_any_other(self):
        self.check_statistics_and_tables(resnet=["one", "dp2", "sharded3", "tp2", "sharded1"],
                                         deepfm=["sharded2", "pp2", "tp2", "sharded3", "dp2"])

    def test_continues_averages_and_norms_from_another_mesh(self):
        self.check_chain(["sharded1xtp2", "one"], **LAMB_AND_EMA)

    @long_test
    def test_continues_averages_and_norms_from_any_mesh_to_any_other(self):
        for meshes in (["sharded3", "one", "sharded1xtp2", "sharded2"], ["one", "sharded1", "pp2", "sharded3xtp2"]):
            self.check_chain(meshes, **LAMB_AND_EMA)

    def check_low_precision_chain(self, meshes):
        """All of these meshes round alike; the norm for clipping they sum in other orders."""
        self.check_chain(meshes, whole_mesh="dp2", limit=0, **BFLOAT16_O2, **{"Optimizer.grad_clip": None})

    def test_continues_low_precision_weights_from_another_mesh(self):
        self.check_low_precision_chain(["sharded3", "dp2"])

    @long_test
    def test_continues_low_precision_weights_from_any_mesh_to_any_other(self):
        self.check_low_precision_chain(["sharded3", "dp2", "sharded3", "sharded1"])

    def check_same_mesh(self, *meshes):
        """Continues bit for bit, with dropout, whose random numbers differ from rank to rank."""
        dropout = {"Model.hidden_dropout_prob": 0.2, "Model.attention_probs_dropout_prob": 0.2, "Engine.save_load.save_steps": 3,
                   "Engine.precision": "float32", "Engine.max_steps": 6}
        for mesh, more in meshes:
            with self.subTest(mesh, **more):
                sets = {**dropout, **more}
                whole = self.train("whole", mesh, **sets)
                part = self.folder / "part"
                shutil.rmtree(part, ignore_errors=True)
                shutil.copytree(whole, part)
                last, = (part / "output/checkpoints").glob("*_step_6")
                shutil.rmtree(last)
                (part / "output/model.safetensors").unlink()
                self.train("part", mesh, resume=True, **sets)
                self.assertIn("RESUMED", (part / "records0.jsonl").read_text())
                self.assert_near(part, whole, 0)

    def test_continues_the_same_mesh_bit_for_bit(self):
        self.check_same_mesh(("sp2", {}), ("pp2-time", {}), ("sharded3", {**LAMB_AND_EMA, **BFLOAT16_O2}))

    @long_test
    def test_continues_every_mesh_bit_for_bit(self):
        self.check_same_mesh(("dp2", {}), ("sp2", {}), ("pp2", {}), ("pp2-time", {}), ("sharded3", {}), ("sharded1", LAMB_AND_EMA),
                             ("sharded2xpp2", LAMB_AND_EMA), ("sharded3", {**LAMB_AND_EMA, **BFLOAT16_O2}),
                             ("sharded3xtp2", mixed("float16", "O2")))

    def test_keeps_the_division_by_measured_time_of_the_checkpoint(self):
        """Time is another at every start; a run that continues keeps its stages, and with them its random numbers."""
        sets = {"Engine.save_load.save_steps": 2, "Engine.max_steps": 4}
        folder = self.train("timed", "pp2-time", **sets)
        older, newer = ((folder / "output/checkpoints" / f"epoch_0_step_{step}/meta.json") for step in (2, 4))
        meta = json.loads(older.read_text())
        measured = meta["placement"]["(pipeline)"]["edges"]
        self.assertEqual((measured[0], measured[2]), (0, 5))
        other = [0, 4 if measured[1] != 4 else 1, 5]
        meta["placement"]["(pipeline)"]["edges"] = other
        older.write_text(json.dumps(meta))
        shutil.rmtree(newer.parent)
        self.train("timed", "pp2-time", resume=True, **sets)
        self.assertIn("RESUMED", (folder / "records0.jsonl").read_text())
        self.assertEqual(json.loads(newer.read_text())["placement"]["(pipeline)"]["edges"], other)
        # A division of another mesh does not apply to this one.
        sets["Engine.save_load.ckpt_dir"] = str(older.parent)
        meta["placement"]["(pipeline)"]["mesh"][4] = 2
        older.write_text(json.dumps(meta))
        folder = self.train("another", "pp2-time", **sets)
        self.assertIn("RESUMED", (folder / "records0.jsonl").read_text())

    def test_starts_from_pretrained_weights(self):
        given = str(self.train("given", "one", **{"Engine.max_steps": 2}) / "output/model.safetensors")
        sets = {"Engine.max_steps": 2, "Engine.save_load.pretrained": given, "Global.seed": 5}
        self.assert_near(self.train("parts", "sharded1xtp2", **sets), self.train("whole", "one", **sets), 1e-10)


class Optimizers(MeshTest):
    def check_averages_and_lamb(self, *meshes):
        """Evaluations, in the middle too, final weights, and everything in the last checkpoint are those of one process."""
        sets = {**LAMB_AND_EMA, "Engine.max_steps": 6, "Engine.save_load.save_steps": 6, "Engine.run_mode": "step",
                "Engine.eval_freq": 2, "Engine.eval_iters": None}
        whole = self.train("whole", "one", **sets)
        self.assertEqual(len(self.figures(whole, "val.loss")), 3)
        for mesh in meshes:
            with self.subTest(mesh):
                part = self.train("part", mesh, **sets)
                for ours, theirs in zip(self.figures(part, "val.loss"), self.figures(whole, "val.loss"), strict=True):
                    self.assertAlmostEqual(ours, theirs, delta=1e-9)
                self.assert_near(part, whole, 1e-10)
                saved, = (path.relative_to(part) for path in (part / "output/checkpoints").glob("*_step_6"))
                self.assert_near(part, whole, 1e-10, saved / "model.safetensors")
                self.assert_near(part, whole, 1e-8, saved / "optimizer.safetensors")

    def test_equals_one_process_with_averages_and_lamb(self):
        self.check_averages_and_lamb("dp2", "pp2", "sharded3xtp2")

    @long_test
    def test_equals_one_process_with_averages_and_lamb_under_every_mesh(self):
        self.check_averages_and_lamb("dp2", "tp2", "pp2", "sharded1", "sharded2", "sharded3", "dp2xsharded3", "sharded3xtp2",
                                     "sharded2xpp2")


class MicroBatches(MeshTest):
    def check_micro_batches(self, *meshes):
        whole = self.train("whole", "one", **{"Engine.max_steps": 4})
        for mesh in meshes:
            with self.subTest(mesh):
                self.assert_near(self.train("part", mesh, **{"Engine.max_steps": 4, "Global.micro_batch_size": 2}), whole, 1e-10)

    def test_adds_up_gradients_over_micro_batches(self):
        self.check_micro_batches("one", "sharded2")

    @long_test
    def test_adds_up_gradients_over_micro_batches_under_every_mesh(self):
        self.check_micro_batches("one", "dp2", "sharded1", "sharded2", "sharded3")


class Precision(MeshTest):
    FLOAT32 = {"Engine.precision": "float32"}
    BFLOAT16_O1 = mixed("bfloat16", "O1")

    def check_shared_statistics(self, precisions, meshes):
        """Replicas normalise by the whole batch and have the same statistics, bit for bit."""
        for dtype, level in precisions:
            sets = {"case": "resnet", **mixed(dtype, level), "Engine.max_steps": 4, "Distributed.check_replicas": True}
            whole = self.logged(self.train("whole", "one", **sets))
            for mesh in meshes:
                with self.subTest(f"{dtype} {level} {mesh}"):
                    part = self.train("part", mesh, **sets)
                    self.assertNotIn("REPLICA_DIFFERS", (part / "records0.jsonl").read_text())
                    self.assert_close_losses(part, whole, 2e-2)

    def test_shares_statistics_of_batches_in_lower_precisions(self):
        self.check_shared_statistics([("bfloat16", "O1")], ["dp2", "sharded3"])

    @long_test
    def test_shares_statistics_of_batches_in_every_precision(self):
        self.check_shared_statistics([("bfloat16", "O1"), ("bfloat16", "O2"), ("float16", "O1")], ["dp2", "sharded2", "sharded3"])

    def check_low_precision_weights(self, *meshes):
        """Replicas sum the same gradients in the same order, whatever they keep: every bit is the same."""
        sets = {**BFLOAT16_O2, "Optimizer.grad_clip": None, "Engine.max_steps": 5}
        whole = self.train("whole", "dp2", **sets)
        for mesh in meshes:
            with self.subTest(mesh):
                self.assert_near(self.train("part", mesh, **sets), whole, 0)

    def test_equals_replicas_with_low_precision_weights(self):
        self.check_low_precision_weights("sharded3")

    @long_test
    def test_equals_replicas_with_low_precision_weights_in_every_stage(self):
        self.check_low_precision_weights("sharded1", "sharded2", "sharded3")

    def check_recompute(self, *meshes_and_precisions):
        """Changes nothing, dropout included."""
        for mesh, precision in meshes_and_precisions:
            with self.subTest(mesh, **precision):
                sets = {**precision, "Model.hidden_dropout_prob": 0.2, "Engine.max_steps": 3}
                kept = self.train("kept", mesh, **sets)
                self.assert_near(self.train("again", mesh, **sets, **{"Model.use_recompute": True}), kept, 0)

    def test_changes_nothing_by_recompute(self):
        self.check_recompute(("sp2", self.FLOAT32), ("interleaved", self.BFLOAT16_O1), ("sharded3", BFLOAT16_O2))

    @long_test
    def test_changes_nothing_by_recompute_in_any_precision_under_any_mesh(self):
        self.check_recompute(*itertools.product(["one", "dp2", "sp2", "interleaved", "sharded2", "sharded3"],
                                                [self.FLOAT32, self.BFLOAT16_O1, BFLOAT16_O2]))

    def check_recompute_counts_once(self, *cases_meshes_and_precisions):
        """Batch normalisation has statistics, which a second pass leaves alone; deepfm has dropout."""
        for case, mesh, precision in cases_meshes_and_precisions:
            with self.subTest(f"{case} {mesh}", **precision):
                sets = {"case": case, **precision, "Engine.max_steps": 3}
                if case == "deepfm":
                    sets["Model.dropout"] = 0.3
                kept = self.train("kept", mesh, **sets)
                again = self.train("again", mesh, **sets, **{"Model.use_recompute": True})
                # resnet's are the same bits. deepfm's embeddings have three uses, whose gradients autograd adds in
                # the order in which their nodes were made, and a recomputed layer is made at another time.
                self.assert_near(again, kept, 0 if case == "resnet" else 1e-6)

    def test_counts_a_batch_once_with_recompute(self):
        self.check_recompute_counts_once(("resnet", "dp2", self.FLOAT32), ("deepfm", "pp2", self.BFLOAT16_O1))

    @long_test
    def test_counts_a_batch_once_with_recompute_under_every_mesh(self):
        for case, meshes in ("resnet", ["one", "dp2", "tp2", "sharded3"]), ("deepfm", ["one", "pp2", "sharded3"]):
            self.check_recompute_counts_once(*itertools.product([case], meshes, [self.FLOAT32, self.BFLOAT16_O1]))

    def check_mixed_precision(self, precisions, meshes):
        """Each strategy has the losses that one process has in that precision, as far as it goes."""
        for dtype, level in precisions:
            sets = {**mixed(dtype, level), "Engine.max_steps": 5}
            whole = self.logged(self.train("whole", "one", **sets))
            for mesh in meshes:
                with self.subTest(f"{dtype} {level} {mesh}"):
                    self.assert_close_losses(self.train("part", mesh, **sets), whole, 1e-2)

    def test_equals_one_process_in_mixed_precision(self):
        self.check_mixed_precision([("bfloat16", "O1")], ["tp2", "pp2"])
        self.check_mixed_precision([("float16", "O2")], ["sharded3"])

    @long_test
    def test_equals_one_process_in_mixed_precision_under_every_mesh(self):
        self.check_mixed_precision(itertools.product(["bfloat16", "float16"], ["O1", "O2"]),
                                   ["dp2", "tp2", "sp2", "pp2", "interleaved", "sharded1", "sharded2", "sharded3", "sharded3xtp2"])

    def check_skipped_steps(self, *meshes):
        """A scale that is far too large: gradients overflow in some parts of the network, not in all."""
        sets = {**mixed("float16", "O2"), "Engine.mix_precision.scale_loss": 2.0 ** 22, "Engine.max_steps": 10}
        for mesh in meshes:
            with self.subTest(mesh):
                folder = self.train("skips", mesh, **sets)
                skipped = [[r["data"] for r in self.records(str(folder), f"records{rank}.jsonl") if r.get("name") == "STEP_SKIPPED"]
                           for rank in range(MESHES[mesh][0])]
                self.assertIn(len(skipped[0]), range(1, 10))
                for others in skipped:
                    self.assertEqual(others, skipped[0])

    def test_skips_a_step_in_all_processes_or_in_none(self):
        self.check_skipped_steps("dp2", "sharded3xtp2")

    @long_test
    def test_skips_a_step_in_all_processes_or_in_none_under_every_mesh(self):
        self.check_skipped_steps("dp2", "tp2", "pp2", "sharded1", "sharded3", "sharded3xtp2")

    def check_sparse_tables(self, dtypes, meshes):
        """They stay float32 at level O2: lower precisions do not concern sparse gradients."""
        for dtype in dtypes:
            sets = {"case": "deepfm", **mixed(dtype, "O2"), "Engine.max_steps": 3, "Global.micro_batch_size": 2}
            whole = self.logged(self.train("whole", "one", **sets))
            for mesh in meshes:
                with self.subTest(f"{dtype} {mesh}"):
                    self.assert_close_losses(self.train("part", mesh, **sets), whole, 1e-3)

    def test_trains_tables_with_sparse_gradients(self):
        self.check_sparse_tables(["bfloat16"], ["dp2", "pp2"])

    @long_test
    def test_trains_tables_with_sparse_gradients_under_every_mesh(self):
        self.check_sparse_tables(["bfloat16", "float16"], ["dp2", "tp2", "pp2", "sharded2", "sharded3"])


class Ends(MeshTest):
    def test_names_the_transport_which_changes_nothing(self):
        """Sums are taken in the order of ranks, whatever carries them."""
        sets = {"Engine.max_steps": 3}
        shared = self.train("shared", "dp2", **sets)
        for output in self.printed:
            self.assertIn("[processes] 2 processes on 1 host; shared memory\n", output)
        gloo = self.train("gloo", "dp2", **sets, **{"Distributed.comm.transport": "gloo"})
        for output in self.printed:
            self.assertIn("[processes] 2 processes on 1 host; gloo over lo\n", output)
        self.assert_near(gloo, shared, 0)

    def check_evaluations(self, *meshes):
        """The area under a curve needs the scores of all samples; 400 of them do not divide by the batches."""
        sets = {"case": "deepfm", "Engine.max_steps": 3, "Data.Eval.loader.batch_size": 27}
        results = {}
        for mesh in ("one", *meshes):
            folder = self.train(f"eval-{mesh}", mesh, **sets)
            results[mesh] = [r["data"] for r in self.records(str(folder), "records0.jsonl") if r["type"] == "result"][0]
        for mesh, result in results.items():
            self.assertAlmostEqual(result["final_accuracy"], results["one"]["final_accuracy"], delta=1e-9, msg=mesh)
            self.assertAlmostEqual(result["final_loss"], results["one"]["final_loss"], delta=1e-9, msg=mesh)
            self.assertEqual(result["num_samples"], 3 * BATCH)

    def test_measures_every_sample_once(self):
        self.check_evaluations("dp2", "pp2")

    @long_test
    def test_measures_every_sample_once_under_every_mesh(self):
        self.check_evaluations("dp2", "tp2", "pp2", "sharded3")

    def check_loss_not_finite(self, *meshes):
        for mesh in meshes:
            self.train("nan", mesh, code=12, **{"Optimizer.lr.learning_rate": 1e30, "Optimizer.grad_clip": None,
                                                "Engine.max_steps": 8, "Engine.precision": "float32"})
            for error in self.errors:
                self.assertRegex(error, "the loss is (-?nan|-?inf) at step")

    def test_stops_all_before_the_update_when_a_loss_is_not_finite(self):
        self.check_loss_not_finite("dp2", "pp2")

    @long_test
    def test_stops_all_before_the_update_when_a_loss_is_not_finite_with_shards(self):
        self.check_loss_not_finite("sharded3")

    def check_gradients_not_finite(self, *meshes):
        """The last process's alone, while every loss is finite and nothing is clipped."""
        for mesh in meshes:
            with self.subTest(mesh):
                self.train("nan", mesh, code=12, env={"ASSAY_BROKEN": "nan_gradients"},
                           **{"Global.plugin": str(PLUGINS / "broken.so"), "Optimizer.grad_clip": None, "Engine.max_steps": 2})
                for error in self.errors:
                    self.assertRegex(error, r"step 1 \(epoch 0, batch 1\): the norm of the gradients is -?nan")

    def test_stops_all_before_the_update_when_a_gradient_is_not_finite(self):
        self.check_gradients_not_finite("tp2", "sharded3")

    @long_test
    def test_stops_all_before_the_update_when_a_gradient_is_not_finite_under_every_mesh(self):
        self.check_gradients_not_finite("dp2", "tp2", "pp2", "sharded2", "sharded3")

    def check_vendor_optimizer(self, rule, *meshes):
        keys = {"Global.plugin": "reference", "Optimizer.name": rule, "Engine.max_steps": 3}
        one = self.train("one", "one", **keys)
        for mesh in meshes:
            with self.subTest(f"{rule} {mesh}"):
                self.assert_near(self.train("several", mesh, **keys), one, 1e-9)

    def test_updates_parts_of_parameters_by_a_vendors_optimizer(self):
        self.check_vendor_optimizer("AdamW", "tp2")
        self.check_vendor_optimizer("LAMB", "sharded2")

    @long_test
    def test_updates_parts_of_parameters_by_every_vendors_optimizer(self):
        for rule in "AdamW", "LAMB":
            self.check_vendor_optimizer(rule, "tp2", "pp2", "sharded2")

    def test_rejects_what_does_not_fit(self):
        for mesh, sets, text in (
                ("tp2", {"Model.num_attention_heads": 1}, "Model.num_attention_heads (1) must be divisible by Distributed.mp_degree (2)"),
                ("sharded2xpp2", {"Distributed.sharding.sharding_stage": 3}, "sharding_stage 3 with pp_degree above 1"),
                ("pp2", {"Distributed.virtual_pp_degree": 4, "Global.micro_batch_size": 2}, "segments to divide")):
            with self.subTest(text):
                self.train("refused", mesh, code=2, **{"Engine.max_steps": 2, **sets})
                self.assertIn(text, self.errors[0])


if __name__ == "__main__":
    unittest.main()
