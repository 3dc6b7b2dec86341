"""More than a hundred ways to destroy work, each really run in the sandbox: the state before it comes back byte for
byte.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.process import undo_corpus
from tests.process.keeperlib import keepers
from tests.process.undolib import Session, State, repository

pytestmark = pytest.mark.sandbox
SCRIPTS = undo_corpus.scripts()
_EVERY = 6


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """One session for the whole corpus: what an undo leaves is what the next script begins with."""
    base = tmp_path_factory.mktemp("undo")
    with keepers(base) as fleet:
        made = Session(fleet, repository(base / "repo", undo_corpus.TRACKED))
        undo_corpus.fill(made.root)
        made.run(undo_corpus.PREPARE)
        made.run(undo_corpus.NESTED)
        made.run("true")
        yield made


@pytest.fixture(scope="module")
def world(session: Session) -> tuple[State, State, dict[str, bytes]]:
    """What every script finds and every undo must leave."""
    found = session.state()
    assert not any(said.startswith(b"failed") for said in found[2].values()), found[2]
    assert len(found[0]) > 100
    return found


def test_the_corpus_is_large_enough() -> None:
    assert len(set(SCRIPTS)) >= 150


def differing(now: dict[bytes, object] | State, then: dict[bytes, object] | State) -> list[bytes]:
    return sorted(name for name in {*now, *then} if now.get(name) != then.get(name))


@pytest.mark.parametrize("number", range(len(SCRIPTS)), ids=[f"{n}: {script[:50]}" for n, script in enumerate(SCRIPTS)])
def test_what_was_destroyed_comes_back(
    session: Session, world: tuple[State, State, dict[str, bytes]], number: int
) -> None:
    script = SCRIPTS[number]
    call_id, started = session.run(script)
    destroyed = session.state()
    assert destroyed != world, "the corpus itself must bite"
    assert "left_out" not in started
    done = session.undo(started["snapshot"], call_id)
    assert done["refused"] == []
    assert "error" not in done
    back = session.state()
    assert differing(back[0], world[0]) == []
    assert differing(back[1], world[1]) == []
    assert back == world
    if number % _EVERY == 0:
        session.undo(done["before"], done["undo_id"])
        assert differing(session.files(), destroyed[0]) == [], "an undo is undone like any call"
        session.undo(started["snapshot"], call_id)
        assert session.state() == world
