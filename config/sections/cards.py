"""Cards and what is on."""

from config.environment import flag, text

A2A_CARD_KEY = text("A2A_CARD_KEY").replace("\\n", "\n")
"""Keys in PEM, often as `A2A_CARD_KEY_FILE`. The first key signs cards, and all keys are published. `\\n` is a line
end."""
A2A_PROVIDER = text("A2A_PROVIDER")
"""The organisation that runs the agents, for every card. It needs `A2A_PROVIDER_URL`."""
A2A_PROVIDER_URL = text("A2A_PROVIDER_URL")
"""The address of that organisation, for every card."""
A2A_DOCUMENTATION_URL = text("A2A_DOCUMENTATION_URL")
"""The address of the documentation, for every card."""
A2A_ICON_URL = text("A2A_ICON_URL")
"""The address of an icon, for every card."""
A2A_PUSH = flag("A2A_PUSH", True)
"""Webhooks. Switched off, registrations are refused with -32003, cards say so, and existing webhooks still get
deliveries."""
A2A_STREAMING = flag("A2A_STREAMING", True)
"""Streams and subscriptions. Switched off, they are refused with -32004, and cards say so."""
A2A_EXTENDED_CARD = flag("A2A_EXTENDED_CARD", True)
"""The extended card. Switched off, it is refused with -32004 (0.3: -32007, 0.2: 404), and cards say so."""
A2A_FRONT_PAGE = flag("A2A_FRONT_PAGE", True)
"""A page at `/` for browsers, with the public agents and how to call them."""
