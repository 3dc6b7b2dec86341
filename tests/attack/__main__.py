"""``make attack``: every family as root and as an unprivileged user, both at once; one table at the end, exit code 1
when anything escaped.

It ends with its minutes: what is under way then has one more to come to its end, and is named when it does not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.sandbox import bubblewrap
from harness.workspace.facts.gather import shfmt_program
from tests.attack.ground import ground
from tests.attack.play import carry_out, turns
from tests.attack.registry import FAMILIES

ROOT = Path(__file__).parents[2]
NOBODY = 65534
REST_S = 60.0
"""What is under way when the time is over has so long to come to its end."""
TIDY_S = 10.0
STATUSES = ("refused", "escaped", "skipped")


def work(user: str, seed: int, seconds: float, only: str, number: int | None, attempt: str) -> None:
    """The attacks of one user, as JSON lines on standard output: the list, and then what is generated, for as long as
    there is time. A round that was asked for is carried out whole.
    """
    end = float("inf") if number is not None else time.monotonic() + seconds
    families = [family for family in FAMILIES if not only or family.name == only]
    with ground() as made:
        current = number or 0
        while time.monotonic() < end:
            now = turns(made, families, user, seed, current, attempt)
            _say(round=current, attempts=sum(turn.count for turn in now))
            for turn in now:
                if time.monotonic() > end:
                    return
                _say(at=str(turn))
                for result in carry_out(made, turn.attempts):
                    _say(family=turn.family, round=current, **asdict(result))
            if number is not None:
                return
            current += 1


def _say(**line: object) -> None:
    print(json.dumps(line), flush=True)


@contextlib.contextmanager
def interpreter(user: str) -> Iterator[tuple[str, str]]:
    """(a Python that this user can run with everything the suite needs, "") or ("", why there is none)."""
    if user != "nobody":
        yield sys.executable, ""
        return
    real = bubblewrap.base_python()
    folder = Path(tempfile.mkdtemp(prefix="wf-attack-python-"))
    try:
        for candidate in (real, f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"):
            shutil.rmtree(folder)
            packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
            packages.mkdir(parents=True)
            (folder / "bin").mkdir()
            (folder / "bin" / "python").symlink_to(candidate)
            (folder / "bin" / "shfmt").symlink_to(shfmt_program())
            (folder / "pyvenv.cfg").write_text(
                f"home = {Path(candidate).parent}\ninclude-system-site-packages = false\n"
            )
            (folder / "bin" / "watchfloor").write_text(
                f"#!{folder}/bin/python\nimport sys\nfrom app.main import main\nsys.exit(main())\n"
            )
            (packages / "attack.pth").write_text("\n".join([str(ROOT), *site.getsitepackages()]) + "\n")
            for path in (folder, *folder.rglob("*")):
                if not path.is_symlink():
                    path.chmod(0o755)
            python = str(folder / "bin" / "python")
            probe = "from tests.attack import ground; from harness.sandbox import bubblewrap; bubblewrap.find()"
            try:
                done = subprocess.run(
                    [python, "-P", "-s", "-c", probe], capture_output=True, text=True, check=False, **account(user)
                )
            except OSError as exc:
                why = str(exc)
                continue
            if done.returncode == 0:
                yield python, ""
                return
            why = done.stderr.strip().splitlines()[-1]
        yield "", f"an unprivileged user cannot run the suite here: {why}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def account(user: str) -> dict[str, object]:
    """How a process is started as this user, with an environment and a home of its own."""
    env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
    if user == "nobody":
        return {"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": env, "cwd": "/"}
    own = {name: os.environ[name] for name in ("TMPDIR",) if name in os.environ}
    return {"env": env | own, "cwd": "/"}


def users() -> list[tuple[str, str]]:
    """(user, why it cannot be)."""
    if os.geteuid() == 0:
        return [("root", ""), ("nobody", "")]
    return (
        [("root", "only root can attack as root"), ("nobody", "")]
        if os.geteuid() == NOBODY
        else [("root", "only root can attack as root"), ("self", "")]
    )


def table(rows: dict[tuple[str, str], Counter[str]]) -> str:
    """One row a family and user, and the sum."""
    lines = [("family", "user", "attempts", *STATUSES)]
    total: Counter[str] = Counter()
    for (family, user), counts in rows.items():
        lines.append((family, user, str(counts.total()), *(str(counts[status]) for status in STATUSES)))
        total += counts
    lines.append(("all", "", str(total.total()), *(str(total[status]) for status in STATUSES)))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


@dataclass(slots=True)
class Heard:
    """What one user's attacks said."""

    user: str
    rows: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    bad: list[str] = field(default_factory=list)
    """What escaped or went wrong, a paragraph each."""
    listed: int = 0
    tried: int = 0
    made: int = 0
    at: str = "its beginning"

    def take(self, line: dict[str, Any], seed: int) -> None:
        if "at" in line:
            self.at = line["at"]
            return
        if "attempts" in line:
            self.listed += line["attempts"] if line["round"] == 0 else 0
            return
        if line["round"] == 0:
            self.tried += 1
        else:
            self.made += 1
        self.rows.setdefault((line["family"], self.user), Counter())[line["status"]] += 1
        if line["status"] == "skipped":
            print(f"skipped: {line['family']} as {self.user}: {line['name']}: {line['detail']}", flush=True)
        elif line["status"] == "escaped":
            again = (
                f"--seed {seed} --user {self.user} --only {line['family']} --round {line['round']} --attempt"
                f" {json.dumps(line['name'])}"
            )
            self.bad.append(
                f"ESCAPED  {line['family']} as {self.user}: {line['name']}\n  {line['detail'][:1500]}\n  again:"
                f" python -m tests.attack {again}"
            )
            print(self.bad[-1], flush=True)

    def reached(self) -> str:
        """How far it came, in words."""
        if not self.rows:
            return f"{self.user}: nothing was tried"
        rest = "" if self.tried >= self.listed else "; no time for the others, of which another seed tries others first"
        return f"{self.user}: {self.tried} of {self.listed} listed attempts, {self.made} generated{rest}"


def run(heard: Heard, seed: int, end: float, more: list[str], over: threading.Event) -> None:
    """Let one user attack until ``end`` (monotonic seconds), or until it is ``over``; what is under way then has
    `REST_S` to come to its end.
    """
    user = heard.user
    with interpreter(user) as (python, why):
        if why:
            print(f"skipped: {user}: {why}", flush=True)
            return
        given = {"user": user, "seed": seed, "seconds": end - time.monotonic()}
        command = [python, "-P", "-s", "-m", "tests.attack", "--work", *more]
        command += [word for name, value in given.items() for word in (f"--{name}", str(value))]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **account(user))
        reads = threading.Thread(target=_listen, args=(worker.stdout, heard, seed), daemon=True)
        reads.start()
        try:
            while reads.is_alive() and time.monotonic() < end + REST_S and not over.is_set():
                reads.join(0.2)
            late = reads.is_alive()
            if late:
                worker.terminate()
                reads.join(TIDY_S)
            if late and not over.is_set():
                heard.bad.append(f"the attacks as {user} did not come to their end: they were at {heard.at}")
            elif not late and worker.wait() != 0:
                heard.bad.append(f"the attacks as {user} ended early with {worker.returncode}, at {heard.at}")
        finally:
            worker.kill()
            worker.wait()


def _listen(lines: IO[str], heard: Heard, seed: int) -> None:
    for raw in lines:
        heard.take(json.loads(raw), seed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    parser.add_argument("--user", choices=("root", "nobody", "self"))
    parser.add_argument("--only", choices=[family.name for family in FAMILIES], default="")
    parser.add_argument("--round", type=int)
    parser.add_argument("--attempt", default="")
    parser.add_argument("--seconds", type=float, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        work(given.user, given.seed, given.seconds, given.only, given.round, given.attempt)
        return 0
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    print(f"seed {given.seed}", flush=True)
    more = [
        word
        for name in ("only", "round", "attempt")
        if (value := getattr(given, name)) not in (None, "")
        for word in (f"--{name}", str(value))
    ]
    end = float("inf") if given.round is not None else time.monotonic() + given.minutes * 60
    heard: list[Heard] = []
    for user, why in users():
        if given.user in (None, user):
            if why:
                print(f"skipped: {user}: {why}", flush=True)
            else:
                heard.append(Heard(user))
    runs = [threading.Thread(target=run, args=(each, given.seed, end, more, over)) for each in heard]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    bad = [paragraph for each in heard for paragraph in each.bad]
    rows = {key: counts for each in heard for key, counts in sorted(each.rows.items())}
    print(f"\n{table(rows)}\n")
    for each in heard:
        print(each.reached())
    if bad:
        print("\n" + "\n".join(bad))
    came = "nothing escaped" if not bad else f"{len(bad)} escaped or broke off"
    print(f"\nseed {given.seed}: {came}{', but it was told to end' if over.is_set() else ''}")
    return 1 if bad or not rows or over.is_set() else 0


if __name__ == "__main__":
    sys.exit(main())
