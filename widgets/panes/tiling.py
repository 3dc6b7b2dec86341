"""The tree of tiles behind the pane wall: splitting, closing, geometry, neighbours, saving. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

MIN_WIDTH = 40
MIN_HEIGHT = 5
MAX_TILES = 16
FOLLOW = ""
"""A pane that shows the selected session."""
EMPTY = "?"
"""A pane that waits for a session."""
Direction: TypeAlias = Literal["left", "right", "up", "down"]


class Rect(NamedTuple):
    """A tile's place in cells, its title line included."""

    x: int
    y: int
    width: int
    height: int


class Leaf(Struct, frozen=True):
    """One pane. An empty ``sid`` follows the selection of the list; a ``pinned`` session stays, also when it ended."""

    id: int
    sid: str = ""
    pinned: bool = False


class Split(Struct, frozen=True):
    """Two parts, side by side (``across``) or one above the other; ``share`` is the first part's size in
    thousandths.
    """

    across: bool
    first: Node
    second: Node
    share: int = 500


Node: TypeAlias = Leaf | Split
_Make: TypeAlias = Callable[[Leaf], Node]


def leaves(node: Node) -> Iterator[Leaf]:
    """All panes, left to right and top to bottom."""
    if isinstance(node, Leaf):
        yield node
    else:
        yield from leaves(node.first)
        yield from leaves(node.second)


def fresh_id(node: Node) -> int:
    """An id no pane has."""
    return max(leaf.id for leaf in leaves(node)) + 1


def split(node: Node, leaf: int, *, across: bool, sid: str = "") -> Node:
    """The tree with pane ``leaf`` cut in two; the new pane gets `fresh_id` and shows ``sid``."""
    return _replace(node, leaf, lambda old: Split(across, old, Leaf(fresh_id(node), sid)))


def assign(node: Node, leaf: int, sid: str) -> Node:
    """The tree with another session in pane ``leaf``, which nobody pinned there."""
    return _replace(node, leaf, lambda old: Leaf(old.id, sid))


def _replace(node: Node, leaf: int, make: _Make) -> Node:
    if isinstance(node, Leaf):
        return make(node) if node.id == leaf else node
    return replace(node, first=_replace(node.first, leaf, make), second=_replace(node.second, leaf, make))


def close(node: Node, leaf: int) -> Node:
    """The tree without pane ``leaf``; the last pane stays."""
    if isinstance(node, Leaf):
        return node
    if isinstance(node.first, Leaf) and node.first.id == leaf:
        return node.second
    if isinstance(node.second, Leaf) and node.second.id == leaf:
        return node.first
    return replace(node, first=close(node.first, leaf), second=close(node.second, leaf))


def resize(node: Node, leaf: int, *, across: bool, delta: int) -> Node:
    """Move the nearest border of that direction around ``leaf`` by ``delta`` thousandths."""
    if isinstance(node, Leaf):
        return node
    inside_first = any(x.id == leaf for x in leaves(node.first))
    part = node.first if inside_first else node.second
    deeper = resize(part, leaf, across=across, delta=delta)
    if deeper != part:
        return replace(node, first=deeper) if inside_first else replace(node, second=deeper)
    if node.across != across or all(x.id != leaf for x in leaves(part)):
        return node
    return replace(node, share=max(100, min(900, node.share + (delta if inside_first else -delta))))


def even(node: Node) -> Node:
    """The tree with every split sized by the number of panes along it."""
    if isinstance(node, Leaf):
        return node
    first = _weight(node.first, node.across)
    second = _weight(node.second, node.across)
    return replace(node, share=1000 * first // (first + second), first=even(node.first), second=even(node.second))


def _weight(node: Node, across: bool) -> int:
    if isinstance(node, Leaf):
        return 1
    a = _weight(node.first, across)
    b = _weight(node.second, across)
    return a + b if node.across == across else max(a, b)


def regions(node: Node, area: Rect) -> dict[int, Rect]:
    """Where every pane lies. Panes side by side are one column apart, for the line between them."""
    if isinstance(node, Leaf):
        return {node.id: area}
    first, second = _parts(node, area)
    return regions(node.first, first) | regions(node.second, second)


def fold(node: Node, area: Rect, kept: int) -> Node:
    """The tree without the panes that would be too small to be read in this area; pane ``kept`` always stays, and what
    is left takes their room.
    """
    if isinstance(node, Leaf):
        return node
    parts = _parts(node, area)
    if all(_readable(part) for part in parts):
        return replace(node, first=fold(node.first, parts[0], kept), second=fold(node.second, parts[1], kept))
    inside = any(leaf.id == kept for leaf in leaves(node.second))
    return fold(node.second if inside else node.first, area, kept)


def _readable(area: Rect) -> bool:
    return area.width >= MIN_WIDTH and area.height >= MIN_HEIGHT


def _parts(node: Split, area: Rect) -> tuple[Rect, Rect]:
    """Where the two parts lie. Side by side they are one column apart, for the line between them."""
    if node.across:
        room = max(0, area.width - 1)
        first = _portion(room, node.share)
        return (
            Rect(area.x, area.y, first, area.height),
            Rect(area.x + first + 1, area.y, room - first, area.height),
        )
    first = _portion(area.height, node.share)
    return (
        Rect(area.x, area.y, area.width, first),
        Rect(area.x, area.y + first, area.width, area.height - first),
    )


def border_at(node: Node, area: Rect, x: int, y: int) -> tuple[int, ...] | None:
    """The split whose border is at a cell, as the way to it from the top (0: first part, 1: second); None where there
    is no border. Below one another, the border is the title line of the lower part.
    """
    if isinstance(node, Leaf):
        return None
    first, second = _parts(node, area)
    on_line = x == second.x - 1 if node.across else y == second.y
    along = area.y <= y < area.y + area.height if node.across else area.x <= x < area.x + area.width
    if on_line and along:
        return ()
    for number, (part, where) in enumerate(((node.first, first), (node.second, second))):
        if where.x <= x < where.x + where.width and where.y <= y < where.y + where.height:
            deeper = border_at(part, where, x, y)
            return None if deeper is None else (number, *deeper)
    return None


def drag(node: Node, area: Rect, way: tuple[int, ...], x: int, y: int) -> Node:
    """The tree with the border that `border_at` found moved to a cell, as far as both parts stay readable."""
    if isinstance(node, Leaf):
        return node
    parts = _parts(node, area)
    if way:
        if way[0] == 0:
            return replace(node, first=drag(node.first, parts[0], way[1:], x, y))
        return replace(node, second=drag(node.second, parts[1], way[1:], x, y))
    room = area.width - 1 if node.across else area.height
    least = MIN_WIDTH if node.across else MIN_HEIGHT
    if room < 2 * least:
        return node
    wanted = x - area.x if node.across else y - area.y
    size = max(least, min(room - least, wanted))
    return replace(node, share=max(50, min(950, (size * 1000 + room // 2) // room)))


def _portion(room: int, share: int) -> int:
    return max(0, min(room, (room * share + 500) // 1000))


def can_split(area: Rect, *, across: bool) -> bool:
    """True when both halves would still be readable."""
    return area.width >= 2 * MIN_WIDTH + 1 if across else area.height >= 2 * MIN_HEIGHT


def neighbour(places: dict[int, Rect], leaf: int, direction: Direction) -> int | None:
    """The pane next to ``leaf``: the nearest border, then the largest shared edge; None at the wall's edge."""
    here = places[leaf]
    best: tuple[int, int, int] | None = None
    for other, there in places.items():
        if other == leaf:
            continue
        if direction in ("left", "right"):
            gap = here.x - (there.x + there.width) if direction == "left" else there.x - (here.x + here.width)
            shared = min(here.y + here.height, there.y + there.height) - max(here.y, there.y)
        else:
            gap = here.y - (there.y + there.height) if direction == "up" else there.y - (here.y + here.height)
            shared = min(here.x + here.width, there.x + there.width) - max(here.x, there.x)
        if gap < 0 or shared <= 0:
            continue
        rank = (gap, -shared, other)
        if best is None or rank < best:
            best = rank
    return best[2] if best else None


def fill(node: Node, available: list[str], known: set[str]) -> Node:
    """Give panes whose session is not known the next session nobody shows; with none left they are empty (`EMPTY`)."""
    shown = {leaf.sid for leaf in leaves(node)}
    spare = [sid for sid in available if sid not in shown]
    for leaf in leaves(node):
        if leaf.sid and leaf.sid not in known:
            node = assign(node, leaf.id, spare.pop(0) if spare else EMPTY)
    return node


def default(width: int, height: int, sessions: int) -> Node:
    """The layout of a wall nobody arranged yet: as many panes as there are sessions, up to what is readable in this
    size.
    """
    if width >= 2 * 60 and height >= 2 * 10 and sessions >= 3:
        return Split(True, Split(False, Leaf(1), Leaf(2, EMPTY)), Split(False, Leaf(3, EMPTY), Leaf(4, EMPTY)))
    if height >= 2 * 12 and sessions >= 2:
        return Split(False, Leaf(1), Leaf(2, EMPTY))
    return Leaf(1)


def keep(node: Node, shown: dict[int, str]) -> Node:
    """The tree with the sessions that panes of the same number showed before."""
    for leaf in leaves(node):
        if leaf.sid == EMPTY and shown.get(leaf.id):
            node = assign(node, leaf.id, shown[leaf.id])
    return node


def pin(node: Node, leaf: int, sid: str) -> Node:
    """The tree with a session kept in pane ``leaf``; of the panes that nobody pinned none shows it a second time, and
    one follows the selection.
    """
    node = _replace(node, leaf, lambda old: Leaf(old.id, sid, pinned=True))
    for other in leaves(node):
        if not other.pinned and other.sid == sid:
            node = assign(node, other.id, EMPTY)
    return following(node)


def following(node: Node) -> Node:
    """The tree with a pane that follows the selection: one that is empty, else the first that nobody pinned."""
    free = [leaf for leaf in leaves(node) if not leaf.pinned]
    if not free or any(leaf.sid == FOLLOW for leaf in free):
        return node
    return assign(node, next((leaf for leaf in free if leaf.sid == EMPTY), free[0]).id, FOLLOW)


def to_data(node: Node) -> dict[str, object]:
    """A JSON-able form of the tree."""
    if isinstance(node, Leaf):
        return {"id": node.id, "sid": node.sid, "pinned": node.pinned}
    return {"across": node.across, "share": node.share, "first": to_data(node.first), "second": to_data(node.second)}


def from_data(data: object) -> Node:
    """The tree of `to_data`. Raises ValueError on anything else, doubled ids and too many panes included."""
    node = _parse(data, 0)
    ids = [leaf.id for leaf in leaves(node)]
    if len(ids) != len(set(ids)) or len(ids) > MAX_TILES:
        raise ValueError("pane ids repeat, or there are too many panes")
    return node


def _parse(data: object, depth: int) -> Node:
    if not isinstance(data, dict) or depth > MAX_TILES:
        raise ValueError("a layout is a tree of objects")
    if "across" not in data:
        leaf = data.get("id")
        sid = data.get("sid")
        if not isinstance(leaf, int) or isinstance(leaf, bool) or not isinstance(sid, str):
            raise ValueError("a pane has a number and a session id")
        return Leaf(leaf, sid, pinned=data.get("pinned") is True and sid not in (FOLLOW, EMPTY))
    across = data["across"]
    share = data.get("share")
    if not isinstance(across, bool) or not isinstance(share, int) or not 50 <= share <= 950:
        raise ValueError("a split has a direction and a share between 50 and 950")
    return Split(across, _parse(data.get("first"), depth + 1), _parse(data.get("second"), depth + 1), share)
