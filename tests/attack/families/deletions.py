"""What is deleted is what was shown: between the card of a plain deletion and the word of the person, somebody
exchanges what lies at its names.

Every file has a text of its own, so whatever is lost is known by name, wherever it was moved meanwhile.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Escape, Outside
from tests.fleetlib import Fleet, fleet, play, wait_for

FILES = ("way/victim/a", "way/victim/deep/b", "way/other/c", "precious/victim/a", "precious/inner/d", "precious/e")


def _way_is_a_link(place: Path) -> None:
    (place / "way").rename(place / "aside")
    (place / "way").symlink_to(place / "precious")


def _link_leads_elsewhere(place: Path) -> None:
    (place / "link").unlink()
    (place / "link").symlink_to(place / "way/other")


def _exchanged(place: Path) -> None:
    (place / "way/victim").rename(place / "aside")
    (place / "precious/victim").rename(place / "way/victim")


def _is_a_link(place: Path) -> None:
    (place / "way/victim").rename(place / "aside")
    (place / "way/victim").symlink_to(place / "precious")


def _filled(place: Path) -> None:
    for folder in ("way/victim", "precious/victim"):
        (place / folder / "new").write_text(f"{folder}/new")


def _nothing(_: Path) -> None:
    return None


CHANGES: dict[str, Callable[[Path], None]] = {
    "a folder on the way became a link": _way_is_a_link,
    "a link on the way leads elsewhere": _link_leads_elsewhere,
    "two folders were exchanged": _exchanged,
    "it became a link": _is_a_link,
    "something was put into it": _filled,
    "nothing": _nothing,
}
SPELLED = {
    "plainly": "{place}/way/victim",
    "with a stroke": "{place}/way/victim/",
    "through itself": "{place}/way/other/../victim",
    "through a link": "{place}/link/../victim",
    "as a folder on the way": "{place}/way",
}


def _ground(place: Path) -> None:
    for name in FILES:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    (place / "link").symlink_to(place / "precious/inner")


def _texts(place: Path) -> set[str]:
    return {
        Path(folder, name).read_text()
        for folder, _, names in os.walk(place)
        for name in names
        if not Path(folder, name).is_symlink()
    }


def _going(card: list[str]) -> list[Path]:
    """The folders that a card says will go."""
    said = card[card.index("GOES AWAY") + 1 :]
    return [Path(line.split("  a folder with ")[0].strip()) for line in said if "  a folder with " in line]


def _decided(f: Fleet, sid: str, first: str) -> None:
    """Allow the first request, deny what is asked anew, and wait for the end."""
    f.approve(first, check=False)  # its answer says so when something changed and nothing ran

    def step() -> bool:
        for item in f.json("approvals"):
            if item["sid"] == sid and item["approval_id"] != first:
                f.run("reject", item["approval_id"], "--reason", "it changed", check=False)
        return f.state(sid).ended is not None

    wait_for(f"{sid} to end", step)


def _tried(cases: list[tuple[str, str, bool]]) -> Outside:
    def attempt(ground: Ground) -> None:
        escaped: list[str] = []
        with fleet() as f:
            for number, (change, spelled, shell) in enumerate(cases):
                place = f.root / f"place{number}"
                _ground(place)
                name = SPELLED[spelled].format(place=place)
                given = {"script": f"rm -rf {name}"} if shell else {"argv": ["rm", "-rf", name]}
                call = ("shell" if shell else "exec", {**given, "access": "unsandboxed"})
                sid = f.launch(play([call], "Done."), name=f"deletion{number}")
                request = str(f.approval(sid)["approval_id"])
                (asked,) = f.json("approvals", request)
                shown = {text for path in _going(asked["card"]) for text in _texts(path)}
                CHANGES[change](place)
                before = _texts(place)
                _decided(f, sid, request)
                lost = before - _texts(place)
                if lost - shown:
                    escaped.append(f"{spelled}, {change}: {', '.join(sorted(lost - shown))} went, and was not shown")
                if change == "nothing" and lost != shown:
                    escaped.append(f"{spelled}: {', '.join(sorted(shown ^ lost))} is not what was shown")
            f.stop()
        if escaped:
            raise Escape("; ".join(escaped))

    return Outside("exchanged before it is deleted: " + ", ".join(map(_said, cases)), attempt)


def _said(case: tuple[str, str, bool]) -> str:
    change, spelled, shell = case
    return f"{change} ({spelled}, {'shell' if shell else 'exec'})"


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    if dice is None:
        for spelled in SPELLED:
            yield _tried([(change, spelled, False) for change in CHANGES])
        yield _tried([("two folders were exchanged", "plainly", True), ("nothing", "through a link", True)])
    elif dice.random() < 0.2:
        yield _tried([(dice.choice(sorted(CHANGES)), dice.choice(sorted(SPELLED)), dice.random() < 0.5)])
