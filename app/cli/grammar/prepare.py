"""Verbs for what comes before the work."""

from __future__ import annotations

import argparse

from app.cli.base.session_place import named
from app.cli.grammar import memory, policy
from app.cli.grammar.verb import Group

GROUP = Group("prepare")
verb = GROUP.verb


@verb("spec", "cli.verbs.spec:check", "read a specification before an agent does: what of it can no machine decide?")
def spec(p: argparse.ArgumentParser) -> None:
    p.add_argument("what", metavar="check", choices=("check",), help="its only act")
    p.add_argument("file", metavar="FILE", help="feature_list.json, prd.json, or a text whose lists are criteria")


@verb("roles", "cli.verbs.roles:roles", "list the roles, or print one: prompt, model, tools, limits, rules")
def roles(p: argparse.ArgumentParser) -> None:
    p.add_argument("name", metavar="NAME", nargs="?", default="", help="print this role's file")


@verb("judge", "cli.verbs.judge:judge", "hold a model's judgement against results that are known to be bad or good")
def judge(p: argparse.ArgumentParser) -> None:
    p.add_argument("what", metavar="calibrate", choices=("calibrate",), help="its only act")
    p.add_argument(
        "--model",
        metavar="M",
        default="",
        help="model that judges (default: the role's, else configured)",
    )
    p.add_argument("--role", metavar="NAME", default="evaluator", help="role that judges (default: evaluator)")
    p.add_argument("--most-usd", metavar="X", default="2", help="it spends at most so much (default: 2)")
    p.add_argument("--only", metavar="RESULT", action="append", default=[], help="only this result; may be repeated")


verb("contract", "cli.verbs.contract:show", "print what planner and evaluator agreed on before the work")(named)
verb(
    "memory",
    "cli.verbs.memory:memory",
    "what agents and you remember beyond one conversation: look, change, accept, undo",
    json=False,
)(memory.add)
verb("policy", "cli.verbs.policy:policy", "check a policy, explain a verdict, try a file over the past", json=False)(
    policy.add
)
