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
A2A_DELIVERY_HOURS = number("A2A_DELIVERY_HOURS", 72, 0, 876_000)
"""The time for which a failed delivery is tried again."""
A2A_OWNER_DELIVERY_BYTES = whole("A2A_OWNER_DELIVERY_BYTES", 67_108_864, 1)
"""Bytes of deliveries that a process sends for one owner in a minute. Further deliveries wait."""
A2A_ADDRESS_DELIVERY_BYTES = whole("A2A_ADDRESS_DELIVERY_BYTES", 134_217_728, 1)
"""Bytes of deliveries that a process sends to one address in a minute, for all owners and under all its names. Further
deliveries wait."""
A2A_WEBHOOK_HANDSHAKE = flag("A2A_WEBHOOK_HANDSHAKE", not DEVELOPMENT)
"""Ask a receiver whether it agrees before its first delivery, unless its host is in `A2A_WEBHOOK_HOSTS` or
`A2A_OUTBOUND_HOSTS`."""
A2A_WEBHOOK_HOSTS = hosts("A2A_WEBHOOK_HOSTS")
"""Names, addresses and networks of receivers that get deliveries without a handshake."""
A2A_HANDSHAKE_DAYS = number("A2A_HANDSHAKE_DAYS", 30, 0, 36_500)
"""The time for which the agreement of a receiver counts. After that it is asked again."""
A2A_OWNER_WEBHOOKS = whole("A2A_OWNER_WEBHOOKS", 300, 1)
"""Webhooks that one owner may register in a minute in a process, each with a call of its own. Further ones are
refused."""
