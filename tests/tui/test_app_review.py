"""The review: files and hunks at every size, viewed marks, comments that are sent back and never lost."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from app.review import publishing, review_store
from app.review.comments import Anchor, Comment, Review
from app.screens.review import ReviewScreen
from harness.events import types as t
from tests.tui.app_pilot import SIZES, Shown, shown
from tests.tui.app_world import World
from widgets.base.palette import palette

HOSTILE = "evil\x1b[2J[bold]\u202ename.py"
PATCH = f"""diff --git a/src/cart.py b/src/cart.py
--- a/src/cart.py
+++ b/src/cart.py
@@ -1,3 +1,3 @@ def total():
 first
-    return 1
+    return 2 \x1b[31mred
 last
@@ -40,1 +40,2 @@
 far
+{"long " * 60}tail
diff --git a/{HOSTILE} b/{HOSTILE}
--- /dev/null
+++ b/{HOSTILE}
@@ -0,0 +1,1 @@
+hello
"""
FILES = [
    {"path": "src/cart.py", "status": "modified", "added": 2, "removed": 1},
    {"path": HOSTILE, "status": "untracked", "added": 1, "removed": 0},
    {"path": "logo.png", "status": "added", "added": None, "removed": None},
]


def done(world: World) -> None:
    session = world.add("cart")
    session.diff = {"files": FILES, "patch": PATCH}
    world.log(session, t.SessionEnded(outcome="done", verified=True))


def running(world: World) -> None:
    world.add("cart").diff = {"files": FILES, "patch": PATCH}


def at(s: Shown) -> ReviewScreen:
    assert isinstance(s.app.screen, ReviewScreen)
    return s.app.screen


async def opened(s: Shown) -> None:
    await s.press("d")
    await s.see("Review cart", "0 of 3 viewed", "return 2")


async def write(s: Shown, text: str) -> None:
    await s.press("c")
    await s.see("Comment on")
    await s.press(*("space" if c == " " else c for c in text), "ctrl+y")
    await s.until("the review", lambda: isinstance(s.app.screen, ReviewScreen))


async def test_what_was_said_and_viewed_outlives_the_screen(tmp_path: Path) -> None:
    def left(world: World) -> None:
        done(world)
        (session,) = world.sessions.values()
        before = Review(comments={Anchor("src/cart.py", 2): Comment("an earlier evening's", "    return 2")})
        review_store.store(world.folders.state, session.sid, before)

    async with shown(tmp_path, left) as s:
        await s.see("cart")
        await s.press("M")
        await s.see("1 comment of yours not sent back")
        await s.press("escape")
        await opened(s)
        await s.see("1 comment to send back")
        await s.press("space", "left_square_bracket")
        await write(s, "and now")
        state = s.world.folders.state
        sid = at(s).sid
        kept = review_store.load(state, sid)
        assert kept == at(s).review
        assert {one.text for one in kept.comments.values()} == {"an earlier evening's", "and now"}
        assert kept.viewed
        await s.press("space", "s")
        await s.see("Send back")
        await s.press("ctrl+y")
        await s.until("it is sent", lambda: s.world.of("continue"))
        await s.until("nothing is kept", lambda: not review_store.load(state, sid).comments)


async def test_where_it_touches_how_tests_are_run_is_named_here_and_where_it_is_merged(tmp_path: Path) -> None:
    def touching(world: World) -> None:
        done(world)
        (session,) = world.sessions.values()
        names = ["conftest.py", *(f"src/m{n}.py" for n in range(5))]
        touches = [{"path": name, "line": 3, "why": "ends the process"} for name in names]
        session.diff = {"files": FILES, "patch": PATCH, "touches": touches}

    async with shown(tmp_path, touching) as s:
        await s.see("cart")
        await opened(s)
        told = ("touches how tests are found, run, compared or ended", "conftest.py:3: ends the process", "and 2 more")
        await s.see(*told)
        await s.press("M")
        await s.see("Merge", *told)


@pytest.mark.parametrize(
    "found", [b"", b"[]", b"{", b"\xff", b'{"viewed": {}, "comments": [[{}, {}]]}', b"[" * 100_000]
)
def test_a_review_that_cannot_be_read_counts_as_none(tmp_path: Path, found: bytes) -> None:
    (tmp_path / "reviews").mkdir()
    (tmp_path / "reviews/s1.json").write_bytes(found)
    assert review_store.load(tmp_path, "s1") == Review()
    assert review_store.load(tmp_path, "s2") == Review()


@pytest.mark.parametrize("size", SIZES)
async def test_files_lines_and_marks_at_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, done, size=size) as s:
        await opened(s)
        await s.see("src/cart.py", "logo.png", "@@ -1,3 +1,3 @@", "evil␛[2J[bold]")
        line = next(line for line in s.grid if "return 2" in line)
        assert ("return 1" in line) == (size[0] == 200), "side by side when wide"
        assert "\x1b" not in s.text
        assert "\u202e" not in s.text
        await s.press("n", "n")
        assert at(s).file is not None
        assert at(s).view.at == at(s).files[0].changes[1]
        await s.press("n")
        await s.see("+hello")
        await s.press("n")
        await s.see("of this file no lines were read")
        await s.press("n")
        assert at(s).file == at(s).files[2]
        await s.press("p", "p")
        assert at(s).view.at == at(s).files[0].changes[1]
        await s.press("G", *["right"] * 30)
        await s.until("the end of the long line", lambda: "tail" in s.text or at(s).view.at == 9)
        await s.press("left_square_bracket", "space")
        await s.see("1 of 3 viewed", "✓ src/cart.py", "+hello")
        await s.press("space", "space")
        await s.see("3 of 3 viewed")
        await s.press("escape", "d")
        await s.see("3 of 3 viewed")
        assert s.app.no_control.hits == 0
        assert len(s.grid) == size[1]
        assert palette(at(s).view)


async def test_comments_go_back_to_an_ended_session_which_goes_on(tmp_path: Path) -> None:
    async with shown(tmp_path, done) as s:
        await opened(s)
        await s.press("slash")
        await s.see("Search in")
        await s.press(*"return", "enter", "f")
        await s.until("the second hit", lambda: at(s).file and at(s).files[0].rows[at(s).view.at].role == "add")
        await write(s, "two is wrong")
        await s.see("1 comment to send back", "✎", "two is wrong")
        await s.press("escape", "d")
        await s.see("1 comment to send back")
        await s.press("s")
        await s.see("Send back to", "It goes on with this", "src/cart.py, line 2", "two is wrong")
        assert not s.world.of("continue")
        await s.press("enter")
        assert not s.world.of("continue"), "only the chord sends"
        await s.press("ctrl+y")
        await s.see("has your comments")
        (sent,) = s.world.of("continue")
        assert "src/cart.py, line 2\n   > +    return 2 ␛[31mred\n   two is wrong" in sent["text"]
        assert not at(s).review.comments
        assert "to send back" not in s.text


async def test_a_refused_message_loses_no_comment_and_a_running_one_is_told(tmp_path: Path) -> None:
    async with shown(tmp_path, running) as s:
        await opened(s)
        await write(s, "why")
        await s.press("s")
        await s.see("It reads this at its next turn")
        s.world.refuse["say"] = {"code": "ended", "message": "cart has ended \x1b[2J"}
        await s.press("ctrl+y")
        await s.see("your comments stay")
        assert at(s).review.comments
        assert "\x1b" not in s.text
        s.world.refuse.clear()
        await s.press("s")
        await s.see("It reads this at its next turn")
        await s.press("ctrl+y")
        await s.see("has your comments")
        assert "src/cart.py\n   why" in s.world.of("say")[-1]["text"]


async def test_a_session_without_changes_says_so(tmp_path: Path) -> None:
    async with shown(tmp_path, lambda world: world.add("empty")) as s:
        await s.press("d")
        await s.see("it changed nothing")
        for key in ("n", "c", "space", "f"):
            await s.press(key)
            await s.see("there is nothing to look at")


async def test_words_of_ones_own_go_to_it_without_a_comment(tmp_path: Path) -> None:
    async with shown(tmp_path, done) as s:
        await opened(s)
        assert ("review.send", "s", "continue") in s.help
        await s.press("s")
        await s.see("Continue cart", "It ended done")
        await s.press("g", "o", "ctrl+y")
        await s.until("it is sent", lambda: s.world.of("continue"))
        assert s.world.of("continue")[0]["text"] == "go"


async def test_words_to_a_running_one_that_are_refused_are_still_there(tmp_path: Path) -> None:
    async with shown(tmp_path, running) as s:
        await opened(s)
        assert ("review.send", "s", "say") in s.help
        await s.press("s")
        await s.see("It reads this at its next turn")
        s.world.refuse["say"] = {"code": "ended", "message": "cart has ended"}
        await s.press("h", "o", "ctrl+y")
        await s.see("your words were not sent", "ho")
        s.world.refuse.clear()
        await s.press("ctrl+y")
        await s.see("has your words")
        assert s.world.of("say")[-1]["text"] == "ho"


def with_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, code: int) -> Path:
    """A ``gh`` in PATH, and a verb that notes what it was asked, and says this; where it notes."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "gh").write_text("#!/bin/sh\n")
    (folder / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    noted = tmp_path / "asked"
    verb = folder / "verb.py"
    verb.write_text(
        f"import json, os, sys, time\nopen({str(noted)!r}, 'a').write(json.dumps(sys.argv[1:]) + chr(10))\n"
        "given = dict(one[2:].split('=') for one in sys.argv if one[:2] == '--' and '=' in one)\n"
        f"while '--dry-run' in sys.argv and os.path.exists({str(tmp_path / 'hold')!r}): time.sleep(0.01)\n"
        "if given.get('remote') == 'nowhere': sys.exit('there is no remote nowhere')\n"
        f"moved = {str(tmp_path / 'moved')!r}\nat = open(moved).read() if os.path.exists(moved) else 'origin'\n"
        f"shown = 'would push 1 commit to ' + given.get('as', 'b') + ' at ' + at + chr(10) + {HOSTILE!r}\n"
        f"dry = '--dry-run' in sys.argv\nprint(shown if dry else {says!r})\nsys.exit(0 if dry else {code})\n"
    )
    monkeypatch.setattr(publishing, "COMMAND", (sys.executable, str(verb)))
    return noted


def sent(noted: Path) -> list[list[str]]:
    """What the verb was asked beyond showing what would be done."""
    asked = [json.loads(line) for line in noted.read_text().splitlines()] if noted.exists() else []
    return [one for one in asked if publishing.PREVIEW not in one]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("code", [0, 1])
async def test_the_work_is_published_from_the_review(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], code: int
) -> None:
    noted = with_program(tmp_path, monkeypatch, "request opened: https://x.test/7" if code == 0 else "no way", code)
    (tmp_path / "world").mkdir()
    async with shown(tmp_path / "world", done, size=size) as s:
        await opened(s)
        await s.press("P")
        await s.see("Publish cart", "would push 1 commit to b at origin", "evil␛[2J[bold]", "Remote", "Draft")
        assert all(len(line) <= size[0] for line in s.grid)
        await s.press(*"-x", "tab", *"side", "enter")
        await s.see("would push 1 commit to side at origin")
        assert sent(noted) == [], "only the chord sends"
        await s.press("ctrl+y")
        await s.see("https://x.test/7" if code == 0 else "no way")
        (session,) = s.world.sessions
        seen = f"--seen={s.world.seen(session)}"
        asked = [["--title=-x", "--as=side", "--remote=origin", seen]]
        assert [one[:-3] for one in sent(noted)] == asked
        shown_then = sent(noted)[0][-3]
        assert re.fullmatch("--shown=[0-9a-f]{64}", shown_then), "it sends what was shown, or nothing"
        if code:
            await s.see("would push 1 commit to side at origin", "no way")
            (tmp_path / "moved").write_text("elsewhere")
            await s.press("ctrl+y")
            await s.until("it was tried again", lambda: len(sent(noted)) == 2)
            assert sent(noted)[1][-3] == shown_then, "it is the verb that knows of a move"
            await s.see("would push 1 commit to side at elsewhere", "no way")
            await s.press("ctrl+y")
            await s.until("it was tried with what is shown now", lambda: len(sent(noted)) == 3)
            assert sent(noted)[2][-3] != shown_then
        assert s.app.no_control.hits == 0


async def test_nothing_is_sent_but_what_was_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = with_program(tmp_path, monkeypatch, "request opened: https://x.test/7", 0)
    hold = tmp_path / "hold"
    (tmp_path / "world").mkdir()
    async with shown(tmp_path / "world", done) as s:
        await opened(s)
        hold.touch()
        await s.press("P", "ctrl+y")
        await s.see("nothing was sent: first read")
        hold.unlink()
        await s.see("would push 1 commit to b at origin")

        hold.touch()
        await s.press("tab", *"side")
        await s.until("the old lines are gone", lambda: "would push" not in s.text)
        await s.press("ctrl+y")
        await s.see("nothing was sent: first read")
        hold.unlink()
        await s.see("would push 1 commit to side at origin")

        await s.press("tab", "tab", "tab", *["backspace"] * len("origin"), *"nowhere")
        await s.see("there is no remote nowhere")
        assert "would push" not in s.text
        await s.press("ctrl+y")
        await s.see("nothing was sent: first read")
        assert sent(noted) == []

        await s.press(*["backspace"] * len("nowhere"), *"up")
        await s.see("would push 1 commit to side at origin")
        await s.press("ctrl+y")
        await s.see("https://x.test/7")
        assert [one[:2] for one in sent(noted)] == [["--as=side", "--remote=up"]]


@pytest.mark.parametrize("forge", [True, False])
async def test_what_cannot_be_published_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forge: bool) -> None:
    (tmp_path / "world").mkdir()
    if forge:
        with_program(tmp_path, monkeypatch, "", 0)
    else:
        monkeypatch.setenv("PATH", str(tmp_path))

    def two(world: World) -> None:
        done(world)
        running(world)
        world.log(world.add("idle"), t.SessionEnded(outcome="done", verified=True))

    why = {"cart": "" if forge else "neither gh nor glab is in PATH", "idle": "there is nothing to publish"}
    async with shown(tmp_path / "world", two, size=(200, 50)) as s:
        for session in list(s.world.sessions.values()):
            s.app.open_review(session.sid)
            await s.until("the review", lambda: isinstance(s.app.screen, ReviewScreen))
            await s.until("it was read", lambda: "reading" not in s.text)
            said = at(s).why_not("review.publish")
            expected = why[session.state.name] if session.state.terminal else "has not ended"
            assert (expected in said) if expected else not said
            greyed = {entry.action for entry in at(s).help_entries() if entry.why}
            assert ("review.publish" in greyed) == bool(said)
            await s.press("escape")


async def test_a_line_says_which_call_wrote_it_and_why(tmp_path: Path) -> None:
    def written(world: World) -> None:
        session = world.add("cart")
        session.diff = {"files": FILES, "patch": PATCH}
        edit = {"path": "src/cart.py", "old": "return 1", "new": "    return 2 \x1b[31mred"}
        call = f"c{session.writer.head - 1}.0"
        world.log(
            session, t.ToolProposed(call_id=call, tool="edit_file", ref="r", input=edit, claim="two \x1b[2Jcarts")
        )
        world.log(session, t.ToolStarted(call_id=call, action_hash="0" * 64, effect="contained"))
        world.log(session, t.ToolEnded(call_id=call, status="ok", preview="edited", files_changed=["src/cart.py"]))
        world.log(session, t.SessionEnded(outcome="done", verified=True))

    async with shown(tmp_path, written) as s:
        await s.see("cart")
        await opened(s)
        file = at(s).file
        assert file is not None
        added = next(n for n, row in enumerate(file.rows) if row.role == "add")
        await s.press(*["down"] * (added - at(s).view.at))
        await s.press("i")
        await s.see("Why", "the agent says: two")
        await s.press("escape")
        await s.press("right_square_bracket", "i")
        await s.see("no call of this session is known")
