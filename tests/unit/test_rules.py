"""A project's own rules (``AGENTS.md``, ``CLAUDE.md``): the root's and those nearest to what was edited are in the next
request, and nothing that they say is heeded by the harness.
"""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.agents import steps
from harness.brain.context.project_rules import MOST_BYTES, layer
from harness.brain.context.sizes import Sizes
from harness.events import types as t
from harness.projections.state import project_rules
from harness.supervisor.calls.repository.project_rules import read
from harness.workspace.tree.project_rules_files import MOST_SHOWN
from tests.unit.test_brain_loop import World, shape, use
from tests.unit.test_context import size_of, work

FOLDERS = ("", "a", "a/b", "a/b/c", "a/d", "e")
PATHS = st.builds(lambda folder, name: f"{folder}/{name}".lstrip("/"), st.sampled_from(FOLDERS), st.sampled_from("xy"))
KNOWN = st.sets(
    st.builds(
        lambda folder, name: f"{folder}/{name}".lstrip("/"),
        st.sampled_from(FOLDERS),
        st.sampled_from(project_rules.NAMES),
    )
)


def ruled(path: str, text: str = "") -> t.RulesRead:
    said = text or f"The rules of {path}."
    return t.RulesRead(path=path, sha=hashlib.sha256(said.encode()).hexdigest(), bytes=len(said.encode()), text=said)


def shown(w: World) -> str:
    return "\n".join(str(block.get("text", "")) for message in shape(w.view) for block in message["content"])


def edit(w: World, number: int, path: str) -> None:
    w.ask()
    w.reply("tool_use", use(number, "write_file", path=path, content="x"), usage=t.Usage(input=size_of(w), output=60))
    w.end(w.propose()[0], files=[path])


def test_agents_md_edit_under_a_b_shows_its_rules_and_not_a_siblings() -> None:
    known = ["AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md", "a/c/AGENTS.md", "a/b/CLAUDE.md"]
    w = World(goal="  the *goal*  ")
    w.put(t.RulesKnown(paths=known), ruled("AGENTS.md"))
    assert shape(w.view)[0]["content"][0]["text"] == "  the *goal*  ", "the goal stays first and verbatim"
    assert "The rules of AGENTS.md." in shown(w)
    edit(w, 1, "a/b/x.py")
    assert isinstance(w.step(), steps.Wait), "nobody thinks on before the rules are read"
    assert w.view.state.rules.due == ("a/b/AGENTS.md", "a/b/CLAUDE.md")
    w.put(ruled("a/b/AGENTS.md"), ruled("a/b/CLAUDE.md"))
    w.ask()
    assert "The rules of a/b/AGENTS.md." in shown(w)
    assert "The rules of a/c/AGENTS.md." not in shown(w)
    assert "The rules of a/AGENTS.md." not in shown(w), "the nearest one counts"


def run(w: World, number: int, *worked: str) -> None:
    """A command, before which these files are seen to have changed since the call before."""
    w.ask()
    w.reply("tool_use", use(number, "exec", argv=["x"]), usage=t.Usage(input=size_of(w), output=60))
    (call,) = w.propose()
    w.put(
        t.ToolStarted(
            call_id=call,
            action_hash="",
            effect="contained",
            snapshot=f"s{number}",
            worked=len(worked),
            worked_names=[*worked],
        ),
        t.ToolEnded(call_id=call, status="ok"),
    )


def test_agents_md_what_a_command_edits_shows_its_rules_too_and_nothing_is_read_twice() -> None:
    w = World()
    w.put(t.RulesKnown(paths=["a/b/AGENTS.md", "a/c/AGENTS.md"]))
    run(w, 1)
    run(w, 2, "a/b/x.py")
    assert w.view.state.rules.due == ("a/b/AGENTS.md",)
    w.put(ruled("a/b/AGENTS.md"))
    run(w, 3, "a/b/y.py")
    assert not w.view.state.rules.due
    edit(w, 4, "a/b/AGENTS.md")
    assert w.view.state.rules.due == ("a/b/AGENTS.md",)
    w.put(ruled("a/b/AGENTS.md", "Other rules."))
    run(w, 5, "a/b/AGENTS.md")
    assert not w.view.state.rules.due, "the tool had said so"
    run(w, 6, "a/b/AGENTS.md")
    assert w.view.state.rules.due == ("a/b/AGENTS.md",), "a command wrote it"


def test_rules_stand_in_a_context_that_begins_anew_once_each() -> None:
    w = World(sizes=Sizes(working=20_000))
    w.put(t.RulesKnown(paths=["AGENTS.md", "src/CLAUDE.md"]), ruled("AGENTS.md"))
    edit(w, 1, "src/x.py")
    w.put(ruled("src/CLAUDE.md"))
    rng = random.Random(3)
    for turn in range(2, 60):
        work(w, turn, rng)
    assert any(isinstance(r.body, t.ContextReset) for r in w.records)
    for path in ("AGENTS.md", "src/CLAUDE.md"):
        assert shown(w).count(f"The rules of {path}.") == 1


def test_rules_that_the_agent_edits_are_read_again_and_gone_ones_are_told() -> None:
    w = World()
    w.put(t.RulesKnown(paths=["AGENTS.md"]), ruled("AGENTS.md"))
    edit(w, 1, "AGENTS.md")
    assert w.view.state.rules.due == ("AGENTS.md",)
    w.put(ruled("AGENTS.md", "Other words."))
    assert "Other words." in shown(w)
    edit(w, 2, "new/CLAUDE.md")
    assert w.view.state.rules.due == ("new/CLAUDE.md",), "a file of its own counts too"
    w.put(t.RulesRead(path="new/CLAUDE.md"))
    assert "gone" in shown(w)
    assert not w.view.state.rules.due


@given(KNOWN, st.lists(PATHS, max_size=12))
def test_what_is_due_is_known_nearest_and_asked_for_once(known: set[str], edits: list[str]) -> None:
    state = project_rules.Rules().at_start(sorted(known))
    seen: list[str] = []
    for path in ("", *edits):
        state = state.edited([path]) if path else state
        for due in state.due:
            assert due in known
            assert due not in seen
            seen.append(due)
            state = state.taken(ruled(due))
        folder = path.rpartition("/")[0]
        for near in project_rules.nearest(known, folder):
            assert near in state.read
            above = near.rpartition("/")[0]
            assert folder == above or folder.startswith(f"{above}/" if above else "")
    assert not state.due


@given(st.lists(st.tuples(st.sampled_from(FOLDERS), st.text(min_size=1, max_size=MOST_SHOWN)), max_size=12))
def test_the_layer_is_bounded_and_names_what_it_quotes(files: list[tuple[str, str]]) -> None:
    read_now = {f"{folder}/AGENTS.md".lstrip("/"): text for folder, text in files}
    found = layer(ruled(path, text) for path, text in read_now.items())
    assert len(found.encode("utf-8", "replace")) <= MOST_BYTES + 600 * len(read_now)
    for path, text in read_now.items():
        again = any(path != other and text == words for other, words in read_now.items())
        assert f"--- {path}" in found or again, "each is quoted or named, the same words once"
    assert bool(found) == bool(read_now)


def test_a_hostile_worktree_gives_no_rules_from_elsewhere(tmp_path: Path) -> None:
    root = tmp_path / "worktree"
    (root / "a").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (root / "AGENTS.md").symlink_to("../secret")
    (root / "link").symlink_to("..")
    os.mkfifo(root / "CLAUDE.md")
    (root / "a" / "AGENTS.md").write_text("é" * MOST_SHOWN)
    reasons = {
        "AGENTS.md": "outside the worktree",
        "CLAUDE.md": "no file",
        "link/secret": "outside the worktree",
        "../secret": "outside the worktree",
        "a": "no file",
    }
    for path, why in reasons.items():
        assert read(root, path) == t.RulesRead(path=path, left_out=[f"{path}: {why}"])
    assert read(root, "none.md") == t.RulesRead(path="none.md")
    large = read(root, "a/AGENTS.md")
    assert large.bytes == 2 * MOST_SHOWN
    assert large.sha == hashlib.sha256((root / "a" / "AGENTS.md").read_bytes()).hexdigest()
    assert len(large.text.encode()) <= MOST_SHOWN
