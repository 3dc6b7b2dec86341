"""Requests that are alike form one item of the queue, and no request is ever lost in one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.screens.dialogs import together
from harness.policy.grants import likeness
from harness.views.session_views import ApprovalView
from tests.unit.test_grants import CRITICAL, PIP, PUSH, REQUESTS, act
from widgets.queue.queue_groups import alike, items


def view(name: str, like: str = "", same: str = "") -> ApprovalView:
    return ApprovalView(
        approval_id=name,
        sid="s",
        session_name=name,
        kind="tool",
        title="x",
        options=["allow"],
        risk="medium",
        ts="",
        seq=0,
        alike=like,
        same=same,
    )


views = st.lists(st.sampled_from(["", "one", "two"]), max_size=12).map(
    lambda likes: [view(f"a{n}", like) for n, like in enumerate(likes)]
)


@given(views, st.sets(st.sampled_from(["one", "two"])), st.integers(0, 12))
def test_every_request_has_its_line_or_its_group_has(shown: list[ApprovalView], unfolded: set[str], at: int) -> None:
    selected = f"a{at}"
    found = items(shown, unfolded, selected)
    lines = [item.view.approval_id for item in found]
    assert len(set(lines)) == len(lines)
    for one in shown:
        group = alike(shown, one.approval_id)
        assert one in group
        mine = [item for item in found if item.view in group]
        assert {item.size for item in mine} == {len(group)}
        assert len(mine) == (len(group) if one.alike in unfolded else 1)
        assert [item.inside for item in mine] == [False] + [True] * (len(mine) - 1)
    if any(one.approval_id == selected for one in shown):
        assert selected in lines, "folding hides no selection"
    firsts = [next(one.approval_id for one in shown if one in alike(shown, name)) for name in lines]
    assert firsts == sorted(firsts, key=lambda name: int(name[1:])), "a group stands where its first one stands"


@pytest.mark.parametrize(("tool", "asked"), REQUESTS)
def test_the_same_call_of_two_sessions_is_the_same_and_another_is_not(tool: str, asked: dict[str, object]) -> None:
    mine = likeness(act(tool, asked), "default", "medium")
    assert all(mine)
    assert mine == likeness(act(tool, asked, "s2", "c7.3", snapshot="s9.cc"), "default", "medium")
    assert mine != likeness(act(tool, asked), "the role worker: x", "medium")
    assert (
        mine[1] != likeness(act(tool, asked, env={"PATH": "/tmp"}, open_env={"PATH": "/tmp"}), "default", "medium")[1]
    )


def test_similar_is_not_the_same_and_other_commits_are_not_either() -> None:
    pip = likeness(act("exec", PIP), "default", "medium")
    flask = likeness(act("exec", {**PIP, "argv": ["pip", "install", "flask"]}), "default", "medium")
    assert (pip[0] == flask[0], pip[1] == flask[1]) == (True, False)
    assert pip[0] != likeness(act("exec", {**PIP, "hosts": ["x.test"]}), "default", "medium")[0]
    push = likeness(act("exec", PUSH), "default", "medium")
    other = likeness(act("exec", PUSH, commits={"HEAD": "b" * 40}), "default", "medium")
    assert (push[0] == other[0], push[1] == other[1]) == (True, False)


@pytest.mark.parametrize(("tool", "asked"), CRITICAL)
def test_what_is_critical_is_the_same_as_nothing(tool: str, asked: dict[str, object]) -> None:
    assert likeness(act(tool, asked), "default", "low")[1] == ""
    assert likeness(replace(act("exec", PIP), refused="never"), "default", "low") == ("", "")


def test_other_files_refs_and_words_behind_the_first_are_alike_and_other_kinds_are_not() -> None:
    def like(tool: str, asked: dict[str, object], **more: Any) -> str:
        return likeness(act(tool, asked, **more), "default", "medium")[0]

    assert like("read_file", {"path": "/etc/hostname"}) == like("read_file", {"path": "/etc/os-release"})
    assert like("read_file", {"path": "/etc/hostname"}) != like("write_file", {"path": "/etc/x", "content": ""})
    refs = {"refs/heads/a": "c" * 40, "refs/heads/b": "c" * 40}
    pushes = [{"argv": ["git", "push", "origin", f"HEAD:refs/heads/{name}"]} for name in "ab"]
    assert like("exec", pushes[0], remote_refs=refs) == like("exec", pushes[1], remote_refs=refs)
    hosts = {"access": "network", "hosts": ["pypi.org"]}
    scripts = ["pip install flask", "pip install requests", "pip download flask", "pip install flask\nrm x"]
    flask, other, download, more = (like("shell", {"script": script, **hosts}) for script in scripts)
    assert flask == other
    assert len({flask, download, more}) == 3
    assert flask != like("shell", {"script": "pip install flask", "access": "network", "hosts": ["x.test"]})
    assert flask != like("shell", {"script": "pip install flask", "access": "unsandboxed"})


def test_all_at_once_are_those_that_are_alike_and_not_critical() -> None:
    group = [view("a1", "g", "x"), view("a2", "g", "y"), view("a3", "g", "x"), view("a4", "g")]
    group = [replace_action(one) for one in group]
    assert [one.approval_id for one in together.chosen(group[2], group)] == ["a3", "a1", "a2"], "the same ones first"
    assert together.refusal(group[0], group) == ""
    assert "no other" in together.refusal(group[0], group[:1])
    assert "one by one" in together.refusal(group[3], group)
    unread = view("a5", "g", "x")
    assert "by itself" in together.refusal(unread, [unread, *group])
    assert unread not in together.chosen(group[0], [unread, *group])
    many = [replace_action(view(f"a{n}", "g", "x")) for n in range(1000)]
    assert len(together.chosen(many[500], many)) == together.MOST


def replace_action(one: ApprovalView) -> ApprovalView:
    return msgspec.structs.replace(one, action={"kind": "push"})


def test_a_job_is_not_like_a_call() -> None:
    call = act("exec", PIP)
    job = replace(call, outlives=True)
    assert likeness(call, "ask", "medium")[0] != likeness(job, "ask", "medium")[0]
