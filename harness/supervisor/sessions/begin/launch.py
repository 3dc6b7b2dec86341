"""Launching: everything that can be wrong is said before anything is made; then the intent is durable; then the
worktree is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.domain.cap import OF_SESSION
from harness.domain.problems import Trouble
from harness.domain.states import State
from harness.domain.text.formatting import counted
from harness.eventlog import blobs
from harness.events import types as t
from harness.keeper.loop.requests import TakeState
from harness.plan import draft
from harness.plan.files import phrases
from harness.plan.files.formats import read
from harness.protocol.config.api_key import DEFAULT_BASE_URL
from harness.protocol.config.api_key import base_url as configured_url
from harness.protocol.paths import FolderError, Folders, ensure_private
from harness.roles import pinned
from harness.roles.role import INITIALIZER
from harness.supervisor.base import ids
from harness.supervisor.base.errors import Later, LinkLost, OpError, for_now
from harness.supervisor.base.settings import Settings
from harness.supervisor.base.threads import StandsStill, Threads, at_home
from harness.supervisor.calls.on_record import put_blob
from harness.supervisor.calls.repository import project_rules, repository_policy
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.calls.work import plans, progress, results
from harness.supervisor.endpoints.credentials import Credentials
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.supervisor.sessions.begin import casting, forking, phrase_bindings
from harness.supervisor.sessions.begin.casting import Cast
from harness.supervisor.sessions.begin.launch_request import Checked, check, judge_at, parse, phrases_of, repository_at
from harness.supervisor.sessions.begin.phrase_bindings import Known
from harness.supervisor.sessions.begin.starting import starts
from harness.supervisor.sessions.keepers import Keepers
from harness.views.launch_request import LaunchRequest
from harness.views.replies import PhrasesLook
from harness.workspace.git.errors import GitMissing, WorkspaceError
from harness.workspace.git.merge_rules import OWN
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.protected import inherited
from harness.workspace.protected.inherited import Other
from harness.workspace.tree import worktrees

T = TypeVar("T")
_AGAIN_S = 10.0
_IN_FOLDER = (
    "You start in the folder {folder} of the repository: commands and checks run there, and every relative path of a"
    " call (a cwd, the paths of file tools) counts from there. The top of the worktree is {top}."
)
_DENIED = (
    "Your role denies you {what}: it is in no folder, ref or object that you can read. Git works around it; leave it as"
    " it is, and ask for what you need to know of it."
)
_CHECK_S = 30.0
"""Seconds that looking at a repository may take."""
_CREATE_S = 600.0
"""Seconds that making a worktree of a repository may take."""


def _in_folder(folder: str) -> str:
    return _IN_FOLDER.format(folder=folder, top="/".join(".." for _ in folder.split("/")))


class Launcher:
    """Makes sessions, and finishes making those that a crash left half made."""

    def __init__(
        self, folders: Folders, fleet: Fleet, keepers: Keepers, settings: Settings, credentials: Credentials
    ) -> None:
        self._folders = folders
        self._fleet = fleet
        self._keepers = keepers
        self._settings = settings
        self._credentials = credentials
        self._tasks: set[asyncio.Task[None]] = set()
        self._promised: set[str] = set()
        """Names of launches that are under way: their sessions have no name on record yet."""
        self.closed = False
        self._under_way = 0
        self._keeping = asyncio.Lock()
        """What is kept of launches is read and written by one at a time."""
        self._none_under_way = asyncio.Event()
        self._none_under_way.set()

    async def launch(self, arguments: Mapping[str, object]) -> tuple[Session, Checked]:
        """A session whose intent is durable; its worker makes the rest. And what was found beforehand. Raises
        OpError.
        """
        async with self.under_way():
            return await self._launch(parse(arguments))

    @contextlib.asynccontextmanager
    async def under_way(self) -> AsyncIterator[None]:
        """While something begins that stopping everything has to wait for.

        Raises OpError ``stopping`` once that has begun.
        """
        if self.closed:
            raise OpError("stopping", "everything is being stopped", "try again when that is done")
        self._under_way += 1
        self._none_under_way.clear()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._none_under_way.set()

    async def close(self) -> None:
        """Refuse every launch from now on (`closed` says so, and may be taken back), and wait until none is under
        way.
        """
        self.closed = True
        await self._none_under_way.wait()

    async def starts(self, repo: str) -> list[str]:
        """What a session of this repository may begin from, the newest first. Raises OpError."""
        return await self._looked(repo, lambda: starts(repository_at(Path(repo))))

    async def phrases(self, arguments: Mapping[str, object]) -> PhrasesLook:
        """Which phrases a person may bind before such a launch. Raises OpError."""
        request = parse({"goal": "", **arguments})
        return await self._looked(request.repo, lambda: phrases_of(request, self._known_phrases))

    @property
    def _known_phrases(self) -> Known:
        return Known(self._folders.state, self._settings.config.plan.phrases)

    async def _looked(self, repo: str, work: Callable[[], T]) -> T:
        try:
            return await Threads(f"the repository {repo}", 1).run("looking at it", _CHECK_S, work)
        except StandsStill as exc:
            raise OpError("no_repo", str(exc), "see whether the folder's file system answers") from exc

    async def _launch(self, request: LaunchRequest) -> tuple[Session, Checked]:
        checked = await self._looked(request.repo, lambda: check(request, self._known_phrases))
        cast = await at_home(casting.of_launch, self._folders.config, request)
        if denied := cast.denied.told():
            said = f"its role denies it {denied}: not in its worktree, and its git has a store of its own"
            checked = replace(checked, notes=(*checked.notes, said))
        begun = await self._begin(request.name, request.goal, lambda sid, name: self._intent(sid, name, checked, cast))
        bound = partial(phrase_bindings.keep_for, checked.common, request, checked.bound, self._known_phrases)
        async with self._keeping:
            if unkept := await at_home(bound):
                checked = replace(checked, notes=(*checked.notes, unkept))
        if checked.notes:
            told = [t.HarnessNote(level="info", text=text, component="workspace") for text in checked.notes]
            await begun.append(*told)
        return begun, checked

    async def fork(self, parent: t.SessionIntent, name: str, goal: str, forked: t.Forked, plan: bytes) -> Session:
        """A session that goes on from another one's checkpoint, and with the ``plan`` that the other one wrote itself;
        its intent is durable. Raises OpError.
        """
        wanted = goal or parent.goal

        def intent(sid: str, name: str) -> t.SessionIntent:
            own = next((one for one in OWN if parent.branch.startswith(one)), OWN[0])
            branch = f"{own}{ids.slug(name)}-{sid}"
            where = str(self._folders.worktrees / sid)
            return msgspec.structs.replace(
                parent, name=name, goal=wanted, branch=branch, worktree=where, forked=forked, host=socket.gethostname()
            )

        async with self.under_way():
            return await self._begin(name, wanted, intent, plan)

    async def _begin(
        self, name: str, goal: str, intent: Callable[[str, str], t.SessionIntent], plan: bytes = b""
    ) -> Session:
        sid = ids.session_id()
        while sid in self._fleet.sessions or self._taken(sid):
            sid = ids.session_id()
        name = self._name(name.strip(), goal)
        self._promised.add(name)
        session = self._fleet.add(sid)
        try:
            await at_home(ensure_private, session.folder.root)
            await self._keepers.take_up(session)
            if plan:
                await put_blob(session, plan, plans.MEDIA)
            await session.append(intent(sid, name))
        except (FolderError, OSError) as exc:
            await self.forget(session)
            raise OpError(
                "no_folder",
                f"the session's folder cannot be made: {exc}",
                "make room or make the state folder writable",
            ) from exc
        except BaseException:
            await self.forget(session)
            raise
        finally:
            self._promised.discard(name)
        return session

    def _taken(self, sid: str) -> bool:
        return self._folders.session(sid).root.exists() or (self._folders.archive / sid).exists()

    def _name(self, given: str, goal: str) -> str:
        taken = {s.name for s in self._fleet} | self._promised
        wanted = given or ids.slug(goal)
        like = next((s.sid for s in self._fleet if s.sid.startswith(wanted)), "")
        if wanted not in taken and not like:
            return wanted
        if given and like:
            told = "the id" if wanted == like else "the beginning of the id"
            raise OpError(
                "name_taken",
                f"{wanted!r} is {told} of session {like}, so nobody could tell which of the two is meant",
                "choose another name",
            )
        if given:
            raise OpError("name_taken", f"there is a session named {wanted!r} already", "choose another name")
        return next(f"{wanted}-{i}" for i in range(2, 10_000) if f"{wanted}-{i}" not in taken)

    def _intent(self, sid: str, name: str, checked: Checked, cast: Cast) -> t.SessionIntent:
        request = checked.request
        config = self._settings.config
        fingerprint = self._credentials.add(checked.credential) if checked.credential is not None else ""
        url = (
            checked.credential.base_url
            if checked.credential is not None
            else (request.base_url or configured_url(config)).rstrip("/")
        )
        caps = request.caps
        if caps is None:
            caps = t.Caps(**{cap.field: getattr(config.caps, cap.setting) for cap in OF_SESSION})
        worker = cast.worker
        model = request.model or worker.model or config.model.default
        fresh = request.fresh or config.profile(model).fresh or config.plan.fresh
        return t.SessionIntent(
            name=name,
            goal=request.goal,
            repo=str(checked.repo),
            branch=f"{checked.prefix}{ids.slug(name)}-{sid}",
            worktree=str(self._folders.worktrees / sid),
            model=model,
            base_url=url or DEFAULT_BASE_URL,
            credential=fingerprint,
            checks=list(checked.checks),
            given=request.checks,
            plan=request.plan,
            start=checked.start,
            ways=t.Ways(
                fresh=fresh,
                attempts=config.plan.attempts,
                setup_s=config.plan.setup_s,
                commit=config.plan.commit,
                hooks=list(config.hooks.after_edit),
                hook_s=config.hooks.seconds,
            ),
            draft=request.plan_from_goal,
            draft_accepted=request.accept_plan,
            gates=request.gates,
            phrases=checked.bound.phrases,
            caps=casting.within(caps, worker.limits),
            max_rounds=min(config.model.max_rounds, worker.limits.rounds or config.model.max_rounds),
            evidence_rounds=config.model.evidence_rounds
            if request.evidence_rounds is None
            else request.evidence_rounds,
            host=socket.gethostname(),
            protect=[*config.ratchet.protect, *request.protect],
            free=[*config.ratchet.free, *request.may_change],
            judge=cast.judge(model, judge_at(request, config.plan, fresh)),
            contract=cast.contract(model),
            roles=cast.pinned(),
        )

    async def forget(self, session: Session) -> None:
        """Nothing was promised yet, for its intent is not on record: leave no trace."""
        if session.state.intent is not None:
            return
        await self._keepers.shut(session, kill=True)
        self._fleet.drop(session)
        gone = session.folder.root.with_name(f".{session.sid}.given-up")
        # out of the way first: a keeper that is just starting would go on making files below that name
        with contextlib.suppress(OSError):
            await at_home(session.folder.root.rename, gone)
            await at_home(shutil.rmtree, gone)

    async def create(self, session: Session) -> None:
        """Make the worktree of a session that has only its intent; safe to repeat after a crash.

        A failure ends the session, clearly.
        """
        intent = session.state.intent
        if intent is None or session.state.created is not None:
            return
        try:
            await at_home(session.folder.git.mkdir, 0o700, True, True)
            where = (Path(intent.repo), self._folders.worktrees / session.sid, intent.branch, private_of(session))
            start = forking.start(self._folders, intent)
            denied = pinned.denied(intent)
            tree = await session.do(
                "making its worktree",
                _CREATE_S,
                lambda: worktrees.create(*where, start, intent.start, denied),
                lasting=True,
            )
        except (WorkspaceError, OSError) as exc:
            if later := for_now(exc, "its worktree cannot be made"):
                raise later from exc
            if isinstance(exc, GitMissing):
                raise Later(_AGAIN_S, Trouble("ground", f"its worktree cannot be made: {exc}")) from exc
            await session.append(t.SessionEnded(outcome=State.FAILED, reason=f"the worktree could not be made: {exc}"))
            return
        bodies: list[t.Body] = []
        if tree.dirty:
            left = counted(tree.dirty, "uncommitted file")
            text = f"the repository has {left}; the session starts from commit {tree.base[:12]} without what is in them"
            bodies.append(t.HarnessNote(level="warning", text=text, component="workspace"))
        if intent.start:
            bodies += await session.do(
                "looking whose work it begins from", _CHECK_S, lambda: self._of_others(session, tree)
            )
        if not session.track.has_goal:
            bodies.append(t.UserMessage(text=intent.goal, origin="goal"))
        if tree.folder:
            bodies.append(t.UserMessage(text=_in_folder(tree.folder), origin="harness"))
        if tree.denied:
            bodies.append(t.UserMessage(text=_DENIED.format(what=tree.denied.told()), origin="harness"))
        if intent.plan:
            wanted = (tree, intent)
            bodies += await session.do("reading its plan", _CHECK_S, lambda: _plan(session, *wanted))
            bodies.append(t.UserMessage(text=plans.TOLD.format(path=intent.plan), origin="harness"))
        if intent.draft and intent.forked is not None and intent.forked.plan is not None:
            taken = (tree, intent, intent.forked.plan)
            bodies += await session.do("reading its plan", _CHECK_S, lambda: _taken_over(session, *taken))
            bodies.append(t.UserMessage(text=plans.TOLD.format(path=intent.draft), origin="harness"))
        elif intent.draft:
            first = draft.task(pinned.of(intent, INITIALIZER).first, intent.draft)
            bodies.append(t.UserMessage(text=first, origin="harness"))
        bodies += await forking.handed_on(session, tree, bodies)
        await forking.tell_parent(self._fleet, self._keepers, session)
        bodies += await session.do("looking for its project's rules", _CHECK_S, lambda: project_rules.at_start(tree))
        bodies += await session.do("looking for its policy", _CHECK_S, lambda: repository_policy.at_start(tree))
        made = t.SessionCreated(
            base=tree.base, worktree=str(tree.root), branch=tree.branch, dirty=tree.dirty, folder=tree.folder
        )
        await session.append(*bodies, made)
        self._keep_the_start(session)

    def _of_others(self, session: Session, tree: Worktree) -> list[t.Body]:
        """A warning where the start has what another session made of the files that decide (blocking)."""
        made = [(one.name, one.state.created) for one in list(self._fleet) if one is not session]
        others = [Other(name, at.base, at.branch) for name, at in made if at is not None]
        text = inherited.told(tree, results.rules_of(session.state), others)
        return [t.HarnessNote(level="warning", text=text, component="ratchet")] if text else []

    def _keep_the_start(self, session: Session) -> None:
        """The first state takes longest, so it is kept while the model thinks; the first call would do it otherwise."""

        async def keep() -> None:
            with contextlib.suppress(OpError, LinkLost):
                await session.keeper().ask(TakeState("start"), None)

        task = asyncio.get_running_loop().create_task(keep())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _plan(session: Session, tree: Worktree, intent: t.SessionIntent) -> list[t.Body]:
    """The records with which a plan begins. Blocking; raises BadPlan, GitFailed."""
    return progress.begin(session, tree, plans.loaded(tree, intent.plan, intent.gates, intent.phrases))


def _taken_over(session: Session, tree: Worktree, intent: t.SessionIntent, text: t.BlobRef) -> list[t.Body]:
    """The same for one that another session wrote and that counted there."""
    plan = phrases.bound(read(blobs.get(session.folder.blobs, text.sha)), intent.phrases)
    made = plans.record(intent.draft, plan, intent.gates, plans.beside(tree), text)
    return progress.begin(session, tree, made)
