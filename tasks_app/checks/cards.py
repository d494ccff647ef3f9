"""Checks of agent cards, and of the addresses that callers read."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004  # as Django names it
from django.core.exceptions import ImproperlyConfigured

from a2a.agents import registry
from tasks_app.callers import schemes
from tasks_app.cards import addresses


@register()
def check_schemes(**_: Any) -> list[CheckMessage]:
    """Check the schemes of authentication.

    a2a.E021: `A2A_SCHEMES` lists no scheme, or one that does not exist or cannot be used; or `A2A_ISSUERS` has issuers
    without the scheme `oidc`.
    """
    try:
        schemes.security()
    except (ImproperlyConfigured, ImportError) as error:
        return [Error(str(error), hint="See docs/identity.md.", id="a2a.E021")]
    if settings.A2A_ISSUERS and "oidc" not in settings.A2A_SCHEMES:
        hint = "Add oidc to A2A_SCHEMES, or remove A2A_ISSUERS."
        return [Error("A2A_ISSUERS has issuers whose tokens no scheme takes.", hint=hint, id="a2a.E021")]
    return []


@register()
def check_public_address(**_: Any) -> list[CheckMessage]:
    """Check that links in webhooks lead somewhere.

    a2a.W004: `SECRET_KEY` without `A2A_PUBLIC_URL`. Links to files in webhooks lead to `HOST` and `PORT`.
    """
    if settings.DEVELOPMENT or settings.A2A_PUBLIC_URL:
        return []
    hint = "Set A2A_PUBLIC_URL, such as https://agents.example.com, for all web processes and workers."
    return [Warning("Links to files in webhooks lead to HOST and PORT.", hint=hint, id="a2a.W004")]


@register()
def check_card_key(**_: Any) -> list[CheckMessage]:
    """Check the key that signs cards.

    a2a.E010: `A2A_CARD_KEY` cannot sign.
    """
    from a2a.signatures import UnusableKey
    from tasks_app.cards import public as cards

    try:
        cards.card_keys()
    except UnusableKey as error:
        hint = "`manage.py a2a cardkey` makes one; without any, cards are not signed."
        return [Error(f"A2A_CARD_KEY cannot sign cards: {error}.", hint=hint, id="a2a.E010")]
    return []


@register()
def check_card_addresses(**_: Any) -> list[CheckMessage]:
    """Check what is written on cards.

    a2a.E011: a setting that cannot be an address on a card, or a provider without its address, or an address
        without its provider.
    """
    names = ("A2A_PUBLIC_URL", "A2A_PROVIDER_URL", "A2A_DOCUMENTATION_URL", "A2A_ICON_URL")
    wrong = [name for name in names if (url := getattr(settings, name)) and not addresses.is_absolute(url)]
    if settings.A2A_PUBLIC_URL and "A2A_PUBLIC_URL" not in wrong and set("?#") & set(settings.A2A_PUBLIC_URL):
        wrong.append("A2A_PUBLIC_URL")
    sentences = [f"{name} must be like https://host, without a user or spaces" for name in wrong]
    if bool(settings.A2A_PROVIDER) is not bool(settings.A2A_PROVIDER_URL):
        sentences.append("A card names a provider by both A2A_PROVIDER and A2A_PROVIDER_URL, or not at all")
    return [Error(f"{sentence}.", hint="It is written on the agent cards.", id="a2a.E011") for sentence in sentences]


@register()
def check_default_card(**_: Any) -> list[CheckMessage]:
    """Check that there is a card at the root.

    a2a.E012: the default agent is not listed.
    """
    agent = registry.get(settings.A2A_DEFAULT_AGENT)
    if agent is None or agent.listed:
        return []
    hint = "Leave listed=False out, or choose another by A2A_DEFAULT_AGENT."
    sentence = f"The default agent {agent.name} is not listed: there is no card at the root."
    return [Error(sentence, hint=hint, id="a2a.E012")]
