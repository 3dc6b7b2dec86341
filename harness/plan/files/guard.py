"""Who may change a plan: the harness flips ``passes``, and nobody else changes anything. Pure."""

from __future__ import annotations

from harness.plan.files.formats import BadPlan, Entry, Plan, read


def tampered(trusted: Plan, found: bytes | None) -> list[str]:
    """What was done to a plan that the harness wrote last, one sentence each; nothing when it is as it was.

    ``found`` are the bytes in the worktree, None when there is no file. White space is nobody's business.
    """
    if found is None:
        return ["the plan was deleted"]
    if found == trusted.text.encode():
        return []
    try:
        now = read(found)
    except BadPlan as exc:
        return [f"the plan cannot be read any more: {exc}"]
    if now.form != trusted.form:
        return ["the plan has another form"]
    told = [] if now.around == trusted.around else ["what stands around its entries was changed"]
    before = {entry.id: entry for entry in trusted.entries}
    after = _named(trusted, now)
    told += [f"{name} was removed" for name in before if name not in after]
    told += [f"{name} was added" for name in after if name not in before]
    common = [name for name in before if name in after]
    if common != [name for name in after if name in before]:
        told.append("its entries were reordered")
    for name in common:
        if before[name].wording != after[name].wording:
            told.append(f"{name} was reworded")
        if before[name].passes != after[name].passes:
            told.append(f"{name} was set to {'true' if after[name].passes else 'false'}")
    return told


def _named(trusted: Plan, now: Plan) -> dict[str, Entry]:
    """Its entries by id. Where all have the words they had, by the id that those had: one that has none of its own is
    called by its place, and would seem to be reworded when it moves.
    """
    names = {entry.wording: entry.id for entry in trusted.entries}
    if sorted(names) == sorted(entry.wording for entry in now.entries):
        return {names[entry.wording]: entry for entry in now.entries}
    return {entry.id: entry for entry in now.entries}
