"""One measured figure beside its yardstick, as a row of a table and a line of JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """``samples`` and ``yardstick`` in ``unit``, measured in the same run. ``ok`` None = nothing was promised."""

    name: str
    unit: str
    samples: list[float]
    reach: str
    ok: bool | None
    yardstick: list[float] = field(default_factory=list)
    yardstick_name: str = ""
    ratio: float | None = None
    note: str = ""

    def line(self) -> dict[str, object]:
        return {
            "name": self.name,
            "unit": self.unit,
            "min": round(min(self.samples), 4),
            "median": round(statistics.median(self.samples), 4),
            "max": round(max(self.samples), 4),
            "yardstick": round(statistics.median(self.yardstick), 4) if self.yardstick else None,
            "ratio": None if self.ratio is None else round(self.ratio, 3),
            "reach": self.reach,
            "ok": self.ok,
        }


Bench = Callable[[], list[Figure]]
BENCHES: dict[str, Bench] = {}


def bench(name: str) -> Callable[[Bench], Bench]:
    """Register a bench under the name that ``make bench ONLY=name`` takes."""

    def register(fn: Bench) -> Bench:
        BENCHES[name] = fn
        return fn

    return register


def ratio(a: list[float], b: list[float]) -> float:
    """Median over median."""
    return statistics.median(a) / statistics.median(b)


def percentile(values: list[float], p: float) -> float:
    """The smallest sample with at least ``p`` of all at or below it."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, int(p * len(ordered) + 0.999999) - 1))]


def machine() -> str:
    """One line about where this ran."""
    cpu = next(
        (
            ln.split(":", 1)[1].strip()
            for ln in Path("/proc/cpuinfo").read_text().splitlines()
            if ln.startswith("model name")
        ),
        platform.machine(),
    )
    memory = (
        int(next(ln.split()[1] for ln in Path("/proc/meminfo").read_text().splitlines() if ln.startswith("MemTotal")))
        // 1024
        // 1024
    )
    return (
        f"{os.cpu_count()} cores of {cpu}, {memory} GiB, Linux {platform.release()}, CPython"
        f" {platform.python_version()}"
    )


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def markdown(figures: list[Figure]) -> str:
    """The table of `docs/performance.md`."""
    rows = [
        "| figure | min / median / max | yardstick (median) | ratio | reach | ok |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for f in figures:
        spread = " / ".join(_number(v) for v in (min(f.samples), statistics.median(f.samples), max(f.samples)))
        yard = f"{_number(statistics.median(f.yardstick))} {f.unit} ({f.yardstick_name})" if f.yardstick else "–"
        verdict = {True: "yes", False: "**no**", None: "–"}[f.ok]
        times = "–" if f.ratio is None else f"{f.ratio:.2f}×"
        rows.append(
            f"| {f.name}{': ' + f.note if f.note else ''} | {spread} {f.unit} | {yard} | {times} | {f.reach} |"
            f" {verdict} |"
        )
    return "\n".join(rows)


def emit(figures: list[Figure], target: str) -> None:
    """Append one JSON object a line to ``target``."""
    with Path(target).open("a", encoding="utf-8") as f:
        f.writelines(json.dumps(figure.line()) + "\n" for figure in figures)
