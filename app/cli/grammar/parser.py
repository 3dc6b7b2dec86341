"""The command line's grammar: every verb, its arguments and its help."""

from __future__ import annotations

import argparse
import contextlib
import functools
from collections.abc import Sequence
from typing import NoReturn

from app.cli.base.arguments import EMPTY
from app.cli.grammar import overview
from app.cli.grammar.registry import VERBS
from harness.domain.text.display_safe import to_display

DESCRIPTION = "A terminal control room for long-running AI agents. Without a verb it opens the floor."
EPILOG = (
    "exit codes: 0 done · 1 the answer is no · 2 wrong usage, no terminal · 3 no supervisor or folder unusable · 4 not"
    " found · 5 refused · 6 bad configuration · 70 our bug · 74 the output cannot be written"
)


_REQUIRED = "the following arguments are required: "
_FEW = 20
_OF_REQUESTS = ("approve", "reject", "deny", "answer", "defer")


class Parser(argparse.ArgumentParser):
    """Quotes wrong arguments as display text: a script may have put anything there."""

    def error(self, message: str) -> NoReturn:
        if message.startswith(_REQUIRED) and "ID" in message.removeprefix(_REQUIRED).split(", "):
            verb = self.prog.rpartition(" ")[2]
            message += f"; list them with: watchfloor {'approvals' if verb in _OF_REQUESTS else 'ls'}"
        super().error(to_display(message))

    def _check_value(self, action: argparse.Action, value: object) -> None:
        # of fifty words the one that was meant says more than all of them
        known = list(map(str, action.choices or ()))
        if len(known) <= _FEW or str(value) in known:
            super()._check_value(action, value)
            return
        import difflib

        near = difflib.get_close_matches(str(value), known, n=3)
        meant = f"did you mean {' or '.join(near)}?" if near else f"see them with: {self.prog} --help"
        raise argparse.ArgumentError(action, f"there is no {value!r}; {meant}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> object:
        # argparse drops this value, as if it ended the options, and gives an empty list in its place
        if action.option_strings and action.nargs is None and arg_strings == ["--"]:
            return self._get_value(action, "--")
        # an empty value (a variable that is not set) would quietly mean the default
        may_be_left_out = bool(action.option_strings) or action.nargs in ("?", "*")
        if may_be_left_out and action.dest != "text" and not all(given.strip() for given in arg_strings):
            raise argparse.ArgumentError(action, "is empty" if action.option_strings and action.required else EMPTY)
        return super()._get_values(action, arg_strings)


class Grammar(Parser):
    """The whole: its help lists the verbs by what a person wants to do."""

    def __init__(self) -> None:
        super().__init__(prog="watchfloor", description=DESCRIPTION, epilog=EPILOG)
        self.of: dict[str, argparse.ArgumentParser] = {}

    def whole(self, argv: Sequence[str]) -> argparse.Namespace:
        """The arguments; what no verb knows is said with the usage of its verb."""
        made, rest = self.parse_known_args(argv)
        verb = self.of.get(made.verb or "", self)
        if rest and verb is not self and "--" not in argv:
            # a word that may be left out and stands behind an option is given to nobody, and looked for once more
            with contextlib.suppress(TypeError):  # raised for a verb that has verbs of its own
                again, rest = verb.parse_known_intermixed_args(argv[argv.index(made.verb) + 1 :])
                vars(made).update(vars(again))
        if rest:
            verb.error(f"unrecognized arguments: {' '.join(rest)}")
        return made

    def format_help(self) -> str:
        about = self._get_formatter()
        about.add_text(self.description)
        end = self._get_formatter()
        end.add_text("watchfloor VERB --help says more of each.")
        end.add_text(self.epilog)
        usage = f"usage: {self.prog} [--version] [VERB …]\n"
        return "\n".join([usage, about.format_help(), overview.text(), end.format_help()])


@functools.cache
def build() -> Grammar:
    """The whole grammar; one for all who ask."""
    parser = Grammar()
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)

    for verb in VERBS.values():
        about = verb.words[0].upper() + verb.words[1:]
        p = verbs.add_parser(verb.name, help=verb.words, description=about if about.endswith("?") else f"{about}.")
        if verb.json:
            p.add_argument("--json", action="store_true", help="print JSON")
        verb.arguments(p)
        parser.of[verb.name] = p
    return parser
