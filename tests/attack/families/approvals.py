"""Approved is not executed: what an approved call rests on is changed between the question and the answer.

A whole fleet with its supervisor, because it is the supervisor that decides what may run while a question is open.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Escape, Outside
from tests.fleetlib import Fleet, fleet, make_repository, play, wait_for

FILES = {
    "README.md": "# Thing\n",
    "tool": "#!/bin/sh\necho fine\n",
    "Makefile": "all:\n\t@echo fine\n",
    "main.py": "import helper\nprint(helper.WORD)\n",
    "helper.py": "WORD = 'fine'\n",
    "data.sh": "echo fine\n",
    "folder/keep": "x\n",
}
SHELL = "printf '#!/bin/sh\\ntouch %s\\n' {mark}"
# What is asked (unsandboxed), and what changes it meanwhile; the mark is a file outside that only the changed world
# makes.
SWAPS: dict[str, tuple[dict[str, Any], str]] = {
    "the program, in place": ({"argv": ["./tool"]}, f"{SHELL} > tool"),
    "the program, by rename": ({"argv": ["./tool"]}, f"{SHELL} > new; chmod +x new; mv new tool"),
    "the program, by a link": ({"argv": ["./tool"]}, f"{SHELL} > new; chmod +x new; ln -sf new tool"),
    "a hard link": ({"argv": ["./tool"]}, f"{SHELL} > new; chmod +x new; ln -f new tool"),
    "a Makefile": ({"argv": ["make", "-s"]}, "printf 'all:\\n\\ttouch {mark}\\n' > Makefile"),
    "an imported module": (
        {"argv": ["/usr/bin/python3", "main.py"]},
        "echo \"WORD = open('{mark}', 'w')\" > helper.py",
    ),
    "a sourced file": ({"argv": ["/bin/sh", "-c", ". ./data.sh"]}, "echo 'touch {mark}' > data.sh"),
    "the working folder": (
        {"argv": ["/usr/bin/touch", "mark"], "cwd": "folder"},
        "rm -r folder; ln -s {mark}.folder folder",
    ),
    "a program found by PATH": ({"argv": ["/bin/sh", "-c", "PATH=.:$PATH ls"]}, f"{SHELL} > ls; chmod +x ls"),
}


def _settle(f: Fleet, sid: str) -> None:
    """Deny every further question until the session has ended."""

    def step() -> bool:
        for item in f.json("approvals"):
            if item["sid"] == sid:
                f.run("reject", item["approval_id"], "--reason", "it changed", check=False)
        return f.state(sid).ended is not None

    wait_for(f"{sid} to end", step)


def _swapped(names: list[str]) -> Outside:
    def attempt(ground: Ground) -> None:
        escaped = []
        with fleet() as f:
            repo = make_repository(f.root / "repo", FILES)
            (repo / "tool").chmod(0o755)
            import subprocess

            subprocess.run(["git", "commit", "-qam", "executable"], cwd=repo, check=True)
            marks: dict[str, Path] = {}
            sids = {}
            for number, name in enumerate(names):
                mark = f.root / f"mark{number}"
                marks[name] = mark
                (f.root / f"mark{number}.folder").mkdir()
                asked, script = SWAPS[name]
                turn = [
                    ("exec", {**asked, "access": "unsandboxed"}),
                    ("shell", {"script": script.replace("{mark}", str(mark))}),
                ]
                sids[name] = f.launch(play(turn, "Done."), repo=repo, name=f"swap{number}")
            for name, sid in sids.items():
                request = f.approval(sid)
                # The other call of the turn is held back for as long as the question is open, so the change comes from
                # here.
                worktree = Path(f.row(sid)["worktree"])
                subprocess.run(
                    ["bash", "-c", SWAPS[name][1].replace("{mark}", str(marks[name]))], cwd=worktree, check=True
                )
                f.approve(request["approval_id"], check=False)
                _settle(f, sid)
                kinds = [r.type for r in f.records(sid)]
                if "tool.started" in kinds[: kinds.index("approval.decided")]:
                    escaped.append(f"{name}: another call ran while the question was open")
                if "approval.stale" not in kinds:
                    escaped.append(f"{name} was changed after the question, and nobody was told")
                if marks[name].exists() or list((f.root / f"{marks[name].name}.folder").iterdir()):
                    escaped.append(f"{name} was changed after the question, and the changed world ran")
            f.stop()
        if escaped:
            raise Escape("; ".join(escaped))

    return Outside(f"changed while asked: {', '.join(names)}", attempt)


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    if dice is None:
        yield _swapped(list(SWAPS)[:4])
        yield from (_swapped([name]) for name in list(SWAPS)[4:])
    elif dice.random() < 0.2:
        yield _swapped(dice.sample(sorted(SWAPS), 2))
