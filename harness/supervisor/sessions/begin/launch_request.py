"""What a launch asks for, looked at before anything is made. Blocking."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from harness.domain import path_patterns
from harness.events.plan.evaluation_events import AT_END, AT_TASK
from harness.events.plan.iteration_events import NEVER
from harness.events.plan.masked_check_events import MaskedCheck
from harness.linux.scarce import scarce
from harness.plan import progress
from harness.plan.files import phrases
from harness.plan.files.formats import BadPlan, Plan
from harness.protocol.config.choices import FRESH, JUDGE_AT, MOST_EVIDENCE_ROUNDS
from harness.protocol.config.credential import Credential
from harness.protocol.config.sections import PlanConfig
from harness.protocol.session_names import SessionName
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls.repository import project_rules
from harness.supervisor.calls.work import plans
from harness.supervisor.endpoints.credentials import given_credential, unusable
from harness.supervisor.sessions.begin import phrase_bindings
from harness.supervisor.sessions.begin.phrase_bindings import Bindings, Known
from harness.supervisor.sessions.begin.starting import starting_at
from harness.tools import registry, validation
from harness.views.launch_request import LaunchRequest
from harness.views.replies import PhrasesLook
from harness.workspace.clone import repository_notes
from harness.workspace.facts import masked_checks
from harness.workspace.git import branch_names
from harness.workspace.git.errors import GitFailed, NotARepository, WorkspaceError
from harness.workspace.git.merge_rules import OWN
from harness.workspace.git.run import Git, Repository, head_commit, open_repository
from harness.workspace.tree import worktrees

MAX_GOAL = 256 * 1024
MAX_NAME = 60
MAX_CHECKS = 50
_NOTHING = Known()
_NOTES = 20
"""Lines said of what a plan holds and is not read."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A request that can be carried out."""

    request: LaunchRequest
    repo: Path
    common: Path
    """The git directory that all worktrees of the repository share."""
    credential: Credential | None
    bound: Bindings
    """The phrases that count for it."""
    checks: tuple[str, ...] = ()
    start: str = ""
    """The commit that was named."""
    masked: tuple[MaskedCheck, ...] = ()
    """What is wrong with its checks, but for those that it writes itself."""
    prefix: str = OWN[0]
    """What the session's branch begins with."""
    notes: tuple[str, ...] = ()
    """What was found of the repository and what is done about it, a line each."""


def parse(arguments: Mapping[str, object]) -> LaunchRequest:
    """Raises OpError ``bad_request`` naming the field."""
    try:
        return msgspec.convert(
            {k: v for k, v in arguments.items() if k in LaunchRequest.__struct_fields__}, LaunchRequest
        )
    except msgspec.ValidationError as exc:
        raise OpError("bad_request", f"launch: {exc}") from exc


def check(request: LaunchRequest, known: Known = _NOTHING) -> Checked:
    """Look at the repository and the texts (blocking). Raises OpError with a code for each thing that can be wrong."""
    if not request.goal.strip():
        raise OpError("bad_goal", "the goal is empty", "say what the agent should achieve")
    if len(request.goal.encode("utf-8", "replace")) > MAX_GOAL:
        raise OpError(
            "bad_goal",
            f"the goal is longer than {MAX_GOAL // 1024} KiB",
            "put the details into a file of the repository and name it",
        )
    if len(request.name) > MAX_NAME or any(ord(c) < 32 for c in request.name):
        raise OpError("bad_name", f"a name has at most {MAX_NAME} characters and no control characters")
    if SessionName.parse(request.name.strip()).host:
        raise OpError("bad_name", "this name reads as the id of a session on another machine", "choose another name")
    if len(request.checks) > MAX_CHECKS:
        raise OpError("bad_check", f"more than {MAX_CHECKS} checks")
    for command in request.checks:
        if problem := validation.validate(registry.CHECK, {"command": command}):
            raise OpError("bad_check", problem)
    for pattern in (*request.protect, *request.may_change):
        if problem := path_patterns.problem(pattern):
            raise OpError("bad_pattern", problem)
    if request.caps is not None and any(v is not None and v < 0 for v in msgspec.structs.astuple(request.caps)):
        raise OpError("bad_caps", "a cap must not be negative")
    if request.fresh and request.fresh not in FRESH:
        raise OpError("bad_request", f"fresh must be one of {', '.join(FRESH)}")
    if request.judge_at and request.judge_at not in JUDGE_AT:
        raise OpError("bad_request", f"judge_at must be one of {', '.join(JUDGE_AT)}")
    if not 0 <= (request.evidence_rounds or 0) <= MOST_EVIDENCE_ROUNDS:
        raise OpError("bad_request", f"evidence_rounds is 0 to {MOST_EVIDENCE_ROUNDS}, not {request.evidence_rounds}")
    if request.base_url and (problem := unusable(request.base_url)):
        raise OpError("bad_request", problem)
    begin = _begin(request)
    if request.plan_from_goal:
        _to_be_written(begin, request)
    _fits_its_plan(request)
    bound = phrase_bindings.bindings(begin.git, begin.repository.common, begin.commit, request, known)
    plan = _plan(begin, request.plan, request.gates, bound.phrases) if request.plan else None
    checks = tuple(dict.fromkeys([*request.checks, *(plan.checks if plan is not None else ())]))
    credential = given_credential(request.credential)
    found = _found(begin)
    prefix, notes = _named(begin)
    unread = _unread(begin, request.plan, plan.plan) if plan is not None else ()
    notes += (*found, *_rules(begin), *unread, *bound.notes)
    masked = tuple(masked_checks.look(begin.repository.git_dir, begin.commit, checks))
    return Checked(
        request=request,
        repo=begin.asked,
        common=begin.repository.common,
        credential=credential,
        bound=bound,
        checks=checks,
        start=begin.start,
        masked=masked,
        prefix=prefix,
        notes=notes,
    )


def phrases_of(request: LaunchRequest, known: Known) -> PhrasesLook:
    """Which phrases a person may bind before this launch. Raises OpError."""
    begin = _begin(request)
    bound = phrase_bindings.bindings(begin.git, begin.repository.common, begin.commit, request, known)
    plan = _plan(begin, request.plan, [], bound.phrases).plan if request.plan else None
    return phrase_bindings.look(begin.git, begin.commit, plan, bound)


@dataclass(frozen=True, slots=True)
class _Begin:
    """What a session begins from: the folder that was ``asked`` for, its repository, and a commit, which is ``start``
    when a person named it.
    """

    asked: Path
    repository: Repository
    commit: str
    start: str = ""

    @property
    def git(self) -> Git:
        return Git.of(self.repository.git_dir)


def _begin(request: LaunchRequest) -> _Begin:
    """Look once, so that all that is said is said of one commit. Raises OpError."""
    asked = repository_at(Path(request.repo))
    repository = open_repository(asked)
    start = starting_at(asked, request.start) if request.start else ""
    return _Begin(asked, repository, start or head_commit(repository), start)


def _found(begin: _Begin) -> list[str]:
    """What the session gets otherwise than the person has it. Raises OpError ``partial_clone``."""
    repository = begin.repository
    try:
        found = repository_notes.look(repository, begin.commit)
        if not repository.bare and begin.asked != repository.root:
            if folder := worktrees.folder_of(repository, begin.asked, begin.commit):
                found.insert(0, f"launched from {folder}: commands and checks run there")
            else:
                told = f"{begin.asked} is not in commit {begin.commit[:12]}: commands and checks run at the top"
                found.insert(0, told)
        return found
    except WorkspaceError as exc:
        raise OpError(exc.code, str(exc)) from exc


def _rules(begin: _Begin) -> list[str]:
    """What the session is not shown of the project's rules."""
    try:
        return project_rules.left_out(begin.git, begin.commit)
    except GitFailed:  # objects that are not there: the worktree says so
        return []


def _named(begin: _Begin) -> tuple[str, tuple[str, ...]]:
    """What the session's branch begins with, and what is to be said of it. Raises OpError ``branch_exists``."""
    try:
        prefix, taken = branch_names.prefix(begin.git)
    except WorkspaceError as exc:
        raise OpError(exc.code, str(exc)) from exc
    return prefix, (f"{taken} leaves no room for {OWN[0]}…, so its branch begins with {prefix}",) if taken else ()


def _fits_its_plan(request: LaunchRequest) -> None:
    """Raise OpError ``bad_plan`` when something is said about a plan that is not there."""
    if request.accept_plan and not request.plan_from_goal:
        why = "a plan that the agent writes is accepted unseen, and it is to write none"
        raise OpError("bad_plan", why, "let it write one with --plan-from-goal, or leave --yes-plan out")
    if request.plan or request.plan_from_goal:
        return
    if request.gates:
        raise OpError("bad_plan", "a gate belongs to a phase of a plan, and no plan is given", "name it with --plan")
    if request.fresh:
        why = "--fresh says when the context of a plan begins anew, and no plan is given"
        raise OpError("bad_plan", why, "name it with --plan, or leave --fresh out")


def judge_at(request: LaunchRequest, config: PlanConfig, fresh: str) -> str:
    """When the judge looks. Raises OpError ``bad_plan`` when tasks are to be judged and none are given out."""
    if fresh != NEVER and (request.plan or request.plan_from_goal):
        return request.judge_at or config.judge_at
    if request.judge_at == AT_TASK:
        why = "a judge looks at tasks only where a plan is worked through task by task"
        raise OpError("bad_plan", why, "name one with --plan, with --fresh per-task; or judge at the end")
    return AT_END


def _to_be_written(begin: _Begin, request: LaunchRequest) -> None:
    """Raise OpError ``bad_plan`` when the session cannot write its plan there."""
    path = request.plan_from_goal
    if request.plan:
        raise OpError("bad_plan", "a plan is given and one is to be written", "use one of the two")
    if PurePosixPath(path).is_absolute() or ".." in path.split("/") or not path.endswith(".json") or "\0" in path:
        raise OpError("bad_plan", f"{path} is no place for a plan", "name a .json file of the repository")
    with contextlib.suppress(GitFailed):
        begin.git.run("cat-file", "-e", f"{begin.commit}:{path}")
        raise OpError("bad_plan", f"{path} is there already", f"work on it with --plan {path}, or name another file")


class _Planned(NamedTuple):
    """A plan as it is read, and the commands that decide it."""

    plan: Plan
    checks: list[str]


def _plan(begin: _Begin, path: str, gates: list[str], bindings: Mapping[str, str]) -> _Planned:
    """The plan at this path of the commit it begins from. Raises OpError ``bad_plan``."""
    commit = begin.commit
    if begin.git.call("cat-file", "-e", f"{commit}:{path}", ok=(0, 1, 128))[0]:
        raise _no_plan(begin.repository.root, path, commit)
    try:
        plan = phrases.bound(plans.read_at(begin.git, commit, path), bindings)
        found = progress.checks(plans.entries(plan))
    except (BadPlan, WorkspaceError) as exc:
        hint = f"mend it and commit that; this says what is wrong with it: watchfloor spec check {path}"
        raise OpError("bad_plan", f"{path} at commit {commit[:12]} is no plan: {exc}", hint) from exc
    try:
        return _Planned(plan, progress.checks(plans.entries(plan, gates)) if gates else found)
    except BadPlan as exc:
        hint = "name a phase of the plan before the =, or none for the whole plan"
        raise OpError("bad_plan", f"a --gate does not fit {path}: {exc}", hint) from exc


def _unread(begin: _Begin, path: str, plan: Plan) -> tuple[str, ...]:
    """What the plan holds that looks as if it were meant and is not read, and phrases that no command decides."""
    told = [f"{path}: {text}" for text in (*plan.unread, *plan.notes)]
    return (*told, *map(phrase_bindings.told, phrase_bindings.offered(begin.git, begin.commit, plan)))[:_NOTES]


def _no_plan(root: Path, path: str, commit: str) -> OpError:
    """That the commit it begins from has no such file, and what to do."""
    hint = "name a file of the repository by its path from the top"
    inside = not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts
    if inside and (root / path).is_file():
        hint = f"it lies in {root}, and a session begins from a commit: commit it first"
    return OpError("bad_plan", f"there is no plan {path} in commit {commit[:12]}", hint)


def repository_at(path: Path) -> Path:
    """The real path of a repository that has a commit. Raises OpError."""
    if not path.is_absolute():
        raise OpError("no_repo", f"{path} is not an absolute path")
    try:
        if not path.exists():
            raise OpError("no_repo", f"{path} does not exist", "name a folder that is a git repository")
        if not path.is_dir():
            raise OpError("no_repo", f"{path} is not a directory", "name the folder of a git repository")
        repository = open_repository(path)
        head_commit(repository)
    except OSError as exc:
        if scarce(exc):
            raise
        raise OpError("no_repo", f"{path} cannot be looked at: {exc.strerror}", "name another folder") from exc
    except NotARepository as exc:
        raise OpError("not_git", str(exc)) from exc
    except WorkspaceError as exc:
        raise OpError(exc.code, str(exc)) from exc
    return Path(os.path.realpath(path))
