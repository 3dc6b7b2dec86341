"""What agents do all day inside the sandbox: 0 questions, whatever lies untracked in the worktree."""

from __future__ import annotations

from typing import Any

import pytest

from harness.events import types as t
from harness.policy.build import build_action
from harness.policy.decide import INSIDE, Verdict, decide
from harness.policy.policy_file import default_policy
from harness.protocol.config.sections import SandboxConfig
from harness.workspace.facts.gather import gather
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree import worktrees
from tests.fleetlib import fleet, play
from tests.process import everyday
from tests.process.undolib import repository

FILES: dict[str, bytes | str] = {
    "README.md": "# Thing\n",
    "src/a.txt": "alpha\n",
    "notes.txt": "keep\n",
    "Makefile": "all:\n\techo made\nclean:\n\trm -rf build\n",
    ".gitignore": "node_modules/\n.env\n",
}
CALLS: list[tuple[str, dict[str, Any]]] = [
    *(("shell", {"script": script}) for script in everyday.scripts()),
    *(("exec", {"argv": argv}) for argv in everyday.ARGVS),
    *everyday.FILE_CALLS,
]
_PART = 40


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Worktree:
    base = tmp_path_factory.mktemp("everyday")
    repo = repository(base / "repo", FILES)
    made = worktrees.create(
        repo,
        base / "state" / "worktrees" / "s1",
        "watchfloor/s1",
        base / "state" / "sessions" / "s1" / "git" / "private",
    )
    for name, text in everyday.UNTRACKED.items():
        (made.root / name).parent.mkdir(parents=True, exist_ok=True)
        (made.root / name).write_text(text)
    return made


def verdict(tree: Worktree, number: int, tool: str, given: dict[str, Any]) -> tuple[list[str], Verdict]:
    facts = gather(tree, tool, given, SandboxConfig(), (str(tree.private.parent.parent),))
    action = build_action("s1", f"c{number}.0", "toolu_1", tool, given, facts)
    return [str(effect) for effect in action.effects], decide(action, default_policy())


def test_the_corpus_is_large_enough() -> None:
    assert len({str(call) for call in CALLS}) >= 480


@pytest.mark.parametrize("start", range(0, len(CALLS), _PART))
def test_nobody_is_asked(tree: Worktree, start: int) -> None:
    asked = []
    for number, (tool, given) in enumerate(CALLS[start : start + _PART], start):
        effects, said = verdict(tree, number, tool, given)
        if effects or (said.verdict, said.rule) != ("allow", INSIDE):
            asked.append((given, effects, said))
    assert asked == []


@pytest.mark.parametrize(
    ("tool", "given", "named"),
    [
        ("shell", {"script": "ls", "access": "unsandboxed"}, "nothing limits what it does"),
        ("exec", {"argv": ["ls"], "access": "unsandboxed"}, "nothing limits what it does"),
        ("shell", {"script": "curl x", "access": "network"}, "any host"),
        (
            "exec",
            {"argv": ["pip", "install", "x"], "access": "network", "hosts": ["pypi.org", "files.pythonhosted.org"]},
            "reaches pypi.org over the network; reaches files.pythonhosted.org over the network",
        ),
        ("write_file", {"path": "/srv/outside/file", "content": "x"}, "/srv/outside/file, outside the worktree"),
        ("read_file", {"path": "/etc/hostname"}, "/etc/hostname, outside the worktree"),
    ],
)
def test_what_leaves_the_sandbox_asks_and_names_the_real_reason(
    tree: Worktree, tool: str, given: dict[str, Any], named: str
) -> None:
    """The corpus would pass with a policy that asks about nothing at all."""
    said = verdict(tree, 1, tool, given)[1]
    assert said.verdict == "ask"
    assert named in said.reason


@pytest.mark.sandbox
def test_a_real_session_runs_them_unasked() -> None:
    scripts = everyday.scripts()[:240:4]
    turns: list[Any] = [
        [("shell", {"script": script}) for script in scripts[i : i + 8]] for i in range(0, len(scripts), 8)
    ]
    setup = "\n".join(
        f"mkdir -p \"$(dirname '{name}')\"; printf '%s' '{text}' > '{name}'"
        for name, text in everyday.UNTRACKED.items()
        if "'" not in text
    )
    with fleet() as f:
        sid = f.launch(play([("shell", {"script": setup})], *turns, "All done."))
        f.wait_state(sid, "done", "failed", "blocked", "waiting", timeout=110)
        records = f.records(sid)
        assert [r.body for r in records if isinstance(r.body, t.ApprovalRequested)] == []
        ended = [r.body for r in records if isinstance(r.body, t.ToolEnded)]
        assert len(ended) == len(scripts) + 1
        assert {e.status for e in ended} <= {"ok", "error"}
        assert all(r.body.snapshot for r in records if isinstance(r.body, t.ToolStarted)), (
            "each has the state before it kept"
        )
        assert f.violations() == []
