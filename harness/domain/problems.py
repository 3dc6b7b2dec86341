"""The one table of trouble in words: what is wrong, what happens next by itself and when, and what a person can do.

Everything that can hold a session or the fleet up has an entry: what a session's worker meets (`SESSION`, by way of the
code of a refusal through `CODES`), why an agent waits (`PARKED`), what a request asks (`REQUESTS`), and what concerns
the whole fleet (`FLEET`). Rows, the session screen, the queue, the footer and ``doctor`` read it here and nowhere else.
Pure.
"""

from __future__ import annotations

import msgspec

from harness.domain.calls.approval_kind import Request
from harness.domain.states import ParkedFor

FAILURES = 3
"""So many failures in a row within a minute, and a session is held until its user wants it again."""


class Words(msgspec.Struct, frozen=True):
    """One trouble. ``person``: it waits for somebody; ``mend``: it goes on by itself once somebody has mended what is
    named; otherwise it ends by itself and is no failure.

    ``action`` is the id of the key's action and ``command`` the command line that does what ``do`` says; ``{sid}``
    stands for the session.
    """

    headline: str
    next: str
    do: str = ""
    action: str = ""
    command: str = ""
    person: bool = False
    mend: bool = False


class Trouble(msgspec.Struct, frozen=True):
    """A trouble at hand: its ``kind`` in `SESSION`, and its ``cause`` in the words of whatever reported it (untrusted).

    False when there is none.
    """

    kind: str = ""
    cause: str = ""

    def __bool__(self) -> bool:
        return bool(self.kind)

    @property
    def words(self) -> Words:
        return SESSION.get(self.kind, SESSION["refused"])

    def __str__(self) -> str:
        return f"{self.words.headline}: {self.cause}" if self.cause else self.words.headline


NONE = Trouble()

_AGAIN = "it is tried again by itself, with growing pauses of at most a minute"
_RESUME = ("resume it", "session.resume", "watchfloor resume {sid}")

HOLD_STRICTLY = (
    "start the supervisor in a group of its own (systemd-run --user --scope -p Delegate=yes watchfloor supervisor"
    " start), or write strict = false under [limits]"
)

SESSION: dict[str, Words] = {
    "no_space": Words(
        "the disk is full",
        "it is tried again every few seconds, and everything goes on once there is room",
        "free some space",
    ),
    "scarce": Words(
        "no open file, process or memory was to be had",
        "it is tried again every few seconds, and everything goes on once something ended",
        "stop something, or raise the limit that is named (ulimit -n, ulimit -u) for the supervisor",
    ),
    "locked": Words(
        "another git is at work in its repository",
        "it is tried again every few seconds, and goes on once that one is done",
        "if none is at work there, remove the lock file that is named",
    ),
    "disk": Words("the disk refuses", _AGAIN, "look at the disk and at the permissions of the state folder"),
    "unwritable": Words(
        "its log cannot be written any more: the disk failed",
        "nothing more of it runs; what it did until then is safe",
        "mend the disk, then end the process that keeps its log (its number is in: watchfloor logs {sid}); it is"
        " started anew by itself",
        command="watchfloor logs {sid}",
        person=True,
    ),
    "damaged": Words(
        "its log is damaged",
        "nothing more of it runs; what can be read of it stays readable",
        "see where it is damaged, and bring that file back from a copy",
        command="watchfloor verify {sid}",
        person=True,
    ),
    "newer": Words(
        "a newer Watchfloor wrote its log",
        "nothing more of it runs under this version",
        "upgrade watchfloor",
        person=True,
    ),
    "foreign": Words(
        "its worktree is another session's",
        "it can be looked at here; nothing of it runs",
        "where the fleet of that one is gone, take it over",
        command="watchfloor adopt",
        person=True,
    ),
    "silent": Words(
        "its log's process does not answer", _AGAIN, "see whether a process of it is stopped or its disk hangs"
    ),
    "gone": Words(
        "no contact with its log's process",
        "it is called again, and started anew if it is gone; nothing that was recorded is lost",
    ),
    "starting": Words("its log's process could not be started", _AGAIN),
    "unclear": Words(
        "its record could not be understood",
        _AGAIN,
        "see whether all parts are of one version",
        command="watchfloor doctor",
    ),
    "still": Words(
        "its folder, worktree or repository does not answer",
        "nothing more of it runs, so that nobody else is held up",
        "see to its disk, then resume it",
        *_RESUME[1:],
        person=True,
    ),
    "gave_up": Words(
        "given up for now",
        f"after {FAILURES} failures in a row within a minute it is tried every two minutes, or once you resume it",
        *_RESUME,
        mend=True,
    ),
    "set_aside": Words(
        "set aside after failing again and again", "nothing is tried any more until you say so", *_RESUME, person=True
    ),
    "ground": Words(
        "its worktree or git is broken",
        "no reply is paid for meanwhile; it goes on by itself once that is mended",
        "mend what is named; to look again at once, resume it",
        *_RESUME[1:],
        mend=True,
    ),
    "limits": Words(
        "this machine cannot hold its limits strictly",
        "no call and no request of it begins; it goes on by itself once they hold, or strict is false",
        f"{HOLD_STRICTLY}; see what is missing",
        command="watchfloor doctor",
        mend=True,
    ),
    "brain": Words(
        "its agent's process failed", "it is tried again by itself, with growing pauses of at most five minutes"
    ),
    "brain_lasting": Words(
        "its agent's process fails again and again",
        "it is tried again by itself every five minutes, or at once when you resume it",
        *_RESUME,
        mend=True,
    ),
    "frozen": Words(
        "its agent's process is stopped",
        "after a minute another one takes its place by itself; a reply that this one had asked for counts as paid, and"
        " nothing is done twice",
    ),
    "mute": Words(
        "its log's process does not answer",
        "when it is stopped it is ended after a minute, otherwise after five, and another one goes on from the log;"
        " nothing that was recorded is lost",
    ),
    "mute_disk": Words(
        "its log's process waits for its disk",
        "it goes on by itself once the disk answers; nothing that was recorded is lost",
        "see to its disk",
    ),
    "vault": Words(
        "what keeps its states for undo does not answer",
        "another one is asked: within seconds when it is stopped, otherwise after a minute; if that one cannot say"
        " either, you are asked",
    ),
    "defect": Words(
        "Watchfloor itself made an error with it",
        "it is tried again by itself; if it goes on, you are asked",
        "see what it was",
        "session.why",
    ),
    "replaced": Words("another supervisor has taken over", "this one leaves and the other one goes on with everything"),
    "refused": Words("a step of it was refused", _AGAIN),
    "worktree": Words(
        "its worktree or git does not work",
        "the call is not made, and its agent is told",
        "see what git says, and mend it",
        command="watchfloor logs {sid}",
    ),
    "ledger": Words(
        "spending cannot be recorded",
        "it asks no model before that works again; it is tried again by itself",
        "see why",
        command="watchfloor doctor",
    ),
    "unread": Words("not read yet", "it is read as soon as somebody looks at it"),
}

_CODES = {
    "no_space": "no_space",
    "scarce": "scarce",
    "disk": "io unusable no_folder",
    "unwritable": "poisoned",
    "damaged": "damaged",
    "foreign": "foreign",
    "newer": "newer",
    "silent": "lost already_running timeout",
    "still": "stands_still",
    "mute": "mute unsure",
    "gone": "shutting_down not_started stopping",
    "starting": "died spawn",
    "unclear": "protocol proto identity bad_record bad_frame internal error unknown_op hello_first forbidden bad_op",
    "ground": "held",
    "limits": "limits_not_held",
    "replaced": "stale_epoch",
    "ledger": "ledger unknown_reservation",
    "worktree": (
        "workspace not_a_repository git_too_old git_missing git_failed partial_clone branch_exists worktree_exists"
        " damaged_worktree publish_failed too_much cannot_keep cannot_move not_followed repository_busy no_shfmt"
        " remote_unreachable"
    ),
    # What a client or an agent asked for and did not get: its message says why and its hint what to do, and nothing is
    # held up by it.
    "refused": (
        "ambiguous archived bad_caps bad_check bad_edit bad_goal bad_grant bad_name bad_option bad_pattern bad_phrase"
        " bad_plan bad_request bad_role bad_start bad_value blind brain_hello_first busy cancelled cannot_start cap"
        " conflict denied ended expired gone name_taken no_alarm no_commits no_repo no_worktree not_ended not_found"
        " not_git not_kept not_open not_ready not_running not_undone nothing other_host paused poison refused"
        " stale stale_lease submodule too_large uncommitted undeleted unexamined unreadable unsaved untyped yours"
    ),
}
CODES: dict[str, str] = {code: kind for kind, codes in _CODES.items() for code in codes.split()}
"""Kinds by the code of a refusal (`OpError`) that a session's worker met."""

CHECKS_FIRST = Words(
    "runs its checks before the work",
    "its agent begins when they are done",
    "skip them: what they said before the work stays unknown",
    *_RESUME[1:],
)

PARKED: dict[str, Words] = {
    ParkedFor.APPROVAL: Words(
        "waits for your decision",
        "nothing of it runs before you answer",
        "answer it",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    ParkedFor.QUESTION: Words(
        "waits for your answer",
        "it goes on as soon as you answer",
        "answer it",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    ParkedFor.PAUSED: Words("paused by you", "it stays as it is until you resume it", *_RESUME, person=True),
    ParkedFor.CAP: Words(
        "has reached a cap",
        "it spends nothing more before you decide",
        "raise the cap, or let it finish up",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    ParkedFor.LIMITED: Words("waits for the model's endpoint", "it asks again by itself at the time shown"),
    ParkedFor.JOB: Words("waits for a job", "it goes on by itself when the job ends, or when you write to it"),
    ParkedFor.AUTH: Words(
        "its key was refused",
        "it goes on once there is a key that works",
        "set the right key, then retry",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    ParkedFor.ENDPOINT: Words(
        "its endpoint refuses to work for it",
        "it goes on once that is mended and somebody says retry",
        "see what the endpoint says, then retry",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    ParkedFor.BREAKER: Words(
        "went in circles",
        "nothing more of it runs before you answer",
        "tell it what to do, or stop it",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    ParkedFor.REFUSAL: Words(
        "the model refused",
        "nothing of it runs before you answer",
        "answer with other words; the same words are likely to be refused again",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    ParkedFor.JUDGE: Words(
        "its judge is not satisfied",
        "nothing of it runs before you answer",
        "tell the agent what to do, or take the work as finished",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    ParkedFor.HISTORY: Words(
        "its endpoint refuses its conversation",
        "the same is not sent again by itself",
        "let it begin anew with a hand-off from its log: nothing is lost",
        "go.queue",
        "watchfloor continue {sid} --fresh",
        person=True,
    ),
    ParkedFor.BILL: Words(
        "its endpoint reports a usage that cannot be",
        "its replies are used; nothing more is asked of it before you say so",
        "believe it as far as it can be, or stop the session",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    ParkedFor.ERROR: Words(
        "could not go on",
        "nothing is tried before you say so",
        "retry or stop it, or let it begin anew",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    Request.PROTECTED: Words(
        "asks what decides whether its work is done",
        "its checks ran on the originals; nothing more happens before you say what counts",
        "allow its changes to count, or keep the originals",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    Request.GATE: Words(
        "a phase of its plan waits for your word",
        "nothing of that phase happens before you say so",
        "let it begin, or keep it waiting",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    Request.PLAN: Words(
        "wrote a plan, which waits for your word",
        "no work begins before you say so",
        "accept it, or say what is missing",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    "stopping": Words("waits for the supervisor", "it goes on when the supervisor is there again"),
    Request.IN_DOUBT: Words(
        "does not know whether a call happened",
        "nothing more of it runs before you say so",
        "say what happened",
        "go.queue",
        "watchfloor approvals",
        person=True,
    ),
    "no_space": SESSION["no_space"],
    "ledger": SESSION["ledger"],
}
"""Why an agent waits without a process (`session.parked`), and what an open request of a kind means for its session."""
ALARM = Words(
    "wants a look",
    "it goes on meanwhile",
    "see what it does; tell it something, pause it, or put the alarm off",
    command="watchfloor snooze {sid}",
)
FAILED = Words(
    "failed",
    "nothing more of it runs; its worktree, branch and log stay",
    "continue it with words, rounds, a higher cap or another check; or remove it",
    "session.continue",
    "watchfloor continue {sid} TEXT",
    person=True,
)
"""A session that ended without reaching its goal."""
HELD = "held"
RINGS = "rings"
NO_REQUEST = (HELD, RINGS)
"""Kinds of queue items that are no requests: a session that something holds up or that failed, and one that goes on and
wants a look.
"""
_REQUESTED: dict[str, str] = {Request.TOOL: ParkedFor.APPROVAL, Request.RESTART: ParkedFor.ERROR}

REQUESTS: dict[str, str] = {
    Request.TOOL: "wants to",
    Request.CAP: "cap reached",
    Request.AUTH: "needs a key",
    Request.ENDPOINT: "endpoint refuses",
    Request.IN_DOUBT: "in doubt",
    Request.QUESTION: "asks",
    Request.REFUSAL: "the model refused",
    Request.RESTART: "could not go on",
    Request.HISTORY: "conversation refused",
    Request.BILL: "bill that cannot be",
    Request.PROTECTED: "what decides",
    Request.GATE: "gate",
    Request.PLAN: "wrote a plan",
}
"""What a request is about, in front of its title."""

PARTS: dict[str, str] = {
    "brain": "its agent's process",
    "supervisor": "Watchfloor itself",
    "model": "the model",
    "keeper": "the process that keeps its log",
}
"""What failed, when a session was set aside."""

FLEET: dict[str, Words] = {
    "disk": Words(
        "disk almost full", "agents wait when it is full, and go on by themselves once there is room", "free some space"
    ),
    "ledger": Words(
        "spending cannot be recorded",
        "no agent asks a model before that works again; tools and decisions go on",
        "mend what is said here, then restart the supervisor; what was spent stays counted",
        command="watchfloor supervisor stop --sessions leave",
        person=True,
    ),
    "policy": Words(
        "the policy file is wrong",
        "it goes on without the file, which is read again as soon as it changes",
        "mend the file",
        person=True,
    ),
    "config": Words(
        "the configuration is wrong",
        "it goes on without the file, which is read again as soon as it changes",
        "mend the file",
        person=True,
    ),
    "exposed": Words(
        "others may change what you have set, or read your key",
        "it is used as it is: who changes the policy decides what is asked, who changes the address gets the key",
        "take their access away: chmod o-rwx",
        person=True,
    ),
    "watch": Words("changed settings are seen late", "the files are looked at every few seconds instead"),
    "last-good": Words(
        "no copy of the settings can be kept",
        "what is in force stays in force; a copy is tried again when the file changes",
    ),
    "index": Words(
        "the index cannot be written", "ended sessions are read from their logs at the next start, which takes longer"
    ),
    "sandbox": Words(
        "tools do not run: no working sandbox",
        "agents think on, and each call is refused",
        "see why",
        command="watchfloor doctor",
        person=True,
    ),
    "warning": Words("not everything holds here", "the fleet goes on"),
}
"""What concerns every session (`FleetView`); an endpoint that does not answer has its own sentence
(`endpoints.sentence`).
"""


def of_code(code: str, cause: str) -> Trouble:
    """The trouble that a refusal with this code is for a session."""
    return Trouble(CODES.get(code, "refused"), cause)


def parked(why: str) -> Words:
    """Why an agent waits; a reason that this version does not know is shown as it is."""
    return PARKED.get(why) or Words(why.replace("_", " "), "this version does not know what comes next")


def held(trouble: Trouble) -> Words:
    """The words of a trouble after which nothing is tried any more, whatever kind it is."""
    own = trouble.words
    aside = SESSION["set_aside"]
    return own if own.person else msgspec.structs.replace(aside, headline=own.headline)


def requested(kind: str) -> Words:
    """What an open request of this kind means for its session."""
    return parked(_REQUESTED.get(kind, kind))


def part(name: str) -> str:
    """A part of Watchfloor as a person calls it."""
    return PARTS.get(name, name)


def request(kind: str) -> str:
    """What a request is about, in front of its title."""
    if kind in NO_REQUEST:
        return "needs you" if kind == HELD else "wants a look"
    return REQUESTS.get(kind, kind.replace("_", " "))
