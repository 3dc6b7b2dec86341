"""Text that acts on terminals, from every place where an agent can put text, to every place where a person reads it."""

from __future__ import annotations

import json
import random
import subprocess
import unicodedata
from collections.abc import Iterator

from harness.domain.text.display_safe import to_display_lines
from harness.eventlog.reader import read
from harness.events import types as t
from harness.reports.describe import describe, detail
from tests.attack.ground import SID, Ground
from tests.attack.model import Attempt, Escape, Outside
from tests.fleetlib import fleet, make_repository, play

PIECES = (
    *(
        "\x1b]52;c;aGk=\x07",
        "\x1b]0;owned\x1b\\",
        "\x1b[6n",
        "\x1b[c",
        "\x1bP$q\x1b\\",
        "\x1b[?1049h",
        "\x9b31m",
        "\x9d0;x\x9c",
        "\x1b[2J\x1b[H",
        "\x1b[8m",
    ),
    *(
        "\u202e",
        "\u2066",
        "\u2069",
        "\u200b",
        "\u2060",
        "\ufeff",
        "\U000e0041",
        "\u3164",
        "\u2800",
        "\u2028",
        "\x7f",
        "\x08",
        "\r",
        "\v",
        "\x0e",
        "\x00",
    ),
    *(
        "e\u0301\u0301\u0301",
        "\ud7ff",
        " " * 20,
        "[bold]x[/bold]",
        "[@click=app.quit]",
        "⟨U+202E⟩",
        "␛",
        "plain",
        "\x19",
        "\x05",
    ),
)
VERBS = (
    ("ls",),
    ("show", "{sid}"),
    ("logs", "{sid}"),
    ("diff", "{sid}"),
    ("approvals",),
    ("cost",),
    ("verify", "{sid}"),
)


def unclean(text: str) -> set[str]:
    """Characters that act or hide."""
    return {
        f"U+{ord(c):04X}"
        for c in text
        if c != "\n" and (unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") or c in "\u3164\u2800")
    }


def _text(dice: random.Random) -> str:
    return "".join(dice.choices(PIECES, k=dice.randrange(3, 14)))


def _records(number: int, text: str) -> Outside:
    """Through a real call into the log, and from there to the lines that people see."""

    def attempt(ground: Ground) -> None:
        (ground.tree.root / "said").write_bytes(text.encode("utf-8", "surrogatepass") * 3 + bytes(range(256)))
        name = "f" + text.replace("/", "").replace("\0", "")[:60]
        ground.call("write_file", {"path": name, "content": text})
        ground.call("shell", {"script": "cat said; cat said >&2; exit 3"})
        ground.call("read_file", {"path": "said"})
        for raw in read(ground.folder.log):
            record = t.decode(raw)
            if record.seq < ground.seen:
                continue
            line = describe(record)
            for shown in (*to_display_lines(line.summary), *to_display_lines(detail(record))):
                if bad := unclean(shown):
                    raise Escape(f"record {record.seq} of {SID} is shown with {bad}")
            ground.seen = record.seq

    return Outside(f"text {number} in output, names and records", attempt)


def _verbs(number: int, texts: list[str]) -> Outside:
    """Through a whole fleet to every verb of the command line."""

    def attempt(ground: Ground) -> None:
        whole = "".join(texts).replace("\0", "")
        name = whole.replace("/", "")[:60]
        with fleet() as f:
            repo = make_repository(f.root / "repo", {"README.md": whole, f"f{name}": whole})
            subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", f"m{whole}"], cwd=repo, check=True)
            goal = play(
                [("write_file", {"path": f"n{name}", "content": whole, "why": whole})],
                [
                    ("exec", {"argv": ["printf", "%s", whole]}),
                    ("exec", {"argv": ["curl", whole], "access": "network", "why": whole}),
                ],
                whole,
            )
            sid = f.launch(f"{whole} {goal}", repo=repo, name=f"s{number}")
            f.approval(sid)
            for verb in VERBS:
                for more in ((), ("--json",)):
                    done = f.run(*(part.format(sid=sid) for part in verb), *more, check=False)
                    if bad := unclean(done.stdout) | unclean(done.stderr):
                        raise Escape(f"watchfloor {' '.join((*verb, *more))} prints {bad} for {json.dumps(whole)}")
            f.stop()

    return Outside(f"texts {number} on the command line", attempt)


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    if dice is None:
        yield from (
            _records(number, piece)
            for number, piece in enumerate(("".join(PIECES[:10]), "".join(PIECES[10:]), "\x1b[6n\r\x9b31m"))
        )
        yield _verbs(0, list(PIECES))
        return
    yield from (_records(number, _text(dice)) for number in range(3))
