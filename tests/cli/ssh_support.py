"""Hosts for tests of ssh: real sshd, one a host, on loopback addresses, as the user who runs the test."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

SSHD = "/usr/sbin/sshd"


def missing():
    """Why there can be no such hosts here; None when there can."""
    if not pathlib.Path(SSHD).exists():
        return f"{SSHD} is missing (package openssh-server)"
    for tool in "ssh", "ssh-keygen":
        if not shutil.which(tool):
            return f"{tool} is missing (package openssh-client)"
    return None


def free_port(address):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


class SshHosts:
    """`count` hosts, node1, node2, ..., each a dict as in campaign.yaml. Use as a context manager, or call close()."""

    def __init__(self, folder, count, first_address=2, addresses=None, enter=None):
        """enter(i, words): the command that runs the words on host i. With `addresses` the hosts are elsewhere."""
        self.enter = enter or (lambda i, words: words)
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.identity = self.folder / "id"
        self.known_hosts = self.folder / "known_hosts"
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)  # sshd of root insists on it
        for name in "host_key", "id":
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)
        shutil.copy(self.folder / "id.pub", self.folder / "authorized_keys")
        key = " ".join((self.folder / "host_key.pub").read_text().split()[:2])
        self.hosts = []
        for i in range(count):
            address = addresses[i] if addresses else f"127.0.0.{first_address + i}"
            port = 2222 if addresses else free_port(address)
            self.hosts.append({"name": f"node{i + 1}", "address": address, "port": port,
                               "identity_file": str(self.identity), "known_hosts": str(self.known_hosts),
                               "work_dir": str(self.folder / f"home{i + 1}")})
        self.known_hosts.write_text("".join(f"[{h['address']}]:{h['port']} {key}\n" for h in self.hosts))
        self.variables = [{} for _ in self.hosts]  # of what runs on a host, from the next start of its sshd on
        self.servers = [None] * count
        for i in range(count):
            self.start(i)

    def start(self, i):
        host = self.hosts[i]
        # One line: sshd takes only the first. SHLVL keeps bash from reading .bashrc, each host has its own device locks.
        variables = {"SHLVL": "1", "ASSAY_LOCKS": self.folder / f"locks{i}", **self.variables[i]}
        config = self.folder / f"sshd{i}"
        config.write_text("\n".join([
            f"ListenAddress {host['address']}:{host['port']}", f"HostKey {self.folder / 'host_key'}", "PidFile none",
            f"AuthorizedKeysFile {self.folder / 'authorized_keys'}", "PasswordAuthentication no",
            "KbdInteractiveAuthentication no", "UsePAM no", "UseDNS no", "StrictModes no",
            "PermitRootLogin prohibit-password", "PrintMotd no", "MaxStartups 100", "Subsystem sftp internal-sftp",
            "SetEnv " + " ".join(f"{name}={value}" for name, value in variables.items())]) + "\n")
        with open(self.folder / f"sshd{i}.log", "w") as log:
            self.servers[i] = subprocess.Popen(self.enter(i, [SSHD, "-D", "-e", "-f", str(config)]),
                                               stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(3000):  # a minute: the machine may be busy
            if "Server listening" in (self.folder / f"sshd{i}.log").read_text():
                return
            if self.servers[i].poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError((self.folder / f"sshd{i}.log").read_text())

    def cut(self, i):
        """Everything that is connected to the host is cut off; what it runs goes on, and it still listens."""
        if self.servers[i]:
            for pid in self.descendants(self.servers[i].pid):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def stop(self, i):
        """The host no longer answers, and everything connected to it is cut off; what it runs goes on."""
        if not self.servers[i]:
            return
        self.cut(i)
        self.servers[i].kill()
        self.servers[i].wait()
        self.servers[i] = None

    def close(self):
        for i in range(len(self.hosts)):
            self.stop(i)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def ssh(self, i):
        """The command that logs in to the host; append one that is quoted for a shell."""
        host = self.hosts[i]
        return ["ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR",
                "-o", f"UserKnownHostsFile={self.known_hosts}", "-i", str(self.identity), "-p", str(host["port"]),
                host["address"]]

    @staticmethod
    def descendants(root):
        parents = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                except OSError:
                    pass
        found = []
        for pid, at in parents.items():
            while at > 1:
                if at == root:
                    found.append(pid)
                at = parents.get(at, 0)
        return found
