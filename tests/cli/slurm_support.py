"""A Slurm of its own for a test: munge, a controller and nodes on the loopback of this machine."""
import ctypes
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "scontrol": "slurm-client"}
# Where the daemons are: script/test has them all in one folder, Debian in the administrator's.
PATH = os.environ.get("ASSAY_DECLARED_PROGRAMS") or os.environ.get("PATH", "") + os.pathsep + "/usr/sbin:/sbin"
CGROUPS = ["/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"]


def missing():
    """Why there can be no Slurm here; None when there can."""
    if os.geteuid() != 0:
        return "a Slurm cluster needs root: slurmd starts jobs for users"
    for program, package in PROGRAMS.items():
        if not shutil.which(program, path=PATH):
            return f"no program {program} (package {package})"
    if not any(map(os.path.exists, CGROUPS)):
        return "no cgroup file system at /sys/fs/cgroup, as in many containers: slurmd does not start without one"
    return None


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class SlurmCluster:
    """Nodes n1, n2, ... in partition `p`; `environment` is what its commands need. Two of them do not meet."""

    def __init__(self, folder, num_nodes=2, cpus=4):
        self.folder = pathlib.Path(folder)
        self.names = [f"n{i + 1}" for i in range(num_nodes)]
        self.cpus = cpus
        self.daemons = {}
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": PATH}
        for attempt in range(3):  # a port may be taken between the moment it was free and its use
            try:
                self.start()
                return
            except RuntimeError:
                self.stop()
                if attempt == 2:
                    raise

    def start(self):
        for name in "state", "log", "run", *(f"{kind}-{node}" for kind in ("spool", "tmp") for node in self.names):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        key = self.folder / "munge.key"
        key.unlink(missing_ok=True)
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        self.write_configuration()
        run = self.folder / "run"
        self.daemon("munged", "--foreground", "--force", f"--socket={run}/munge.sock", f"--key-file={key}",
                    f"--log-file={self.folder}/log/munged.log", f"--pid-file={run}/munged.pid",
                    f"--seed-file={run}/munged.seed")
        self.wait_for(lambda: (run / "munge.sock").exists(), "munged's socket")
        self.daemon("slurmctld", "-D", "-c", "-f", self.environment["SLURM_CONF"])
        for node in self.names:
            self.start_node(node)
        self.wait_for(lambda: self.idle_nodes() == len(self.names), "all nodes idle")

    def write_configuration(self):
        ports = free_ports(1 + len(self.names))
        lines = f"""ClusterName=t
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.folder}/run/munge.sock
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPort={ports[0]}
SlurmctldPidFile={self.folder}/run/slurmctld.pid
SlurmdPidFile={self.folder}/run/slurmd-%n.pid
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool-%n
SlurmctldLogFile={self.folder}/log/slurmctld.log
SlurmdLogFile={self.folder}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
TmpFS={self.folder}/tmp-%n
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=30
InactiveLimit=0
KillWait=3
MinJobAge=300
PropagateResourceLimits=NONE
SlurmdParameters=config_overrides
""".splitlines()
        for node, port in zip(self.names, ports[1:]):
            lines.append(f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs={self.cpus} "
                         "RealMemory=2000 State=UNKNOWN")
        lines.append(f"PartitionName=p Nodes={','.join(self.names)} Default=YES MaxTime=INFINITE State=UP")
        (self.folder / "slurm.conf").write_text("\n".join(lines) + "\n")

    def daemon(self, name, *words, key=None):
        environment = {**os.environ, **self.environment}
        output = open(self.folder / "log" / f"{key or name}.out", "ab")
        with output:
            self.daemons[key or name] = subprocess.Popen(
                [shutil.which(name, path=PATH), *map(str, words)], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env=environment, preexec_fn=die_with_parent)

    def start_node(self, node):
        self.daemon("slurmd", "-D", "-f", self.environment["SLURM_CONF"], "-N", node, key=f"slurmd-{node}")

    def kill_node(self, node):
        """Its slurmd is gone; what it started runs on, as on a real node."""
        daemon = self.daemons.pop(f"slurmd-{node}")
        daemon.kill()
        daemon.wait()

    def command(self, *words, check=True):
        done = subprocess.run(list(map(str, words)), env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        if check and done.returncode != 0:
            raise RuntimeError(f"{words}: {done.stderr}")
        return done.stdout

    def idle_nodes(self):
        words = self.command("sinfo", "--noheader", "--format=%T %D", check=False).split()
        return int(words[1]) if len(words) == 2 and words[0] == "idle" else 0

    def wait_for(self, condition, what, seconds=120):
        deadline = time.monotonic() + seconds
        while not condition():
            ended = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise RuntimeError(f"no {what}; ended: {ended}; see {self.folder}/log: {self.last_words()}")
            time.sleep(0.05)

    def last_words(self):
        return {path.name: path.read_text(errors="replace")[-500:] for path in (self.folder / "log").iterdir()}

    def stop(self):
        """Ends what runs in it too: jobs are cancelled before the daemons go."""
        if "slurmctld" in self.daemons:
            self.command("scancel", "--partition=p", check=False)
            deadline = time.monotonic() + 10
            while self.command("squeue", "--noheader", check=False).strip() and time.monotonic() < deadline:
                time.sleep(0.1)
        for daemon in reversed(list(self.daemons.values())):
            daemon.terminate()
            try:
                daemon.wait(timeout=5)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.daemons.clear()


def cluster_of(tests):
    """A cluster that all tests of a class share, until they have ended."""
    holder = tempfile.TemporaryDirectory(prefix="assay-slurm-")
    tests.addClassCleanup(holder.cleanup)
    cluster = SlurmCluster(holder.name)
    tests.addClassCleanup(cluster.stop)
    return cluster
