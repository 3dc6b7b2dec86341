"""What of memory is in a request: told once per change, new things at a new beginning, withdrawn ones gone at once."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.brain.layers import beginning
from harness.brain.view import View
from harness.events import types as t
from harness.events.conversation.memory_events import NOW, RESET
from harness.memory import changes, layer
from harness.memory.changes import MemoryRequest, NotRemembered
from harness.memory.model import Memories
from harness.memory.records import Actor, Origin, Place, Scope, sha_of
from harness.projections import apply

MINE = Place(Scope.SESSION, "s1")
REPO = Place(Scope.REPOSITORY, "/srv/thing/.git")
PLACES = [MINE, REPO]
TS = "2026-11-22T10:00:00.000Z"
PERSON = Origin(Actor.PERSON, TS)
AGENT = Origin(Actor.AGENT, TS, "s1")


class World:
    """A memory, and a session that is told of it as the supervisor does."""

    def __init__(self) -> None:
        self.memories = Memories()
        self.view = View()
        self.seq = 0
        self.asked = False

    def put(self, body: t.Body) -> None:
        record = t.Record(self.seq, TS, "x", 0, body)
        apply.advance(self.view.state, record)
        self.view.take(record, lambda ref: b"")
        self.seq += 1

    def tell(self) -> t.MemoryShown | None:
        found = layer.layer(self.memories, PLACES, "a goal", TS)
        due = layer.due(self.memories, found, self.view.state.memory, self.asked, PLACES, TS)
        if due is not None:
            self.put(due)
        return due

    def change(self, what: str, place: Place, key: str, text: str) -> None:
        agent = place is MINE
        wish = MemoryRequest(place, key, AGENT if agent else PERSON, text)
        try:
            entries = {
                "write": lambda: changes.write(self.memories, wish),
                "remove": lambda: changes.remove(self.memories, wish),
                "back": lambda: changes.roll_back(self.memories, wish, None),
            }[what]()
        except NotRemembered:
            return
        for entry in entries:
            self.memories.apply(entry)

    def reset(self) -> None:
        self.put(t.ContextReset(keep=0, handoff="so far", tokens=9, after=3, trigger="a test"))


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(("write", "remove", "back")),
            st.sampled_from((MINE, REPO)),
            st.sampled_from(("a", "b")),
            st.sampled_from(("one", "two", "three")),
        ),
        st.just("reset"),
        st.just("ask"),
    ),
    max_size=25,
)


@settings(max_examples=120, deadline=None)
@given(STEPS)
def test_a_request_never_shows_what_is_gone_and_all_that_there_is_after_a_new_beginning(steps: list[object]) -> None:
    w = World()
    for step in steps:
        match step:
            case "ask":
                w.asked = True
            case "reset":
                w.reset()
            case (what, place, key, text):
                w.change(str(what), place, str(key), str(text))
        w.tell()
        assert w.tell() is None, "told once per change of the set"
        shown = w.view.state.memory.shown
        for entry in shown:
            place = MINE if entry.scope == "session" else REPO
            standing = w.memories.get(place, entry.key, TS)
            assert standing is not None, "what was deleted is gone"
            if standing.sha != entry.sha:
                assert standing.origin.actor is Actor.AGENT, "what a person corrected is gone"
        assert w.view.memory.count("\n- [") == len(shown)
        if not w.asked or step == "reset":
            now = layer.layer(w.memories, PLACES, "a goal", TS)
            assert w.view.memory == now.text or w.view.memory_next == now.text
    w.reset()
    assert w.view.memory == layer.layer(w.memories, PLACES, "a goal", TS).text


def test_it_stands_behind_the_goal_and_counts_as_said() -> None:
    w = World()
    intent = t.SessionIntent(
        name="n", goal="The goal.", repo="/r", branch="b", worktree="/w", model="m", checks=["make test"]
    )
    w.put(intent)
    w.change("write", REPO, "build", "make all")
    before = w.view.fresh
    told = w.tell()
    assert told is not None
    assert told.at == NOW
    assert [text.split("\n")[0][:12] for _, text in beginning(w.view)] == ["The goal.", "Done criteri", "Memory, kept"]
    assert w.view.fresh - before == len(told.text.encode())
    assert w.view.begins_seq == w.seq - 1
    w.asked = True
    w.change("write", REPO, "style", "tabs")
    later = w.tell()
    assert later is not None
    assert later.at == RESET
    assert "tabs" not in w.view.memory
    w.reset()
    assert "tabs" in w.view.memory
    assert {(entry.key, entry.sha) for entry in w.view.state.memory.shown} == {
        ("style", sha_of("tabs")),
        ("build", sha_of("make all")),
    }
