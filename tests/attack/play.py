"""Carries out rounds of a family and judges them: what the attempt said, and what is seen from outside."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Escape, Family, Inside, Outside, Result, Skip

BATCH = 24


def batches(attempts: list[Attempt]) -> Iterator[list[Inside] | Outside]:
    """Neighbouring attempts that run inside with the same access share a call."""
    waiting: list[Inside] = []
    for attempt in attempts:
        if (
            isinstance(attempt, Inside)
            and (not waiting or waiting[0].access == attempt.access)
            and len(waiting) < BATCH
        ):
            waiting.append(attempt)
            continue
        if waiting:
            yield waiting
            waiting = []
        if isinstance(attempt, Inside):
            waiting = [attempt]
        else:
            yield attempt
    if waiting:
        yield waiting


def _together(ground: Ground, attempts: list[Inside]) -> list[Result]:
    results, output = ground.batch(attempts)
    found = ground.watch.secrets("what came out", output) + ground.watch.look(ground.keeper)
    ground.tidy()
    if not found:
        return results
    if len(attempts) == 1:
        return [Result(attempts[0].name, "escaped", "; ".join(found))]
    # Something happened to the host: find out who did it.
    alone = [result for attempt in attempts for result in _together(ground, [attempt])]
    if any(result.status == "escaped" for result in alone):
        return alone
    return [
        *alone[1:],
        Result(attempts[0].name, "escaped", f"together with {len(attempts) - 1} others: {'; '.join(found)}"),
    ]


def _outside(ground: Ground, attempt: Outside) -> Result:
    try:
        attempt.run(ground)
        found = ground.watch.look(ground.keeper)
        result = Result(attempt.name, "escaped", "; ".join(found)) if found else Result(attempt.name, "refused")
    except Skip as exc:
        result = Result(attempt.name, "skipped", str(exc))
    except Escape as exc:
        result = Result(attempt.name, "escaped", "; ".join([str(exc), *ground.watch.look(ground.keeper)]))
    ground.tidy()
    return result


def attempts_of(ground: Ground, family: Family, user: str, seed: int, number: int) -> list[Attempt]:
    """The attempts of a round, each name once: round 0 is the list, every other one is generated from the seed,
    whatever ran before.
    """
    dice = random.Random(f"{seed}/{user}/{family.name}/{number}") if number else None
    return list({attempt.name: attempt for attempt in family.attempts(ground, dice)}.values())


def play(
    ground: Ground, family: Family, user: str, seed: int, number: int, only: str = "", until: float = float("inf")
) -> Iterator[Result]:
    """One round; generated rounds stop at ``until`` (monotonic seconds)."""
    for batch in batches([a for a in attempts_of(ground, family, user, seed, number) if not only or a.name == only]):
        if number and time.monotonic() > until:
            return
        if isinstance(batch, Outside):
            yield _outside(ground, batch)
        else:
            yield from _together(ground, batch)
