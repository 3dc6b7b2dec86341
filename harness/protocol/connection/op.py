"""An operation that one process of ours asks of another, as the frozen record that both ends know: who asks makes it,
who is asked reads it from the frame once. Standard library only.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from typing import ClassVar, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")
_Read = Callable[[str, object], object]


class BadArgument(ValueError):
    """What a frame holds is not what its record needs: one sentence that names the field."""


class Op(Generic[R_co]):
    """Base of them all, each a frozen dataclass: its fields are the arguments, ``R_co`` is what it is answered."""

    __slots__ = ()
    OP: ClassVar[str]
    """How it is called in a frame."""

    @classmethod
    def answered_by(cls) -> type[R_co]:
        """The record of its reply: what stands in the brackets of its base."""
        (base,) = cls.__orig_bases__  # type: ignore[attr-defined]
        (reply,) = get_args(base)
        return cast("type[R_co]", reply)


@dataclass(frozen=True, slots=True)
class Yes:
    """It is done."""


def reader(kind: type[T]) -> Callable[[Mapping[str, object]], T]:
    """Makes this dataclass of the members of an object, of which those that it does not know are left aside. What is
    returned raises BadArgument. A field whose metadata has ``read`` is made by that, which raises it too.
    """
    if kind not in _made:
        _made[kind] = _reader(kind)
    return cast("Callable[[Mapping[str, object]], T]", _made[kind])


_made: dict[type[object], Callable[[Mapping[str, object]], object]] = {}


def _reader(kind: type[T]) -> Callable[[Mapping[str, object]], T]:
    hints = get_type_hints(kind)
    known = [_field(field, hints[field.name]) for field in fields(kind)]  # type: ignore[arg-type]

    def read(given: Mapping[str, object]) -> T:
        get = given.get
        return kind(
            *[
                default if (value := get(name)) is None and optional else reads(name, value)
                for name, reads, optional, default in known
            ]
        )

    return read


def _field(field: Field[object], hint: object) -> tuple[str, _Read, bool, object]:
    """Its name, how it is read, and whether it may be left out and what stands for it then."""
    own = field.metadata.get("read")
    reads = _reads(hint) if own is None else lambda _, value: own(value)
    if field.default_factory is not MISSING:
        reads = _or_made(field.default_factory, reads)
    return field.name, reads, field.default is not MISSING, field.default


def _or_made(make: Callable[[], object], reads: _Read) -> _Read:
    def either(name: str, value: object) -> object:
        return make() if value is None else reads(name, value)

    return either


def _reads(hint: object) -> _Read:
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin = get_origin(hint)
    inside = get_args(hint)
    if origin in (Union, types.UnionType):
        (only,) = (one for one in inside if one is not type(None))
        reads = _reads(only)
        return lambda name, value: None if value is None else reads(name, value)
    if origin in (tuple, list):
        return _of_each(_reads(inside[0]), origin)
    if origin is dict:
        return _of_values(_reads(inside[1]))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _word(hint)
    if isinstance(hint, type):
        return _nested(hint)
    raise TypeError(f"a field of a frame cannot be {hint}")


def _of_each(reads: _Read, many: Callable[[Iterable[object]], object]) -> _Read:
    def each(name: str, value: object) -> object:
        if not isinstance(value, list):
            raise BadArgument(f"{name} must be a list")
        return many(reads(f"each of {name}", one) for one in value)

    return each


def _of_values(reads: _Read) -> _Read:
    def values(name: str, value: object) -> object:
        return {key: reads(f"{key} in {name}", one) for key, one in _object(name, value).items()}

    return values


def _word(words: type[StrEnum]) -> _Read:
    def word(name: str, value: object) -> object:
        try:
            return words(str(value))
        except ValueError as exc:
            raise BadArgument(f"{name} must be one of {', '.join(words)}") from exc

    return word


def _nested(kind: type[object]) -> _Read:
    reads = reader(kind)

    def nested(name: str, value: object) -> object:
        return reads(_object(name, value))

    return nested


def _text(name: str, value: object) -> object:
    if not isinstance(value, str):
        raise BadArgument(f"{name} must be a text")
    return value


def _number(name: str, value: object) -> object:
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadArgument(f"{name} must be a whole number")
    return value


def _seconds(name: str, value: object) -> object:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadArgument(f"{name} must be a number")
    return value


def _flag(name: str, value: object) -> object:
    if not isinstance(value, bool):
        raise BadArgument(f"{name} must be true or false")
    return value


def _object(name: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise BadArgument(f"{name} must be an object")
    return value


_PLAIN: dict[object, _Read] = {
    str: _text,
    int: _number,
    float: _seconds,
    bool: _flag,
    dict[str, object]: _object,
    object: lambda _, value: value,
}
