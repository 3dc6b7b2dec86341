"""A file of settings as a struct. The type of a field says all there is to say of its value:
``Annotated[int, Meta(ge=10), DURATION]``. ``false`` is a number that is None. Pure: text in, struct or error out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin

import msgspec

from harness.domain.settings.toml_text import Place, Unusable, lines, tables

S = TypeVar("S", bound=msgspec.Struct)
E_co = TypeVar("E_co", bound=Unusable, covariant=True)
_WORDS = {bool: "true or false", int: "a whole number", str: "a string", tuple: "a list of strings", dict: "a table"}
_QUOTED = 60
_FAR = 1 << 31
"""A bound from which on it is named to those alone who pass it."""


class Form(NamedTuple):
    """How a value is written that is checked or converted: ``read`` takes a value of a type in ``written`` and raises
    ValueError; ``words`` say what it must be; ``shown`` writes a bound.
    """

    read: Callable[[Any], object]
    words: str = "a string"
    written: tuple[type, ...] = (str,)
    shown: Callable[[Any], str] = "{:,}".format


class Source(Generic[E_co]):
    """The text of a file, its name, and the error that is raised for it. ``renamed``: new names of sections and keys
    that had another one.
    """

    def __init__(
        self, text: str, file: str | Path, error: type[E_co], renamed: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.text = text
        self.file = file
        self._error = error
        self._renamed = renamed

    @cached_property
    def _lines(self) -> dict[Place, int]:
        return lines(self.text)

    def line(self, place: Place) -> int:
        """The line of a key, or of the section that it should stand in."""
        return next(self._lines[part] for n in range(len(place), -1, -1) if (part := place[:n]) in self._lines)

    def failure(self, place: Place, why: str) -> E_co:
        """The error that names file, line and key."""
        return self._error(self.file, self.line(place), _key(place), why)

    def read(self, kind: type[S]) -> S:
        """The struct. Raises the error of this source."""
        return self._struct(kind, tables(self.text, self.file, self._error), ())

    def _struct(self, kind: type[S], table: dict[str, object], at: Place) -> S:
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        made = {}
        for key, raw in table.items():
            if (field := fields.get(key)) is None:
                raise self.failure((*at, key), _unknown(key, raw, list(fields), self._renamed.get(key, "")))
            made[field.name] = self._value(field.type, raw, (*at, key))
        for key, field in fields.items():
            if field.required and field.name not in made:
                raise self.failure((*at, key), f"is missing; it must be {must_be(field.type)}")
        return kind(**made)

    def _value(self, hint: object, raw: object, at: Place) -> object:
        kind, form, _, optional = _parts(hint)
        if raw is False and optional and kind is int:
            return None
        outer = get_origin(kind) or kind
        if isinstance(outer, type) and issubclass(outer, msgspec.Struct):
            if not isinstance(raw, dict):
                written = f"[[{_key(at)}]]" if isinstance(at[-1], int) else f"[{_key(at)}]"
                raise self.failure(at, f"must be a section: write {written}, not {_quoted(raw)}")
            return self._struct(outer, raw, at)
        if outer is tuple and isinstance(raw, list) and all(isinstance(item, str | dict) for item in raw):
            return tuple(self._value(get_args(kind)[0], item, (*at, n)) for n, item in enumerate(raw))
        if outer is dict and isinstance(raw, dict):
            return {key: self._value(get_args(kind)[1], item, (*at, key)) for key, item in raw.items()}
        value = raw
        try:
            if form is not None and type(raw) in form.written:
                value = form.read(raw)
            return msgspec.convert(value, type=hint)
        except msgspec.ValidationError as exc:
            raise self.failure(at, f"must be {must_be(hint, value)}, not {_quoted(raw)}") from exc
        except ValueError as exc:
            raise self.failure(at, str(exc)) from exc


def must_be(hint: object, value: object = None) -> str:
    """What a value of this type must be, in words that suit this wrong one."""
    kind, form, meta, optional = _parts(hint)
    outer = get_origin(kind) or kind
    if meta.description is not None:
        said = meta.description
    elif form is not None:
        said = form.words
    elif choices := get_args(kind) if outer is Literal else getattr(outer, "__members__", {}).values():
        said = f"one of {', '.join(choices)}"
    else:
        said = _WORDS[outer]
    said += _bounds(meta, form.shown if form else "{:,}".format, value)
    return f"{said}, or false for none" if optional and kind is int else said


def form_of(hint: object) -> Form | None:
    """How a value of this type is written, where it is checked or converted."""
    return _parts(hint)[1]


def _bounds(meta: msgspec.Meta, shown: Callable[[Any], str], value: object) -> str:
    if meta.min_length:
        return " that is not empty"
    if meta.gt is not None:
        return f", more than {shown(meta.gt)}"
    if meta.ge is None:
        return ""
    if meta.le is not None and (meta.le < _FAR or (isinstance(value, int) and value > meta.le)):
        return f" between {shown(meta.ge)} and {shown(meta.le)}"
    return f", {shown(meta.ge)} or more"


def _parts(hint: object) -> tuple[Any, Form | None, msgspec.Meta, bool]:
    """A type without what is noted beside it, its form, its bounds, and whether it can be None."""
    optional = NoneType in get_args(hint)
    if optional:
        hint = next(one for one in get_args(hint) if one is not NoneType)
    notes = getattr(hint, "__metadata__", ())
    form = next((note for note in notes if isinstance(note, Form)), None)
    meta = next((note for note in notes if isinstance(note, msgspec.Meta)), msgspec.Meta())
    return getattr(hint, "__origin__", hint) if notes else hint, form, meta, optional


def _unknown(key: str, raw: object, known: list[str], now: str) -> str:
    import difflib

    if now in known:
        return f"is called {now} now; write {f'[{now}]' if isinstance(raw, dict) else now} in its place"
    near = difflib.get_close_matches(key, known, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"unknown {'section' if isinstance(raw, dict) else 'key'}; {meant}known: {', '.join(known)}"


def _key(place: Place) -> str:
    return ".".join(
        name if re.fullmatch(r"[\w-]+", name) else json.dumps(name) for name in place if name.__class__ is str
    )


def _quoted(raw: object) -> str:
    text = json.dumps(raw, default=str)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"
