"""The screen of rules: what each covers and let run is on it, one is taken back after a question, and nothing of an
agent's reaches the terminal as it is.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.base.output import safe
from app.presenters import grant_lines
from app.screens.rules import RulesScreen
from harness.events.body import By
from harness.views.grant_views import GrantView, RevokedView, UseView
from tests.tui.app_pilot import SIZES, Shown, shown
from tests.tui.app_world import PUSH, World, stamp

HOSTILE = "evil\x1b[31mred\u202e"
NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def made(world: World) -> None:
    """A rule that two sessions used, one that was revoked, and the sessions."""
    first = world.ask(world.add("cart"), PUSH, ts=stamp(60))
    twin = world.add(f"twin{HOSTILE}")
    used = world.stand(first, "repository", 20)
    uses = [
        UseView(sid=first.sid, call_id="c7.0", action_hash="ab" * 32, ts="2026-01-01T10:00:00.000Z"),
        UseView(sid=twin.sid, call_id="c9.0", action_hash="cd" * 32, ts="2026-01-01T11:00:00.000Z"),
    ]
    world.grants[0] = msgspec.structs.replace(used, uses=uses, of="/srv/shop/.git", words=[f"exec: {HOSTILE}", "in x"])
    world.stand(first, "session", 3)
    gone = RevokedView(by=By("cli"), ts="2026-01-01T12:00:00.000Z", why="enough")
    world.grants.append(msgspec.structs.replace(used, grant="gold0000", ended="revoked", revoked=gone))


def screen(s: Shown) -> RulesScreen:
    assert isinstance(s.app.screen, RulesScreen)
    return s.app.screen


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("way", ["1", "2"])
async def test_every_rule_and_each_of_its_uses_is_shown(tmp_path: Path, size: tuple[int, int], way: str) -> None:
    async with shown(tmp_path, made, size=size) as s:
        await s.press(way, "6")
        await s.see("Rules: 2 stand", "2/20", "0/3")
        assert "gold0000" not in s.text
        await s.until("the one with uses is told", lambda: screen(s).selected is not None)
        while (chosen := screen(s).selected) is not None and chosen.grant != "g0000000":
            await s.press("down")
        await s.see("evil␛[31mred⟨U+202E⟩", "g0000000")
        assert "\x1b" not in s.text
        assert all(len(line) <= size[0] for line in s.grid)
        if size[1] >= 40:
            await s.see("2 of 20 calls", "call c7.0", "call c9.0", "shop (/srv/shop/.git)", "you, on the screen")
        await s.press("a")
        await s.see("2 stand, 1 ended", "revoked")


async def test_a_rule_in_use_is_taken_back_after_a_question(tmp_path: Path) -> None:
    async with shown(tmp_path, made) as s:
        await s.press("6")
        await s.see("Rules: 2 stand")
        while (chosen := screen(s).selected) is not None and chosen.grant != "g0000000":
            await s.press("down")
        await s.press("r")
        await s.see("Revoke the rule g0000000", "asks again")
        await s.press("escape")
        assert not s.world.of("revoke")
        await s.press("r", "enter")
        assert not s.world.of("revoke"), "no bare key takes it back"
        await s.press("ctrl+y")
        await s.until("it is revoked", lambda: s.world.of("revoke"))
        assert s.world.of("revoke")[0]["grant"] == "g0000000"
        await s.see("Rules: 1 stands")
        await s.press("a")
        await s.see("1 stand", "2 ended")
        await s.press("end", "r")
        await s.see("it is revoked already")


async def test_a_use_shows_without_a_key_and_the_selection_stays(tmp_path: Path) -> None:
    async with shown(tmp_path, made) as s:
        await s.press("6")
        await s.see("Rules: 2 stand")
        await s.press("end")
        before = screen(s).selected
        assert before is not None
        s.world.stand(s.world.approvals()[0], "fleet", 9)
        use = UseView(sid=before.sid, call_id="c99.0", action_hash="ef" * 32, ts="2026-01-02T11:00:00.000Z")
        at = next(i for i, rule in enumerate(s.world.grants) if rule.grant == before.grant)
        s.world.grants[at] = msgspec.structs.replace(before, uses=[*before.uses, use])
        s.world.push_rows(*s.world.sessions.values())
        await s.see("call c99.0", "Rules: 3 stand")
        now = screen(s).selected
        assert now is not None
        assert now.grant == before.grant


async def test_without_rules_it_says_so(tmp_path: Path) -> None:
    async with shown(tmp_path) as s:
        await s.press("6")
        await s.see("No rule stands: every request that leaves the sandbox asks")
        await s.press("r")
        await s.see("no rule is listed")


async def test_without_rules_there_is_no_session_to_open(tmp_path: Path) -> None:
    async with shown(tmp_path) as s:
        await s.press("6")
        await s.see("No rule stands: every request that leaves the sandbox asks")
        await s.press("enter")
        await s.see("no rule is listed")


@given(
    st.builds(
        GrantView,
        grant=st.text(),
        scope=st.sampled_from(["session", "repository", "fleet"]),
        of=st.text(),
        title=st.text(),
        words=st.lists(st.text(), max_size=3),
        asked_by=st.text(),
        ts=st.text(),
        expires=st.text(),
        count=st.integers(0, 10),
        typed=st.booleans(),
        uses=st.lists(
            st.builds(UseView, sid=st.text(), call_id=st.text(), action_hash=st.text(), ts=st.text()), max_size=3
        ),
        ended=st.sampled_from(["", "revoked", "expired", "used up"]),
        sid=st.text(),
        approval_id=st.text(),
    )
)
def test_every_use_has_its_line(rule: GrantView) -> None:
    told = grant_lines.facts(rule, {}, NOW)
    lines = [text for _, text in told[len(told) - len(rule.uses) :]]
    assert sorted(f"call {use.call_id}, action {use.action_hash[:12]}" for use in rule.uses) == sorted(
        text[text.index(f"call {use.call_id}, action") :]
        for text, use in zip(lines, sorted(rule.uses, key=lambda use: use.ts, reverse=True), strict=True)
    )
    assert safe(grant_lines.line(rule, {}, NOW)).isprintable()
