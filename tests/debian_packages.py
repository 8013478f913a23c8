"""Which installed Debian packages the groups of script/packages.txt stand for, and which package a file belongs to.

As a program: debian_packages.py programs FOLDER GROUP...  makes FOLDER a PATH with the programs of these groups alone, so
that whatever is found by name while it is the PATH is there on a new machine too.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
# What every Debian 12 has, and a machine on which this tree was cloned.
MACHINE = ["apt", "git", "sudo", "ca-certificates"]
PROGRAM_FOLDERS = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]


def group_packages(groups):
    """The packages that script/bootstrap installs for the groups."""
    return subprocess.run([SOURCE / "script/bootstrap", "--list", *groups], check=True, capture_output=True,
                          text=True).stdout.split()


class Packages:
    """The installed packages of this machine."""

    def __init__(self):
        self.depends, self.provided, self.essential = {}, {}, set()
        form = "${db:Status-Abbrev}\t${Package}\t${Essential}\t${Provides}\t${Pre-Depends}, ${Depends}\n"
        for line in subprocess.run(["dpkg-query", "-W", "-f", form], check=True, capture_output=True,
                                   text=True).stdout.splitlines():
            status, name, essential, provides, depends = line.split("\t")
            if not status.startswith("ii"):
                continue
            self.depends[name] = [[self.bare(word) for word in item.split("|")] for item in depends.split(",") if item.strip()]
            for word in provides.split(","):
                self.provided.setdefault(self.bare(word), []).append(name)
            if essential == "yes":
                self.essential.add(name)
        self.owners = {}

    @staticmethod
    def bare(word):
        return re.sub(r"[:(\s].*", "", word.strip())

    def closure(self, names):
        """The packages and everything they depend on, of what is installed."""
        found, waiting = set(), [*names, *MACHINE, *self.essential]
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            if name in self.depends:
                found.add(name)
                waiting += [self.first_installed(choice) for choice in self.depends[name]]
            else:
                waiting += self.provided.get(name, [])[:1]
        return found - {""}

    def first_installed(self, choice):
        return next((name for name in choice if name in self.depends or name in self.provided), "")

    def owner(self, paths):
        """{path: package or None} of files; links are followed, alternatives too."""
        missing = [path for path in map(str, paths) if path not in self.owners]
        names = {path: self.spellings(path) for path in missing}
        asked = sorted({name for spelling in names.values() for name in spelling})
        owner_of = {}
        for start in range(0, len(asked), 2000):
            answer = subprocess.run(["dpkg-query", "-S", "--", *asked[start:start + 2000]], capture_output=True, text=True).stdout
            for line in answer.splitlines():
                package, _, path = line.partition(": ")
                if not line.startswith("diversion by"):
                    owner_of.setdefault(path, self.bare(package.split(",")[0]))
        for path, spelling in names.items():
            self.owners[path] = next((owner_of[name] for name in spelling if name in owner_of), None)
        return {str(path): self.owners[str(path)] for path in paths}

    @staticmethod
    def spellings(path):
        """The names under which dpkg may know a file: /lib is a link to /usr/lib, but packages still say /lib."""
        found = []
        for name in (os.path.realpath(path), os.path.normpath(path)):
            found.append(name)
            if name.startswith("/usr/"):
                found.append(name[len("/usr"):])
            else:
                found.append("/usr" + name)
        return found


def programs_of(packages, allowed):
    """{name: path} of every program in the usual folders that belongs to one of the packages."""
    paths = [entry.path for folder in PROGRAM_FOLDERS if os.path.isdir(folder)
             for entry in os.scandir(folder) if os.access(entry.path, os.X_OK) and not entry.is_dir()]
    found = {}
    for path, package in packages.owner(paths).items():
        if package in allowed:
            found.setdefault(os.path.basename(path), path)
    return found


def make_path(folder, groups):
    packages = Packages()
    programs = programs_of(packages, packages.closure(group_packages(groups)))
    if "data" in groups and "npm" not in programs:  # one that was there before: see script/packages.txt
        programs.update({name: path for name in ("npm", "node") if (path := shutil.which(name))})
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, path in programs.items():
        (folder / name).symlink_to(path)
    return programs


def main():
    if len(sys.argv) < 4 or sys.argv[1] != "programs":
        sys.exit(__doc__)
    make_path(pathlib.Path(sys.argv[2]), sys.argv[3:])


if __name__ == "__main__":
    main()
