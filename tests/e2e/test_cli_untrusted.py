"""Every verb of the command line, fed with text that acts on terminals: nothing but printable text and line feeds may
come out.
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from app.cli.base.output import escaped
from tests.fleetlib import Fleet, fleet, git, make_repository, play

CLIP = "\x1b]52;c;aGk=\x07"
TITLE = "\x1b]0;owned\x1b\\"
QUERY = "\x1b[6n\x1b[c"
C1 = "\x9b31m\x9d0;x\x9c"
BIDI = "\u202e\u2066abc\u2069"
HIDDEN = "a\u200bb\u2060\ufeff\U000e0041"
BLANK = "\u3164\u2800" + " " * 12
HOSTILE = f"x{CLIP}{TITLE}{QUERY}{C1}{BIDI}{HIDDEN}{BLANK}\x7f\x08\r\u2028y"
FILE_NAME = f"f{CLIP}{C1}{BIDI}{HIDDEN}\x7f\r\ny".replace("/", "")
NAME = f"n{BIDI}{HIDDEN}\x7f\x9b31m"
BRANCH = "b\u202e\u200b\u009b31m"


def assert_clean(text: str, what: object) -> None:
    bad = {
        f"U+{ord(c):04X}"
        for c in text
        if c != "\n" and (unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") or c in "\u3164\u2800")
    }
    assert not bad, (what, bad)


def run(f: Fleet, *args: str, code: int | None = None) -> str:
    done = f.run(*args, check=False)
    if code is not None:
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    for stream in (done.stdout, done.stderr):
        assert_clean(stream, args)
        assert "Traceback" not in stream, (args, stream)
    return done.stdout + done.stderr


def both(f: Fleet, *args: str, code: int | None = 0) -> str:
    """With and without ``--json``; each line of the JSON form must be JSON."""
    for line in run(f, *args, "--json", code=code).splitlines():
        if code in (0, 1):
            json.loads(line)
    return run(f, *args, code=code)


def hostile_repository(path: Path) -> Path:
    make_repository(path, {"README.md": HOSTILE, FILE_NAME: HOSTILE})
    git(path, "commit", "-q", "--allow-empty", "-m", HOSTILE)
    git(path, "checkout", "-q", "-b", BRANCH)
    return path


def test_every_verb_prints_display_text_only() -> None:
    with fleet() as f:
        repo = hostile_repository(f.root / f"repo{NAME}")
        steps = play(
            [("write_file", {"path": FILE_NAME, "content": f"{HOSTILE}\n", "why": HOSTILE})],
            [("shell", {"script": f"printf %s '{HOSTILE}'; git commit -qam '{HOSTILE}'; exit 3"})],
            [("exec", {"argv": ["curl", HOSTILE], "access": "network", "why": HOSTILE})],
            [("read_file", {"path": f"/etc/{HOSTILE}", "why": HOSTILE})],
            [("exec", {"argv": ["curl", HOSTILE], "access": "network", "why": HOSTILE})],
            [("no\u200btool", {})],
            HOSTILE,
        )
        sid = f.launch(
            f"{HOSTILE} {steps}",
            repo=repo,
            name=NAME,
            checks=(f"false '{HOSTILE}'",),
            more=("--model", "claude-haiku-5-5"),
        )
        first = f.approval(sid)
        look = (("ls",), ("show", sid), ("logs", sid), ("approvals",), ("diff", sid), ("cost",))
        for args in look:
            both(f, *args)
        both(f, "defer", first["approval_id"])
        both(f, "say", sid, HOSTILE)
        assert "curl" in run(f, "approvals", code=0)
        run(f, "reject", first["approval_id"], "--reason", HOSTILE, code=0)
        f.wait_event_count(sid, "approval.requested", 2)
        second = f.approval(sid)
        run(f, "answer", second["approval_id"], HOSTILE, code=0)
        both(f, "approve", second["approval_id"], "--choose", HOSTILE, code=4)
        f.wait_event_count(sid, "approval.requested", 3)
        third = f.approval(sid)
        both(f, "pause", sid, "--reason", HOSTILE)
        both(f, "resume", sid, "--reason", HOSTILE)
        run(f, "reject", third["approval_id"], "--reason", HOSTILE, code=0)
        f.wait_state(sid, "failed")
        both(f, "resume", sid, "--reason", HOSTILE, code=5)
        both(f, "stop", sid, "--reason", HOSTILE, code=5)
        for args in (*look, ("verify",), ("verify", sid), ("supervisor", "status")):
            both(f, *args)
        run(f, "logs", sid, "--after", "1", code=0)
        logged = [json.loads(line) for line in f.run("logs", sid, "--json").stdout.splitlines()]
        assert any(
            r["data"].get("content") == [{"type": "text", "text": HOSTILE}] or HOSTILE in str(r["data"].get("goal"))
            for r in logged
        )
        assert any(r.type == "session.desired" for r in f.records(sid))
        both(f, "rm", sid, code=None)
        both(f, "rm", sid, "--keep-as-ref", code=None)


def test_every_error_prints_display_text_only(tmp_path: Path) -> None:
    with fleet() as f:
        f.run("supervisor", "start")
        (tmp_path / NAME).mkdir()
        wrong: list[tuple[str, ...]] = [
            (HOSTILE,),
            ("ls", HOSTILE),
            (f"--{HOSTILE}",),
            ("supervisor", HOSTILE),
            ("completion", HOSTILE),
            ("logs", "x", "--after", HOSTILE),
            ("launch", "--goal", "g", "--cap-tokens", HOSTILE),
            ("launch", "--goal", "g", "--cap-usd", HOSTILE),
            ("launch", "--goal", "g", "--cap-wall", HOSTILE),
            ("launch", "--goal", "g", "--repo", str(tmp_path / NAME)),
            ("launch", "--goal", "g", "--repo", f"/{HOSTILE}"),
            ("launch", "--goal", "g", "--name", HOSTILE, "--repo", str(f.repository())),
            ("launch", "--goal-file", f"/{HOSTILE}"),
            ("show", HOSTILE),
            ("logs", HOSTILE),
            ("diff", HOSTILE),
            ("say", HOSTILE, HOSTILE),
            ("stop", HOSTILE),
            ("rm", HOSTILE),
            ("verify", HOSTILE),
            ("approve", HOSTILE),
            ("approve", HOSTILE, "--edit", HOSTILE),
            ("reject", HOSTILE, "--reason", HOSTILE),
            ("answer", HOSTILE, HOSTILE),
            ("defer", HOSTILE),
            ("attach", HOSTILE),
        ]
        for args in wrong:
            done = f.run(*args, check=False)
            assert done.returncode != 0, args
            for stream in (done.stdout, done.stderr):
                assert_clean(stream, args)
                assert "Traceback" not in stream, (args, stream)
        config = f.folders.config_file.read_text()
        for text in (
            f"[model]\n{json.dumps(HOSTILE)} = 3\n",
            f"[{json.dumps(HOSTILE)}]\n",
            '[model]\ndefault = "\x1b"\n',
            f"[ui.keys]\n{json.dumps(HOSTILE)} = {json.dumps(HOSTILE)}\n",
        ):
            f.folders.config_file.write_text(text)
            for args in (("doctor",), ("keys",), ("launch", "--goal", "g", "--repo", str(f.repository()))):
                run(f, *args)
        f.folders.config_file.write_text(config)
        f.folders.policy_file.write_text(f"[[rule]]\nverdict = {json.dumps(HOSTILE)}\n")
        run(f, "doctor")


def test_a_damaged_log_and_a_strange_record_are_shown_as_text() -> None:
    with fleet() as f:
        sid = f.launch(play("Done."))
        f.wait_state(sid, "done")
        f.run("supervisor", "stop")
        segment = next(f.folders.session(sid).log.glob("*.jsonl"))
        raw = segment.read_bytes()
        middle = raw.index(b"\n", len(raw) // 2) + 5
        segment.write_bytes(raw[:middle] + b"\x1b]52;c;aGk=\x07\x9b31m" + raw[middle + 12 :])
        for args in (("verify",), ("verify", sid), ("ls",), ("show", sid), ("logs", sid), ("doctor",)):
            both(f, *args, code=None)


@pytest.mark.parametrize("text", [HOSTILE, "\x7f", "ü\U0001f600\ud800", "plain"])
def test_escaped_json_is_the_same_json(text: str) -> None:
    for form in (json.dumps({"k": text}), json.dumps({"k": text}, ensure_ascii=False)):
        assert escaped(form).isascii()
        assert escaped(form).isprintable()
        assert json.loads(escaped(form)) == {"k": text}
