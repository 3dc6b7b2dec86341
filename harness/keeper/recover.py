"""What a keeper puts on record when it opens a log: a cut tail, itself, and the calls that were running when the last
keeper ended.

Standard library only.
"""

from __future__ import annotations

from harness.domain.calls.call_states import CallEnd, CallStage
from harness.keeper.calls import jobs, process_trees, spool
from harness.keeper.log.appender import Appender
from harness.linux.proc import Identity
from harness.protocol.paths import SessionFolder

REBOOT = "reboot"
"""The component of a note that `harness.brain.view` gives to the model too."""
_LEFTOVERS_S = 5.0


def _perhaps_lost(journal: Appender, me: Identity) -> str:
    """What to say when the machine went down under calls whose effects nobody made durable; empty when there is nothing
    to say.
    """
    memory = journal.memory
    if not memory.boot or memory.boot == me.boot or journal.taken_leave or not memory.changing:
        return ""
    count = memory.changing
    calls = (
        f"The newest of the {count} calls before that were {', '.join(memory.newest)}"
        if count > 1
        else f"The one call before that was {memory.newest[0]}"
    )
    return (
        "The machine was started anew without an orderly end. What commands wrote shortly before (usually the last"
        f" half minute) may be missing or cut short on disk, although their results say that it was written. {calls}."
        " Look at the files before you rely on them."
    )


def recover(journal: Appender, folder: SessionFolder, me: Identity) -> None:
    """Append ``log.recovered`` (if a tail was cut), ``keeper.started`` and the outcome of every call that was started.

    A machine that went down without this keeper's leave may have lost what calls wrote: that is noted, and the model
    reads it. A job has ended with its keeper, and is never run again by itself. A call whose result reached the spool
    has ended; every other is in doubt, and what may be left of it is killed first. Raises OpError, NoSpace, Poisoned.
    """
    cut = journal.recovery
    if cut is not None:
        journal.write("log.recovered", {"at": cut.at, "bytes": cut.bytes, "sha": cut.sha, "file": cut.file})
    lost = _perhaps_lost(journal, me)
    journal.write("keeper.started", {"pid": me.pid, "start": me.start, "boot": me.boot, "recovered": cut is not None})
    if lost:
        journal.write("harness.note", {"level": "warning", "text": lost, "component": REBOOT})
    begun = {}
    for job, call_id in list(journal.memory.jobs.items()):
        end = jobs.after_a_keeper(folder, job)
        begun[call_id] = job
        journal.write("job.ended", end)
    jobs.tidy(folder, set())
    for call in list(journal.memory.calls.open.values()):
        if call.stage != CallStage.STARTED:
            continue
        if call.call_id in begun:
            text = f"job {begun[call.call_id]} began, and has ended since"
            journal.write("tool.ended", {"call_id": call.call_id, "status": CallEnd.OK, "preview": text, "ms": 0})
            continue
        base = spool.base(folder, call.call_id, call.attempt)
        leader = spool.leader(base)
        gone = leader is None or process_trees.kill_session(leader, _LEFTOVERS_S)
        result = spool.result(base)
        if result is not None and result["call_id"] == call.call_id:
            journal.write("tool.ended", result)
            continue
        why = "the keeper ended while the call was running; whether it had its effect is not known"
        if not gone:
            why += f"; its process {leader.pid if leader else ''} cannot be killed and may still be at work"
        journal.write("tool.in_doubt", {"call_id": call.call_id, "why": why})
    spool.clean(folder, set(journal.memory.calls.open))
