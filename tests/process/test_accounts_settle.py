"""A brain's settlements: none that is known is dropped because the supervisor leaves, does not know the brain yet, or
has no space.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.agents.accounts import Accounts
from harness.agents.errors import NoSupervisor
from harness.agents.supervisor_requests import Reservation, Reserve
from harness.events.types import Usage
from tests.process.brainhouse import Money, SmallSupervisor

USED = Usage(input=3, output=4)


class Refusing(SmallSupervisor):
    """Refuses settlements with a code for as long as it is set."""

    code = ""

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        if self.code and message["op"] == "settle":
            return {"ok": False, "error": {"code": self.code, "message": "not now"}}
        return super()._answer(message)


@pytest.mark.parametrize("code", ["stopping", "stale_lease", "no_space", "ledger"])
def test_a_settlement_that_was_refused_for_now_is_made_up_for(tmp_path: Path, code: str) -> None:
    money = Money()
    supervisor = Refusing(tmp_path / "sup.sock", money)
    accounts = Accounts(tmp_path / "sup.sock", "s", 1, "secret")
    accounts.connect()
    held = accounts.reserve(Reserve("q1", 1, "m", 1, 1))
    supervisor.code = code
    assert accounts.settle(held, USED).source == "reserved"
    if code in ("stopping", "stale_lease"):  # that supervisor leaves, or does not know us yet: it is asked for again
        with pytest.raises(NoSupervisor):
            accounts.connect()
        supervisor.code = ""
        accounts.connect()
    else:
        accounts.reserve(Reserve("q2", 1, "m", 1, 1))
        assert (money.settled, accounts.problems) == ([], [])
        supervisor.code = ""
    accounts.reserve(Reserve("q3", 1, "m", 1, 1))
    assert [m["reservation"] for m in money.settled] == [held.id]
    assert money.settled[0]["usage"] == {"input": 3, "output": 4}
    supervisor.close()


def test_settlements_outlive_six_supervisors_that_leave_during_them(tmp_path: Path) -> None:
    money = Money()
    accounts = Accounts(tmp_path / "sup.sock", "s", 1, "secret")
    for number in range(6):
        supervisor = Refusing(tmp_path / "sup.sock", money)
        accounts.connect()
        held = accounts.reserve(Reserve(f"q{number}", 1, "m", 1, 1))
        supervisor.code = "stopping"
        accounts.settle(held, USED)
        supervisor.close()
        with pytest.raises(NoSupervisor):
            accounts.reserve(Reserve("x", 1, "m", 1, 1))
        (tmp_path / "sup.sock").unlink(missing_ok=True)
    last = SmallSupervisor(tmp_path / "sup.sock", money)
    accounts.connect()
    assert len(money.settled) == 6
    assert accounts.problems == []
    last.close()


def test_what_is_refused_for_good_is_said_and_not_asked_again(tmp_path: Path) -> None:
    supervisor = Refusing(tmp_path / "sup.sock", Money())
    accounts = Accounts(tmp_path / "sup.sock", "s", 1, "secret")
    accounts.connect()
    supervisor.code = "unknown_reservation"
    accounts.settle(Reservation("gone", 5), USED)
    assert len(accounts.problems) == 1
    accounts.reserve(Reserve("q", 1, "m", 1, 1))
    assert len(accounts.problems) == 1
    supervisor.close()
