"""``make attack``: every family as root and as an unprivileged user; one table at the end, exit code 1 when anything
escaped.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import site
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from harness.hands import fence
from harness.workspace.gather_facts import shfmt_program
from tests.attack.ground import ground
from tests.attack.play import play
from tests.attack.registry import FAMILIES

ROOT = Path(__file__).parents[2]
NOBODY = 65534
STATUSES = ("refused", "escaped", "skipped")


def work(user: str, seed: int, seconds: float, only: str, number: int | None, attempt: str) -> None:
    """The attacks of one user, as JSON lines on standard output."""
    end = time.monotonic() + seconds
    families = [family for family in FAMILIES if not only or family.name == only]
    with ground() as made:
        rounds = [number] if number is not None else [0]
        while True:
            for current in rounds:
                for family in families:
                    if current and number is None and time.monotonic() > end:
                        return
                    for result in play(
                        made, family, user, seed, current, attempt, end if number is None else float("inf")
                    ):
                        line = {
                            "user": user,
                            "family": family.name,
                            "round": current,
                            "name": result.name,
                            "status": result.status,
                            "detail": result.detail,
                        }
                        print(json.dumps(line), flush=True)
            if number is not None or time.monotonic() > end:
                return
            rounds = [rounds[-1] + 1]


@contextlib.contextmanager
def interpreter(user: str) -> Iterator[tuple[str, str]]:
    """(a Python that this user can run with everything the suite needs, "") or ("", why there is none)."""
    if user != "nobody":
        yield sys.executable, ""
        return
    real = fence.base_python()
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
            probe = "from tests.attack import ground; from harness.hands import fence; fence.find()"
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
    return {"env": env, "cwd": "/"}


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


def run(user: str, seed: int, seconds: float, more: list[str], rows: dict[tuple[str, str], Counter[str]]) -> list[str]:
    """Let one user attack; what escaped or went wrong, a paragraph each."""
    bad: list[str] = []
    with interpreter(user) as (python, why):
        if why:
            print(f"skipped: {user}: {why}", flush=True)
            return bad
        command = [
            python,
            "-P",
            "-s",
            "-m",
            "tests.attack",
            "--work",
            "--user",
            user,
            "--seed",
            str(seed),
            "--seconds",
            str(seconds),
            *more,
        ]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **account(user))  # type: ignore[call-overload]
        try:
            for raw in worker.stdout:
                line = json.loads(raw)
                rows.setdefault((line["family"], user), Counter())[line["status"]] += 1
                if line["status"] == "escaped":
                    again = (
                        f"--seed {seed} --user {user} --only {line['family']} --round {line['round']} --attempt"
                        f" {json.dumps(line['name'])}"
                    )
                    bad.append(
                        f"ESCAPED  {line['family']} as {user}: {line['name']}\n  {line['detail'][:1500]}\n  again:"
                        f" python -m tests.attack {again}"
                    )
                    print(bad[-1], flush=True)
                elif line["status"] == "skipped":
                    print(f"skipped: {line['family']} as {user}: {line['name']}: {line['detail']}", flush=True)
            if worker.wait() != 0:
                bad.append(f"the attacks as {user} ended early with {worker.returncode}")
        finally:
            worker.kill()
            worker.wait()
    return bad


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
        work(given.user, given.seed, given.seconds, given.only, given.round, given.attempt)
        return 0
    print(f"seed {given.seed}", flush=True)
    more = [
        word
        for name in ("only", "round", "attempt")
        if (value := getattr(given, name)) not in (None, "")
        for word in (f"--{name}", str(value))
    ]
    chosen = [(user, why) for user, why in users() if given.user in (None, user)]
    rows: dict[tuple[str, str], Counter[str]] = {}
    bad: list[str] = []
    able = max(1, sum(not why for _, why in chosen))
    for user, why in chosen:
        if why:
            print(f"skipped: {user}: {why}", flush=True)
            continue
        bad += run(user, given.seed, given.minutes * 60 / able, more, rows)
    print(f"\n{table(rows)}")
    if bad:
        print("\n" + "\n".join(bad))
    print(f"\nseed {given.seed}: {'nothing escaped' if not bad else f'{len(bad)} escaped or broke off'}")
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
