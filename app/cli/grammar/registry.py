"""Every verb of the command line, by what a person wants to do, the most wanted first."""

from __future__ import annotations

from app.cli.grammar import care, decide, look, prepare, shell, start, steer, take

GROUPS = tuple(room.GROUP for room in (start, look, take, decide, steer, prepare, care, shell))
VERBS = {verb.name: verb for group in GROUPS for verb in group.verbs}
