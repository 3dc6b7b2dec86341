"""Limits as data: what the configuration accepts, what travels to the keeper, and what a call that took too much is
told.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from harness.events import types as t
from harness.keeper.calls.watch import pause, strikes_needed
from harness.protocol.config import config, sections
from harness.reports.describe import describe
from harness.sandbox import limits
from harness.sandbox.limits import GIB, MIB, Limits, Over

FILE = Path("/conf/config.toml")


def read(text: str) -> sections.LimitsConfig:
    return config.parse(FILE, f"[limits]\n{text}").limits


def test_the_configuration_and_the_keeper_agree_on_names_and_defaults() -> None:
    assert sections.LimitsConfig().to_wire() == asdict(Limits())
    assert limits.from_wire(sections.LimitsConfig().to_wire()) == Limits()
    assert limits.from_wire(None) == Limits()


def test_sizes_numbers_and_false_are_read() -> None:
    got = read(
        'memory = "1.5 GiB"\nprocesses = 64\ndisk = "64MiB"\ndisk_files = 500\nmemory_free = false\ntmp ='
        " 4194304\ncpu_percent = 150\n"
    )
    assert (got.memory, got.processes, got.disk, got.disk_files) == (3 * GIB // 2, 64, 64 * MIB, 500)
    assert (got.memory_free, got.tmp, got.cpu_percent) == (None, 4 * MIB, 150)
    assert limits.from_wire(got.to_wire()).together() == 3 * GIB // 2
    assert read('memory = "50%"').memory == limits.ram() // 2


@pytest.mark.parametrize(
    "text",
    [
        *(
            "processes = 3",
            "processes = false",
            'memory = "lots"',
            'memory = "1MiB"',
            "memory = 5",
            "memory = true",
            'memory = "120%"',
        ),
        *(
            'disk = "50%"',
            "nice = 30",
            "tmp = false",
            "cpu_weight = 0",
            "cpu_percent = -5",
            "disc = 5",
            'disk_files = "many"',
            "shm = 1000",
        ),
    ],
)
def test_what_is_no_limit_is_refused_by_name(text: str) -> None:
    with pytest.raises(config.ConfigError) as caught:
        read(text)
    assert (caught.value.line, caught.value.key) == (2, f"limits.{text.split()[0]}")


@pytest.mark.parametrize(
    "value", [[], {"memory": -1}, {"memory": True}, {"memory": "1GiB"}, {"processes": None}, {"colour": 3}]
)
def test_a_frame_with_wrong_limits_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="limit"):
        limits.from_wire(value)


def test_defaults_follow_the_machine_and_each_other() -> None:
    assert Limits().together() == limits.ram() * 3 // 4 == Limits().each()
    assert Limits(memory=GIB).each() == GIB
    assert Limits(memory=GIB, process_memory=None).each() is None
    assert Limits(memory=None).together() is None
    assert Limits().free_disk(10 * GIB) == GIB // 2, "a small file system can still be used"
    assert Limits().free_disk(1000 * GIB) == GIB
    assert Limits(memory_free=None).free_memory() == 0 == Limits(disk_free=None).free_disk(GIB)


@pytest.mark.parametrize(
    "name", [name for name in asdict(Limits()) if name not in ("nice", "cpu_weight", "cpu_percent")]
)
def test_every_limit_says_what_was_passed_and_how_to_raise_it(name: str) -> None:
    text = Over(name, 300 * MIB, 256 * MIB, "/work/tree").text()
    assert f"{name} under [limits] in config.toml" in text
    assert "256 MiB" in text or str(256 * MIB) in text


def test_sizes_for_people() -> None:
    assert [limits.size_text(n) for n in (5, 2048, 256 * MIB, 3 * GIB // 2, 10 * GIB)] == [
        "5 bytes",
        "2 KiB",
        "256 MiB",
        "1.5 GiB",
        "10 GiB",
    ]


def test_the_larger_a_call_the_sooner_it_goes_when_the_machine_runs_short() -> None:
    needed = [strikes_needed(taken, 100) for taken in (0, 25, 50, 100, 500)]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] == 1
    assert len(set(needed)) == 4


def test_a_costly_look_is_repeated_less_often_but_soon_enough() -> None:
    assert pause(0.0, walking=False) == 0.1
    assert pause(0.05, walking=False) == pytest.approx(0.5)
    assert pause(60.0, walking=False) == 1.0
    assert pause(60.0, walking=True) < 0.1


def test_an_event_names_the_limit() -> None:
    body = t.ToolEnded(call_id="c1.0", status="error", limit="disk")
    record = t.Record(seq=1, ts="2026-01-01T00:00:00Z", actor="keeper", gen=0, body=body)
    assert "came to the limit of disk" in describe(record).summary
