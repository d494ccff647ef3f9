"""Members of messages, artifacts and cards that are the same in all dialects of A2A, apart from parts and roles."""

from collections.abc import Callable

from a2a.errors import InvalidParams
from a2a.types import Artifact, Card, Extension, Json, Message, Part, Role, Skill

EncodePart = Callable[[Part], Json]
DecodePart = Callable[[Json, str], Part]
MAX_PARTS = 1_000
"""The most parts of a message. Every reader of the message makes an object for each part, within one call."""


def message_members(message: Message, role: str, encode_part: EncodePart) -> Json:
    """Return the members of a message, without those that are empty."""
    out: Json = {
        "messageId": message.message_id,
        "role": role,
        "parts": [encode_part(part) for part in message.parts],
    }
    if message.context_id:
        out["contextId"] = message.context_id
    if message.task_id:
        out["taskId"] = message.task_id
    if message.metadata is not None:
        out["metadata"] = message.metadata
    if message.extensions:
        out["extensions"] = message.extensions
    if message.reference_task_ids:
        out["referenceTaskIds"] = message.reference_task_ids
    return out


def message_of(wire: Json, path: str, roles: dict[str | int, Role], decode_part: DecodePart) -> Message:
    """Return the message of members that have the right types.

    Raises InvalidParams for an empty id, an unknown role, no parts, and more than MAX_PARTS.
    """
    if not wire["messageId"]:
        raise InvalidParams((f"{path}.messageId", "must not be empty"))
    role = roles.get(wire["role"])
    if role is None:
        # The agent's role is known, and refused by the operation, because only the caller sends messages.
        name = next(name for name, one in roles.items() if one is Role.USER)
        raise InvalidParams((f"{path}.role", f"must be {name}"))
    if not wire["parts"]:
        raise InvalidParams((f"{path}.parts", "At least one part is required"))
    if len(wire["parts"]) > MAX_PARTS:
        raise InvalidParams((f"{path}.parts", f"must have {MAX_PARTS} parts at most, not {len(wire['parts'])}"))
    return Message(
        message_id=wire["messageId"],
        role=role,
        parts=tuple(decode_part(part, f"{path}.parts[{index}]") for index, part in enumerate(wire["parts"])),
        context_id=wire.get("contextId") or None,
        task_id=wire.get("taskId") or None,
        metadata=wire.get("metadata"),
        extensions=tuple(wire.get("extensions") or ()),
        reference_task_ids=tuple(wire.get("referenceTaskIds") or ()),
    )


def artifact_members(artifact: Artifact, encode_part: EncodePart) -> Json:
    """Return the members of an artifact, without those that are empty."""
    out: Json = {"artifactId": artifact.artifact_id, "parts": [encode_part(part) for part in artifact.parts]}
    if artifact.name:
        out["name"] = artifact.name
    if artifact.description:
        out["description"] = artifact.description
    if artifact.metadata is not None:
        out["metadata"] = artifact.metadata
    if artifact.extensions:
        out["extensions"] = artifact.extensions
    return out


def skill_members(skill: Skill) -> Json:
    """Return the members of a skill, without its scopes and without optional members that are empty."""
    always = {"id": skill.id, "name": skill.name, "description": skill.description, "tags": skill.tags}
    lists = {"examples": skill.examples, "inputModes": skill.input_modes, "outputModes": skill.output_modes}
    return always | {name: value for name, value in lists.items() if value}


def extension_members(extension: Extension) -> Json:
    """Return the members of an extension that an agent supports, without those that are empty."""
    out: Json = {"uri": extension.uri}
    if extension.description:
        out["description"] = extension.description
    if extension.required:
        out["required"] = True
    if extension.params is not None:
        out["params"] = extension.params
    return out


def about_members(card: Card) -> Json:
    """Return the members of a card for human readers, without those that are empty."""
    out: Json = {}
    if card.provider:
        out["provider"] = {"organization": card.provider.organization, "url": card.provider.url}
    if card.documentation_url:
        out["documentationUrl"] = card.documentation_url
    if card.icon_url:
        out["iconUrl"] = card.icon_url
    return out
