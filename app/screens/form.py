"""What all dialogs share: their keys, and that what decides was pressed by a hand."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.binding import BindingType
from textual.screen import ModalScreen

from app.actions import BY_ID
from app.host import Host, host_of
from app.screens.base import bindings, handler_name


class Form(ModalScreen[Any]):
    """A dialog: its own keys win over those of its fields, everything below is unreachable while it is open."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("form", priority=True)

    @property
    def host(self) -> Host:
        """The application, as screens see it."""
        return host_of(self.app)

    async def action_do(self, ident: str) -> None:
        """Run an action of the registry. What decides must have been pressed by a hand."""
        if BY_ID[ident].decides and (why := await self.host.no_hand(ident)):
            self.complain(why)
            return
        getattr(self, handler_name(ident))()

    def complain(self, text: str) -> None:
        """Say why nothing was done; dialogs say it inline."""
        self.host.tell(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "do":
            return hasattr(self, handler_name(str(parameters[0])))
        return super().check_action(action, parameters)

    def do_form_cancel(self) -> None:
        self.dismiss(None)
