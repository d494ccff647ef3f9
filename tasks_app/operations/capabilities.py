"""Optional capabilities of A2A that an operator may switch off (A2A 1.0.1, 3.3.4). Cards list those that are on."""

from django.conf import settings
from msgspec import Struct

from a2a.errors import Error, PushNotSupported, UnsupportedOperation


class Capability(Struct, frozen=True, kw_only=True):
    """A capability and the setting that switches it."""

    name: str
    """The member of `capabilities` on a card of 1.0."""
    setting: str
    error: type[Error]

    def check(self) -> None:
        """Check that the capability is on. Raises its error."""
        if not getattr(settings, self.setting):
            raise self.error(capability=self.name, detail=f"{self.name} is switched off here, as the card says")


PUSH = Capability(name="pushNotifications", setting="A2A_PUSH", error=PushNotSupported)
STREAMING = Capability(name="streaming", setting="A2A_STREAMING", error=UnsupportedOperation)
EXTENDED_CARD = Capability(name="extendedAgentCard", setting="A2A_EXTENDED_CARD", error=UnsupportedOperation)
