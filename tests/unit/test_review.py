"""The contract before the work: what counts as one, what comes next, and that nobody works without it."""

from __future__ import annotations

import contextlib
import json
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.agents import steps
from harness.brain import conversation
from harness.brain.layers import beginning
from harness.brain.review import agreement, allowance
from harness.brain.review.agreement import Agree, AskAuthor, KeepDraft
from harness.brain.review.allowance import Cost
from harness.brain.view import View
from harness.events import message_parts, messages_api
from harness.events import types as t
from harness.events.plan.contract_events import AGREES, PLANS
from harness.plan import contract
from harness.plan.contract import HEADINGS, NoAnswer, Talk
from harness.projections.apply import fold
from harness.projections.state import contract as standing
from harness.reports.describe import describe, group_of
from harness.roles import pinned
from harness.roles.role import JUDGE, PLANNER, parse
from harness.simulator import validate
from harness.supervisor.sessions.begin import casting
from tests.unit.test_brain_loop import World, text

GOOD = "\n\n".join(f"{heading}\n\n- so" for heading in HEADINGS)
YES = json.dumps({"objections": [], "agrees": True})
NO = json.dumps({"objections": ["too vague"], "agrees": False})
REF = t.BlobRef("0" * 64, 1)


# -- what counts as one ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_text", "says"),
    [
        ("", "empty"),
        ("I would begin with the tests.", "headings must be"),
        (GOOD.replace(HEADINGS[2], "## Later"), "headings must be"),
        ("\n\n".join([GOOD, "## One more\n\n- x"]), "headings must be"),
        (f"{HEADINGS[0]}\n\n{HEADINGS[1]}\n- a\n{HEADINGS[2]}\n- b", "nothing stands under"),
        (f"{GOOD}\n{'x' * contract.MOST}", "more than"),
        (GOOD, ""),
        (GOOD.upper().replace("- SO", "- so"), ""),
    ],
)
def test_a_reply_is_a_contract_or_it_is_said_why_not(given_text: str, says: str) -> None:
    found = contract.problem(given_text)
    assert (says in found) if says else found == ""


@given(
    st.text() | st.recursive(st.none() | st.booleans() | st.text(max_size=5), st.lists, max_leaves=5).map(json.dumps)
)
@example("[" * 30_000)
def test_whatever_the_evaluator_says_is_an_answer_or_none(reply: str) -> None:
    with contextlib.suppress(NoAnswer):
        assert all(contract.objections(reply))


def test_agreeing_beside_an_objection_is_objecting_and_disagreeing_without_one_is_no_answer() -> None:
    assert contract.objections(json.dumps({"objections": [" a \n b "], "agrees": True})) == ("a b",)
    with pytest.raises(NoAnswer):
        contract.objections(json.dumps({"objections": [" "], "agrees": False}))
    with pytest.raises(NoAnswer, match="no JSON"):
        contract.objections("[" * 20_000)


def test_the_schema_is_one_that_the_api_takes() -> None:
    body = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": "x"}],
        "output_config": {"format": {"type": "json_schema", "schema": contract.schema()}},
    }
    validate.check(body)


@given(st.text(max_size=200), st.lists(st.text(max_size=30), max_size=1000))
def test_the_goal_stands_in_the_brief_word_for_word_and_the_files_are_bounded(goal: str, files: list[str]) -> None:
    shown = contract.materials(goal, ["`t` exits with 0"], files)
    assert goal in shown
    assert len(shown) < len(goal) + 20_000


# -- what comes next -------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([GOOD, "no contract", YES, NO, "Fine with me."]), max_size=12), st.integers(0, 3))
def test_it_ends_whatever_they_say_and_asks_neither_more_often_than_it_says(words: list[str], revisions: int) -> None:
    talk = Talk()
    asked = {PLANS: 0, AGREES: 0}
    over = None
    for word in [*words, *[YES] * 20]:
        step = contract.following(talk, revisions)
        while isinstance(step, contract.Keep):
            talk = talk.kept(step.text)
            step = contract.following(talk, revisions)
        if isinstance(step, contract.Stands | contract.Stuck):
            over = step
            break
        planner = isinstance(step, contract.AskPlanner)
        asked[PLANS if planner else AGREES] += 1
        (talk.written if planner else talk.heard).append(word)
        for messages in (contract.for_planner("b", talk), contract.for_evaluator("b", talk) if talk.drafts else []):
            assert [m["role"] for m in messages] == [("user", "assistant")[i % 2] for i in range(len(messages))]
    assert over is not None
    assert asked[PLANS] <= contract.MOST_UNUSABLE * (revisions + 1)
    assert asked[AGREES] <= contract.MOST_UNUSABLE * (revisions + 1)
    if isinstance(over, contract.Stands):
        assert asked[AGREES] >= 1
        assert contract.problem(talk.drafts[-1]) == ""
        assert len(talk.drafts) <= revisions + 1


@given(
    st.lists(st.sampled_from([GOOD, "no contract", YES, NO, "Say two.", "Say three."]), max_size=16), st.integers(0, 2)
)
def test_what_a_person_says_reaches_the_planner_and_costs_no_revision(words: list[str], revisions: int) -> None:
    """Whatever comes while they talk: the contract that stands knows every word, or names those that it does not."""
    talk = Talk()
    asked = 0
    for word in [*words, *[GOOD, YES] * 20]:
        if word.startswith("Say"):
            talk.words.append(word)
            continue
        step = contract.following(talk, revisions)
        while isinstance(step, contract.Keep):
            talk = talk.kept(step.text)
            step = contract.following(talk, revisions)
        if isinstance(step, contract.Stands):
            assert talk.heeded == len(talk.words) or any("the person said: Say" in one for one in step.objections)
        if isinstance(step, contract.Stands | contract.Stuck):
            break
        if isinstance(step, contract.AskPlanner):
            asked += 1
            shown = json.dumps(contract.for_planner("b", talk))
            assert all(said in shown for said in talk.words)
            talk.known = len(talk.words)
            talk.written.append(word)
        else:
            assert not talk.unheeded or len(talk.written) >= contract.MOST_UNUSABLE
            talk.heard.append(word)
    assert asked <= contract.MOST_UNUSABLE * (revisions + 1 + len(talk.words))


def test_a_reply_that_was_on_its_way_when_a_person_spoke_does_not_know_the_words() -> None:
    asked = t.ModelRequest(
        request_id="r",
        attempt=1,
        model="m",
        reservation="x",
        reserved_nano=1,
        est_input=1,
        max_tokens=1,
        upto_seq=1,
        purpose=PLANS,
    )
    word = t.UserMessage(text="Call it two.", origin="human")
    talks = agreement.Agreement()
    for seq, body in enumerate([INTENT, OPENED, asked, word, spoke(PLANS, GOOD), DRAFTED]):
        talks.take(t.Record(seq, "", "x", 0, body), lambda b, _: list(b.parts))
    assert talks.talk.unheeded == ["Call it two."]
    assert isinstance(contract.following(talks.talk, 1), contract.AskPlanner)
    late = t.UserMessage(text="Too late.", origin="human")
    for seq, body in enumerate([AGREED, late], 6):
        talks.take(t.Record(seq, "", "x", 0, body), lambda b, _: list(b.parts))
    assert talks.talk.words == ["Call it two."]


# -- the log ---------------------------------------------------------------------------------------

INTENT = t.SessionIntent(
    name="n",
    goal="g",
    repo="/r",
    branch="b",
    worktree="/w",
    model="m",
    judge=t.JudgeWanted("m", 3),
    contract=t.ContractWanted("p", 1),
)
OPENED = t.ContractOpened(brief=REF, role="planner", version="v", model="p", evaluator="m", revisions=1)
DRAFTED = t.ContractDrafted(n=1, text=REF)
AGREED = t.ContractAgreed(text=REF, drafts=1)


def spoke(purpose: str, words: str = "x", stop: str = message_parts.DONE) -> t.ModelMessage:
    return t.ModelMessage(
        request_id="r",
        message_id="m",
        model="m",
        stop=stop,
        usage=t.Usage(input=7, output=3),
        cost_nano=5,
        parts=messages_api.parts_of([{"type": "text", "text": words}]),
        purpose=purpose,
    )


WHOLE: list[t.Body] = [INTENT, OPENED, spoke(PLANS), DRAFTED, spoke(AGREES), AGREED]


@given(st.lists(st.sampled_from(WHOLE[1:]), max_size=8))
def test_no_agreement_counts_without_a_brief_a_planner_a_draft_and_an_evaluators_word(made: list[t.Body]) -> None:
    now = standing.after(standing.Contract(), INTENT)
    for body in made:
        now = standing.after(now, body)
    wanted = iter(made)
    whole = all(any(body is one for one in wanted) for body in WHOLE[1:])
    assert now.due != (now.agreed is not None)
    assert now.due or whole, "all five, in this order, are there"


def test_another_text_than_the_newest_draft_is_no_contract() -> None:
    other = t.ContractAgreed(text=t.BlobRef("1" * 64, 1), drafts=1)
    state = fold(t.Record(i, "", "x", 0, body) for i, body in enumerate([*WHOLE[:-1], other]))
    assert state.contract.due
    assert not fold(t.Record(i, "", "x", 0, body) for i, body in enumerate(WHOLE)).contract.due


def test_nobody_may_use_a_tool_and_nothing_is_verified_before_it_stands() -> None:
    call = t.ToolProposed(call_id="c1.0", tool="write_file", ref="toolu_1")
    over = t.SessionEnded(outcome="done", reason="1 of 1 checks passed", verified=True)
    for upto in range(1, len(WHOLE) + 1):
        records = [t.Record(i, "", "x", 0, body) for i, body in enumerate(WHOLE[:upto])]
        state = fold(records)
        assert bool(pinned.refusal(state, call)) == (upto < len(WHOLE))
        ended = fold([*records, t.Record(upto, "", "x", 0, over)]).ended
        assert ended is not None
        assert not ended.verified


def test_its_records_have_words_of_one_line_and_are_talk() -> None:
    unmet = t.ContractAgreed(text=REF, drafts=2, objections=["name\nthe file"])
    for body in (*WHOLE[1:], unmet):
        line = describe(t.Record(0, "", "x", 0, body))
        assert "\n" not in line.summary
    assert "name" in describe(t.Record(0, "", "x", 0, unmet)).summary
    assert group_of("contract.agreed") == "talk"
    assert describe(t.Record(0, "", "x", 0, spoke(PLANS))).kind == PLANS


# -- the brain -------------------------------------------------------------------------------------


class Table(World):
    """A session that begins with a contract."""

    def __init__(self) -> None:
        super().__init__(checks=["t"])
        wanted = t.ContractWanted("p", 1)
        for view in (self.view, self.lean):
            view.state.contract = standing.Contract(wanted)

    def speak(self, purpose: str, words: str, stop: str = message_parts.DONE) -> None:
        step = self.step()
        assert isinstance(step, AskAuthor)
        assert step.purpose == purpose
        self.put(spoke(purpose, words, stop))
        self.relieve()

    def keep(self) -> KeepDraft:
        step = self.step()
        assert isinstance(step, KeepDraft)
        data = step.text.encode()
        ref = t.BlobRef(sha256(data).hexdigest(), len(data))
        self.blobs[ref.sha] = data
        self.put(t.ContractDrafted(n=step.n, text=ref, answers=list(step.answers)))
        self.relieve()
        return step

    def agree(self) -> t.ContractAgreed:
        step = self.step()
        assert isinstance(step, Agree)
        self.put(step.agreed)
        self.relieve()
        return step.agreed


def test_the_chain_holds_whoever_takes_over_between_two_records_and_only_the_contract_reaches_the_coder() -> None:
    """After each record the brain is replaced by one that knows no more than the log (`relieve`, `Table.step`)."""
    world = Table()
    assert isinstance(world.step(), steps.Wait)
    world.put(OPENED)
    world.speak(PLANS, "I would begin with the tests.")
    gone = t.ModelFailed(request_id="c5", attempt=1, kind="cut", message="gone", purpose=PLANS)
    world.put(msgspec.structs.replace(gone, usage=t.Usage(input=2), cost_nano=3, price_source="list"))
    step = world.step()
    assert isinstance(step, AskAuthor)
    assert (step.attempt, step.request_id) == (2, "c5")
    world.speak(PLANS, GOOD)
    assert world.keep().answers == ()
    world.speak(AGREES, "Fine with me.")
    world.speak(AGREES, NO)
    world.speak(PLANS, GOOD.replace("so", "so it is"), stop=message_parts.LENGTH)
    world.speak(PLANS, GOOD.replace("so", "thus"))
    assert world.keep().answers == ("too vague",)
    world.speak(AGREES, NO.replace("vague", "long"))
    agreed = world.agree()
    assert (agreed.drafts, agreed.objections, agreed.requests, agreed.cost_nano) == (2, ["too long"], 7, 38)
    assert not world.view.models
    shown = "\n\n".join(words for _, words in beginning(world.view))
    assert "- thus" in shown
    assert "too long" in shown
    assert shown.index("Done criteria") < shown.index("- thus")
    assert "Fine with me" not in shown
    world.ask()
    assert conversation.Talk().build(world.view).encoded.count(b"- thus") == len(HEADINGS), "once, whole"
    world.reply("end_turn", text("Done."))


def test_a_planner_that_writes_none_is_a_question_and_a_retry_asks_it_anew() -> None:
    world = Table()
    world.put(OPENED)
    for _ in range(contract.MOST_UNUSABLE):
        world.speak(PLANS, "no")
    step = world.step()
    assert isinstance(step, steps.Park)
    assert step.why == "error"
    world.put(t.SessionParked(why=step.why, detail=step.detail))
    world.lease()
    world.speak(PLANS, GOOD)
    assert isinstance(world.step(), KeepDraft)


def test_a_session_told_to_finish_up_asks_for_no_contract_any_more() -> None:
    world = Table()
    world.put(OPENED, t.FinishUp(allowance_nano=1))
    world.ask()


@pytest.mark.parametrize(
    ("kind", "message", "times", "kind_of_step"),
    [
        ("overloaded", "no", 9, AskAuthor),
        ("refused", "no", 1, steps.Park),
        ("too_long", "prompt is too long: 9 tokens", 1, steps.Park),
        ("max_tokens", "cut", 2, AskAuthor),
        ("max_tokens", "cut", 3, steps.Park),
    ],
)
def test_failures_wait_at_the_gate_or_ask_and_never_agree(
    kind: str, message: str, times: int, kind_of_step: type
) -> None:
    view = View()
    view.state.contract = standing.Contract(t.ContractWanted("p", 1), OPENED)
    failed = t.ModelFailed(request_id="c", attempt=1, kind=kind, message=message, purpose=PLANS)
    view.agreement.failures = [failed] * times
    assert isinstance(agreement.next_step(view.agreement, view.state.contract), kind_of_step)


def test_review_casts_planner_and_judge(tmp_path: Path) -> None:
    class Wish:
        role = ""
        judge = False
        review = True
        judge_model = ""
        judge_cycles = 0
        judge_at = ""
        plan_from_goal = ""

    made = casting.of_launch(tmp_path, Wish())
    assert made.contract("m") == t.ContractWanted("m", 1)
    assert made.judge("m", "end") is not None
    Wish.review = False
    none = casting.of_launch(tmp_path, Wish())
    assert (none.contract("m"), none.judge("m", "end")) == (None, None)


# -- what a role may spend -------------------------------------------------------------------------


_PURPOSES = st.sampled_from([PLANS, AGREES, "judge", "", "summary"])


@given(st.lists(st.tuples(_PURPOSES, st.integers(0, 90), st.sampled_from(["answered", "unknown", "paid"]))))
def test_what_a_role_spent_is_never_counted_too_low(made: list[tuple[str, int, str]]) -> None:
    spent = allowance.Spent()
    least = {PLANNER: Cost(), JUDGE: Cost()}
    for purpose, nano, end in made:
        spent.take(
            t.ModelRequest(
                request_id="r",
                attempt=1,
                model="m",
                reservation="x",
                reserved_nano=nano + 10,
                est_input=1,
                max_tokens=9,
                upto_seq=0,
                purpose=purpose,
            )
        )
        failed = t.ModelFailed(request_id="r", attempt=1, kind="cut", message="", purpose=purpose)
        if end == "unknown":
            spent.take(failed)
        elif end == "paid":
            usage = spoke(purpose).usage
            spent.take(msgspec.structs.replace(failed, usage=usage, cost_nano=nano, price_source="list"))
        else:
            spent.take(msgspec.structs.replace(spoke(purpose), cost_nano=nano))
        if purpose in allowance.PART:
            known = Cost(nano, spoke(purpose).usage.total)
            least[allowance.PART[purpose]] += Cost(nano + 10, 10) if end == "unknown" else known
    assert {part: spent.of(part) for part in least} == least


_COSTS = st.builds(Cost, st.integers(0, 10**10), st.integers(0, 2000))


@given(_COSTS, _COSTS)
def test_a_role_passes_its_limits_with_no_request(spent: Cost, next_one: Cost) -> None:
    def over(limits: str) -> bool:
        role = parse("mine", f'tools = []\nprompt = "x"\n[limits]\n{limits}\n', "mine.toml")
        return bool(allowance.refusal(role, spent, next_one))

    of_money = spent.nano + next_one.nano > 5 * 10**9
    of_tokens = spent.tokens + next_one.tokens > 1000
    assert over("usd = 5") == of_money
    assert over("tokens = 1000") == of_tokens
    assert over("usd = 5\ntokens = 1000") == (of_money or of_tokens)
    assert not over("")
