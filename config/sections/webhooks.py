"""Webhooks."""

from config.environment import flag, hosts, number, whole
from config.sections.process import DEVELOPMENT

A2A_OUTBOUND_HOSTS = hosts("A2A_OUTBOUND_HOSTS")
"""Names, addresses and networks (`10.1.0.0/16`) that webhooks and relays may have although they are not public."""
A2A_OUTBOUND_LOOPBACK = flag("A2A_OUTBOUND_LOOPBACK", DEVELOPMENT)
"""Webhooks and relays may have addresses of this machine, and plain http."""
A2A_DELIVERY_SLOTS = whole("A2A_DELIVERY_SLOTS", 64, 1)
"""Simultaneous deliveries in a process: half of them for one owner, one host or one address, and 8 for one owner to one
host or one address."""
A2A_DELIVERY_HOURS = number("A2A_DELIVERY_HOURS", 72)
"""The time for which a failed delivery is tried again."""
A2A_OWNER_DELIVERY_BYTES = whole("A2A_OWNER_DELIVERY_BYTES", 67_108_864, 1)
"""Bytes of deliveries that a process sends for one owner in a minute. Further deliveries wait."""
A2A_OWNER_WEBHOOKS = whole("A2A_OWNER_WEBHOOKS", 300, 1)
"""Webhooks that one owner may register in a minute in a process, each with a call of its own. Further ones are
refused."""
