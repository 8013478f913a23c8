"""The commands of README.md that need nothing but script/run work as they are printed, in their order, in an empty folder.
Two of them have tests of their own that take minutes: assay demo (demo_test.py) and assay verify parallel (parallel_test.py)."""
import os
import re
import subprocess
import unittest

from support import BIN, CliTest, SOURCE

TESTED_ELSEWHERE = ("assay demo", "assay verify parallel")
# A data set that is not prepared is a problem to assay doctor, as README says.
OTHER_EXIT_CODES = {"assay doctor": (0, 4)}


def everyday_commands():
    """The first code block after "Everyday use", without comments."""
    section = (SOURCE / "README.md").read_text().split("\n## Everyday use\n")[1]
    block = re.search(r"^```\n(.*?)^```", section, flags=re.M | re.S).group(1)
    return [line.split(" #")[0].strip() for line in block.splitlines()]


class ReadmeTest(CliTest):
    def test_runs_the_everyday_commands(self):
        commands = everyday_commands()
        self.assertGreater(len(commands), 10)
        self.assertIn("build/release/bin", commands[0])  # export PATH
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        for command in commands[1:]:
            if command.startswith(TESTED_ELSEWHERE):
                continue
            done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment(PATH=path),
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
            expected = OTHER_EXIT_CODES.get(command, (0,))
            self.assertIn(done.returncode, expected, f"{command}\n--- out\n{done.stdout}\n--- err\n{done.stderr}")

    def test_checks_the_first_campaign(self):
        page = (SOURCE / "docs/start/first-run.md").read_text()
        campaign = re.search(r"^```yaml\n(.*?)^```", page, flags=re.M | re.S).group(1)
        (self.folder / "campaign.yaml").write_text(campaign)
        self.assay("run", "campaign.yaml", "--check")
        self.assay("run", "campaign.yaml", "--dry-run")

    def test_accepts_every_training_of_the_documents(self):
        """As far as a plan tells: configuration, hosts and processes. Cases whose data is not prepared are left out."""
        pages = [SOURCE / "README.md", *sorted(SOURCE.glob("docs/*/*.md")), *sorted(SOURCE.glob("cases/*/README.md"))]
        pages = [page for page in pages if page.parent.name != "extend"]  # their files are yet to be written
        num_accepted = 0
        for page in pages:
            text = page.read_text().replace("\\\n", " ")
            for command in sorted(set(re.findall(r"^(?:- .*)?`?(assay train [a-z][^`\n]*)", text, flags=re.M))):
                words = command.split(" #")[0].split()
                if "--pretrained_path" in words:
                    continue  # a file that only the reader has
                done = self.assay(*words[1:], "--dry-run", expect=None)
                if done.returncode == 2 and "assay data prepare" in done.stderr:
                    continue
                self.assertEqual(done.returncode, 0, f"{page}: {command}\n{done.stderr}")
                num_accepted += 1
        self.assertGreater(num_accepted, 10)


if __name__ == "__main__":
    unittest.main()
