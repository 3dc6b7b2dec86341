"""What all dialogs share: their keys, and that what decides was pressed by a hand."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, TypeVar

from textual.binding import BindingType
from textual.screen import ModalScreen

from app.action_table.registry import BY_ID
from app.framework.application import Host, host_of
from app.framework.handlers import Handler, Handlers, bindings
from app.terminal.size_classes import size_classes

R = TypeVar("R")


class Form(ModalScreen[R]):
    """A dialog, answered with ``R``: its own keys win over those of its fields, and everything below is unreachable
    while it is open.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("form", priority=True)

    def __init__(self) -> None:
        super().__init__(classes=size_classes(self.app))

    @property
    def host(self) -> Host:
        """The application, as screens see it."""
        return host_of(self.app)

    def handlers(self) -> Handlers:
        """What this dialog does for the actions of the registry."""
        return {
            "form.submit": Handler(self.submit),
            "form.cancel": Handler(lambda: self.dismiss(None)),
        }

    @cached_property
    def _own_handlers(self) -> Handlers:
        return self.handlers()

    def submit(self) -> None:
        """Send what the form says, or say inline why it cannot be used."""
        raise NotImplementedError

    async def action_do(self, ident: str) -> None:
        """Run an action of the registry. What decides must have been pressed by a hand."""
        if BY_ID[ident].decides and (why := await self.host.no_hand(self.key_of(ident))):
            self.complain(why)
            return
        self._own_handlers[ident].run()

    def key_of(self, ident: str) -> str:
        """The key that runs an action here, as shown."""
        return self.submit_key if ident == "form.submit" else self.host.keys.shown(ident)

    @property
    def submit_key(self) -> str:
        """The key that submits, as shown."""
        return self.host.keys.shown("form.submit")

    def complain(self, text: str) -> None:
        """Say why nothing was done; dialogs say it inline."""
        self.host.tell(text)

    @property
    def is_open(self) -> bool:
        """The person still sees it: what was sent is answered here, and else by the host."""
        return self.is_attached and self.is_running

    def close_with(self, refused: str, about: str, done: str) -> None:
        """What became of what was sent: a refusal is said and it stays open, success is told and closes it."""
        if refused:
            self.complain(refused) if self.is_open else self.host.tell(f"{about}: {refused}", bad=True)
            return
        self.host.tell(done)
        if self.is_open:
            self.dismiss(None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "do":
            return str(parameters[0]) in self._own_handlers
        return super().check_action(action, parameters)
