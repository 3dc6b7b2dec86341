"""Names of sessions: with a host only in one strict form, everything else is of this machine as it always was."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.base.offline_fleet import OfflineReader
from harness.protocol.client import SupervisorError
from harness.protocol.paths import Folders
from harness.protocol.session_names import OtherHost, SessionName, is_host
from harness.supervisor.base.errors import OpError
from harness.supervisor.fleet.fleet import Fleet
from harness.views.rows import Money

SIDS = st.from_regex(r"[a-z0-9]{10}", fullmatch=True)
HOSTS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z0-9]{1,10}){0,3}", fullmatch=True)


@given(host=HOSTS, sid=SIDS)
def test_a_host_and_an_id_are_read_and_printed_the_same(host: str, sid: str) -> None:
    name = SessionName.parse(f"{host}/{sid}")
    assert name == SessionName(sid, host)
    assert SessionName.parse(str(name)) == name
    with pytest.raises(OtherHost, match="drives only its own sessions"):
        name.own()


@given(text=st.text(max_size=40))
def test_everything_else_is_of_this_machine_and_unchanged(text: str) -> None:
    name = SessionName.parse(text)
    assert str(name) == text
    if not name.host:
        assert name.own() == text


@pytest.mark.parametrize(
    "text",
    [
        "0123456789",
        "fix/the-cart",
        "/0123456789",
        "box/0123456789/x",
        "box/012345678",
        "Box/0123456789",
        "-box/0123456789",
        "box-/0123456789",
        "a..b/0123456789",
        "box./0123456789",
        "box\n/0123456789",
        "box/0123456789\n",
        f"{'a' * 64}/0123456789",
        f"{'a.' * 127}a/0123456789",
    ],
)
def test_what_is_not_strict_has_no_host(text: str) -> None:
    assert SessionName.parse(text) == SessionName(text)


def test_hosts_end_at_their_longest() -> None:
    assert is_host("a" * 63)
    assert is_host(".".join(["a" * 63] * 3 + ["a" * 61]))
    assert not is_host(".".join(["a" * 63] * 4))


def test_where_a_person_names_a_session_another_machine_is_refused(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "state", tmp_path / "run", tmp_path / "config")
    fleet = Fleet(folders, lambda _: Money())
    session = fleet.add("0123456789")
    assert fleet.find("0123456789") is session
    with pytest.raises(OpError) as refused:
        fleet.find("box/0123456789")
    assert refused.value.code == "other_host"
    assert "this fleet drives only its own sessions" in refused.value.message
    with pytest.raises(SupervisorError) as unseen:
        OfflineReader(folders).call("session", sid="box/0123456789")
    assert unseen.value.code == "other_host"
