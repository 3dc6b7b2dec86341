"""Carries out rounds of a family and judges them: what the attempt said, and what is seen from outside."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Turn:
    """What is carried out at once, of a round of a family."""

    family: str
    number: int
    attempts: list[Inside] | Outside

    @property
    def count(self) -> int:
        return 1 if isinstance(self.attempts, Outside) else len(self.attempts)

    def __str__(self) -> str:
        first = self.attempts if isinstance(self.attempts, Outside) else self.attempts[0]
        return f"{self.family}, round {self.number}: {first.name}" + (f" and {self.count - 1} more" * (self.count > 1))


def turns(ground: Ground, families: Iterable[Family], user: str, seed: int, number: int, only: str = "") -> list[Turn]:
    """A round of these families, in an order of the seed's: whoever has time for a part of the list tries another part
    with another seed.
    """
    found = []
    for family in families:
        chosen = [a for a in attempts_of(ground, family, user, seed, number) if not only or a.name == only]
        found += [Turn(family.name, number, batch) for batch in batches(chosen)]
    random.Random(f"{seed}/{user}/order/{number}").shuffle(found)
    return found


def carry_out(ground: Ground, attempts: list[Inside] | Outside) -> list[Result]:
    return [_outside(ground, attempts)] if isinstance(attempts, Outside) else _together(ground, attempts)
