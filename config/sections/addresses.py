"""Secrets and addresses."""

from django.core.exceptions import ImproperlyConfigured

from config.data_folder import make_folder, read_or_make_secret
from config.environment import long_secret, names, networks, origins, text
from config.sections.process import DATA_DIR, DEVELOPMENT

SECRET_KEY = long_secret("SECRET_KEY") or read_or_make_secret(make_folder(DATA_DIR) / "secret.key")
"""The secret that signs sessions and links, seals stored secrets, and digests API keys; 32 characters at least. A
server with this setting is a production server. Without it, the server is a development server on loopback only, with a
random secret in `DATA_DIR`."""
SECRET_KEY_FALLBACKS = names("SECRET_KEY_FALLBACKS")
"""Former values of `SECRET_KEY`. They still open what they have sealed, and API keys of that time still work."""
ALLOWED_HOSTS = names("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1],testserver" if DEVELOPMENT else "")
"""Host names of the server, for cards and the admin."""
DEV_KEY = text("DEV_KEY")
"""A further API key of a development server, valid while it is set; 20 characters at least."""
A2A_PUBLIC_URL = text("A2A_PUBLIC_URL").rstrip("/")
"""The base URL on cards. Empty: the URL of the request, if its host is in `ALLOWED_HOSTS`."""
A2A_TRUST_FORWARDED = text("A2A_TRUST_FORWARDED").lower()
"""The headers of a proxy that give the base URL: `x-forwarded` (`X-Forwarded-Proto`, `X-Forwarded-Host`) or `forwarded`
(RFC 7239). If a header has several values, the last one counts. The headers count from the proxies of
`A2A_TRUSTED_PROXIES` alone. While that is empty, they count from every peer, so only the proxy may reach the server."""
if A2A_TRUST_FORWARDED not in {"", "x-forwarded", "forwarded"}:
    raise ImproperlyConfigured(f"A2A_TRUST_FORWARDED must be x-forwarded or forwarded, not {A2A_TRUST_FORWARDED!r}")
A2A_TRUSTED_PROXIES = networks("A2A_TRUSTED_PROXIES")
"""Addresses and networks (`10.1.0.0/16`) of proxies whose `X-Forwarded-For` gives the address of a caller, or whose
`Forwarded`, with `A2A_TRUST_FORWARDED=forwarded`. Empty: these headers are ignored. The headers of
`A2A_TRUST_FORWARDED` count from these proxies alone."""
A2A_CORS_ORIGINS = origins("A2A_CORS_ORIGINS")
"""Origins of pages that may call this server besides its own pages, such as `https://app.example`. `*` is all."""
