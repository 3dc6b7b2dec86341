"""Building actions: where files lead, what a push is, and that nothing of the agent's claim enters."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from harness.domain.actions.action import InputBlob, action_hash
from harness.domain.actions.destination import LocalRemote, Named
from harness.domain.addresses import strip_credential
from harness.policy.build import build_action
from harness.policy.decide import Verdict, decide
from harness.policy.facts import Facts, SandboxFacts, Target
from harness.policy.policy_file import default_policy, parse_policy
from harness.policy.push import parse_push

HEAD = "a" * 40
NAMED = Named("work:x.git", "/home/me/x", configured=True)
TARGET = Target("https://host/x.git", NAMED, "/home/me/x/.git")


def facts(**changes: Any) -> Facts:
    base: dict[str, Any] = {
        "worktree": "/w/tree",
        "branch": "wf/x",
        "head": HEAD,
        "home": "/home/me",
        "remotes": {"origin": "https://me:secret@host/x.git", "backup": "/srv/b.git"},
        "target": TARGET,
        "commits": {"HEAD": HEAD, "main": "b" * 40},
        "remote_refs": {"refs/heads/main": "c" * 40},
        "sandbox": SandboxFacts(("/opt/x",), ("/w/tree",), (("/w/tree", "/w/tree", "rw"),)),
        "env": {"PATH": "/bin", "HOME": "/tmp/home"},
        "open_env": {"PATH": "/bin", "HOME": "/home/me"},
        "identity": {"dev": 1, "ino": 2},
    }
    return Facts(**{**base, **changes})


def act(tool: str, given: dict[str, Any], **changes: Any) -> tuple[dict[str, Any], Verdict]:
    action = build_action("sid", "c1.0", "toolu", tool, given, facts(**changes))
    action_hash(action.to_wire())
    return action.to_wire(), decide(action, default_policy())


def test_a_file_inside_is_contained_and_named_by_its_relative_path() -> None:
    action, verdict = act("write_file", {"path": "./src/../a.py", "content": "x", "why": "because"})
    assert (action["kind"], action["path"], action["access"], action["effects"]) == ("file", "a.py", "sandbox", [])
    assert verdict.verdict == "allow"
    assert "because" not in json.dumps(action)


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("../other", "/w/other"),
        ("/etc/hosts", "/etc/hosts"),
        ("~/.ssh/id", "/home/me/.ssh/id"),
        ("/w/treehouse", "/w/treehouse"),
    ],
)
@pytest.mark.parametrize(("tool", "risk"), [("read_file", "medium"), ("write_file", "high")])
def test_a_path_outside_asks_and_is_shown_where_it_leads(path: str, real: str, tool: str, risk: str) -> None:
    action, verdict = act(tool, {"path": path, "content": ""})
    assert (action["access"], action["outside"], action["effects"]) == ("outside", [real], [f"outside:{real}"])
    assert (verdict.verdict, verdict.risk) == ("ask", risk)


OWN = ("/home/me/.config/watchfloor", "/state", "/keys/anthropic")
OPEN = parse_policy('[[rule]]\nverdict = "allow"\neffect = "outside:*"\n', "policy.toml")


@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file", "list_files", "search"])
@pytest.mark.parametrize(
    "path",
    [
        "~/.config/watchfloor/policy.toml",
        "~/.config/watchfloor",
        "~/.config",
        "/state/sessions/x/log/000001.jsonl",
        "/keys/anthropic",
        "/keys",
        "/",
    ],
)
def test_no_policy_opens_what_is_watchfloors_own(tool: str, path: str) -> None:
    action = build_action(
        "sid",
        "c1.0",
        "toolu",
        tool,
        {"path": path, "content": "", "old": "a", "new": "b", "pattern": "x"},
        facts(own=OWN),
    )
    assert decide(action, OPEN).verdict == "deny"
    assert "Watchfloor" in action.refused


def test_what_lies_beside_our_own_is_not_ours() -> None:
    action = build_action("sid", "c1.0", "toolu", "read_file", {"path": "/keys/anthropic.pub"}, facts(own=OWN))
    assert decide(action, OPEN).verdict == "allow"


def test_a_link_that_leads_outside_counts_as_outside() -> None:
    action, verdict = act("write_file", {"path": "innocent", "content": ""}, resolved={"innocent": "/etc/cron.d/x"})
    assert action["outside"] == ["/etc/cron.d/x"]
    assert verdict.verdict == "ask"


@pytest.mark.parametrize("path", [".git", ".git/config", "sub/.git/hooks/x", ".GIT/config"])
def test_writing_below_git_is_denied(path: str) -> None:
    _, verdict = act("write_file", {"path": path, "content": ""})
    assert (verdict.verdict, verdict.rule) == ("deny", "refused")


@pytest.mark.parametrize(("access", "risk"), [("network", "medium"), ("unsandboxed", "critical")])
def test_leaving_the_sandbox_asks_with_preconditions(access: str, risk: str) -> None:
    shown = {
        "snapshot": "s1.00",
        "cwd_identity": {"dev": 1, "ino": 3},
        "program": {"path": "/usr/bin/make", "dev": 5, "ino": 6, "sha": "0" * 64},
    }
    action, verdict = act("exec", {"argv": ["make"], "access": access}, **shown)
    assert action["effects"] == [access]
    assert action["pre"] == {
        "files": {},
        "head": HEAD,
        "worktree": {"dev": 1, "ino": 2},
        "cwd": shown["cwd_identity"],
        "program": shown["program"],
        "snapshot": "s1.00",
    }
    assert (verdict.verdict, verdict.risk) == ("ask", risk)
    assert action["sandbox"]["sandboxed"] is (access == "network")
    assert action["env"]["HOME"] == ("/tmp/home" if access == "network" else "/home/me")


def test_a_working_folder_outside_is_refused() -> None:
    _, verdict = act("exec", {"argv": ["ls"], "cwd": "/"})
    assert verdict.verdict == "deny"


def test_a_large_input_stays_a_blob() -> None:
    action = build_action(
        "s",
        "c1.0",
        "t",
        "write_file",
        {"path": "a", "content": "x" * 100},
        facts(),
        input_blob=InputBlob("f" * 64, 130),
    ).to_wire()
    assert action["input_blob"] == {"sha": "f" * 64, "bytes": 130}
    assert "input" not in action


def test_the_plain_push_names_remote_commit_and_where_the_ref_was() -> None:
    action, verdict = act("exec", {"argv": ["git", "push", "-u", "origin", "HEAD:main"]})
    assert (action["kind"], action["access"], action["remote"]) == ("push", "push", "origin")
    assert action["refspecs"] == [[HEAD, "refs/heads/main", "c" * 40]]
    assert action["effects"] == ["push:origin refs/heads/main"]
    assert verdict.verdict == "ask"


def test_no_credential_reaches_the_action() -> None:
    action, _ = act("exec", {"argv": ["git", "push"]})
    assert action["url"] == "https://host/x.git"
    assert "not recorded" in action["note"]
    direct, _ = act(
        "exec", {"argv": ["git", "push", "https://you:pw@evil/x.git"]}, target=replace(TARGET, url="https://evil/x.git")
    )
    assert "secret" not in json.dumps(action)
    assert "pw" not in json.dumps(direct)
    assert direct["effects"] == ["push:https://evil/x.git refs/heads/wf/x"]


def test_what_a_push_rests_on_is_in_its_action() -> None:
    local = LocalRemote("/srv/x.git", ("pre-receive",), ())
    action, verdict = act(
        "exec",
        {"argv": ["git", "push"]},
        target=replace(TARGET, url="/srv/x.git", local=local, seen="work:x.git", others=1),
    )
    assert (action["url"], action["named"], action["local"], action["repository"]) == (
        "/srv/x.git",
        NAMED.to_wire(),
        local.to_wire(),
        "/home/me/x/.git",
    )
    assert action["pre"]["url"] == "work:x.git"
    assert "2 addresses" in action["note"]
    assert verdict.verdict == "ask"


@pytest.mark.parametrize("target", [None, replace(TARGET, refused="it is a folder that an agent can write")])
def test_a_push_that_leads_nowhere_known_is_denied(target: Target | None) -> None:
    _, verdict = act("exec", {"argv": ["git", "push"]}, target=target)
    assert (verdict.verdict, verdict.rule) == ("deny", "refused")


@pytest.mark.parametrize("flags", [["-f"], ["--force"], ["--force-with-lease"]])
def test_force_is_an_effect_of_its_own(flags: list[str]) -> None:
    action, verdict = act("exec", {"argv": ["git", "push", *flags]})
    assert action["effects"] == ["push:origin refs/heads/wf/x", "push-force"]
    assert action["force"] is True
    assert (verdict.verdict, verdict.risk) == ("ask", "high")
    assert act("exec", {"argv": ["git", "push", "origin", "+HEAD:main"]})[0]["force"] is True


NO_PUSH = """
--mirror | --all | --tags | nowhere | origin unknown | origin :main | --delete origin main | --receive-pack=x | ext::sh
| origin HEAD:refs/heads/../x | origin HEAD: | -x | origin HEAD:-x | -o ci.skip
"""


@pytest.mark.parametrize("words", [part.split() for part in NO_PUSH.split("|")])
def test_what_is_no_plain_push_is_refused(words: list[str]) -> None:
    _, verdict = act("exec", {"argv": ["git", "push", *words]})
    assert (verdict.verdict, verdict.rule) == ("deny", "refused")


def test_a_push_inside_a_larger_script_is_nothing_special() -> None:
    tree = {"Type": "File", "Stmts": [{}, {}]}
    action, verdict = act("shell", {"script": "make && git push"}, tree=tree)
    assert (action["kind"], action["effects"], verdict.verdict) == ("shell", [], "allow")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://u:p@h:8443/x", "https://h:8443/x"),
        ("ssh://git:p@h/x", "ssh://git@h/x"),
        ("ssh://git@h/x", "ssh://git@h/x"),
        ("git@h:x.git", "git@h:x.git"),
        ("/srv/a@b/x", "/srv/a@b/x"),
        ("file:///srv/a@b", "file:///srv/a@b"),
        ("https://[broken", "https://[broken"),
    ],
)
def test_credentials_are_stripped_from_addresses(url: str, shown: str) -> None:
    assert strip_credential(url)[0] == shown


def test_options_end_where_git_ends_them() -> None:
    assert parse_push(["git", "push", "--", "-x"], "b").refused
    assert parse_push(["git", "push", "--", "origin", "HEAD"], "b").specs == (("HEAD", "refs/heads/b", False),)


@pytest.mark.parametrize("tool", ["exec", "shell", "write_file"])
def test_what_cannot_be_undone_asks_and_says_why(tool: str) -> None:
    given = {
        "exec": {"argv": ["rm", "-r", "x"]},
        "shell": {"script": "rm -r x"},
        "write_file": {"path": "x", "content": ""},
    }[tool]
    assert act(tool, given)[1].verdict == "allow"
    action, verdict = act(tool, given, unprotected="the tree holds more than 1000000 names")
    assert (action["effects"], action["unprotected"], verdict.verdict) == (
        ["no-undo"],
        "the tree holds more than 1000000 names",
        "ask",
    )
    assert "cannot be undone" in verdict.reason


def test_names_that_are_no_text_are_shown_escaped_or_refused() -> None:
    action, verdict = act("read_file", {"path": "link"}, resolved={"link": "/x/\udcff"})
    assert (action["outside"], verdict.verdict) == (["/x/\\udcff"], "deny")
