"""The texts of a usual prompt or reply as one text, at once; what is not usual takes the walk of `leaves`. Pure.

Theory of operation. In nearly all prompts and replies nothing is found, and then nobody asks where a text stands. Of
those that hold messages of a role and a text, and fields of the dialect's own words, the texts are read here in one
pass and joined as `joined.join` joins what the walk finds: the same text, or none. Whatever could be read in another
way, be it a file, a tool, an unknown key, JSON inside of a text or a word cut in two, makes it none.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from gateway.llm.joined import INSIDE_WORDS
from gateway.llm.leaves import SILENT
from gateway.llm.openai_request import ROLES
from gateway.llm.openai_words import WORDS

_NOTHING = WORDS | {""}
_OTHER_FORM = re.compile(r'\s*(?:[\[{"]|https?:)', re.IGNORECASE)


def usual_prompt(contents: Sequence[str], fields: Mapping[str, object], *, max_chars: int) -> str | None:
    """Return all texts of a checked prompt, or None when it is not a usual one.

    contents: of its messages, each of which is a role and a text. fields: of it, but for the messages.
    """
    texts = [text for text in contents if text]
    others: list[str] = []
    return _joined(texts, others, max_chars) if _add(fields, others) else None


def usual_reply(body: Mapping[str, object], *, max_chars: int) -> str | None:
    """Return all texts of a checked completion, or None when it is not a usual one."""
    texts: list[str] = []
    others: list[str] = []
    choices = body["choices"]
    assert isinstance(choices, list)
    for choice in choices:
        message = choice["message"]
        text = message.get("content")
        if type(text) is not str or choice.get("logprobs") is not None:
            return None
        if text:
            texts.append(text)
        if len(message) != 2 or message.get("role") not in ROLES:  # as nearly all have, and nothing else
            if "audio" in message or not _add(message, others, but="content"):
                return None
        if not _add(choice, others, but="message"):
            return None
    return _joined(texts, others, max_chars) if _add(body, others, but="choices") else None


def _add(fields: Mapping[str, object], others: list[str], but: str = "") -> bool:
    """Add the texts of an object, but for one field, in the order of the walk; tell whether there is nothing else."""
    if not WORDS.issuperset(fields):
        return False
    for name, value in fields.items():
        if type(value) is str:
            if value not in _NOTHING and name != but:
                others.append(value)
        elif type(value) in SILENT or name == but:
            continue
        elif isinstance(value, dict):
            is_silent = SILENT.issuperset(map(type, value.values())) and WORDS.issuperset(value)  # as counts are
            if not is_silent and not _add(value, others):
                return False
        elif value != []:
            return False
    return True


def _joined(texts: list[str], others: list[str], max_chars: int) -> str | None:
    """Return the texts as one, those of the conversation first; None when more than a line break is between them."""
    if len(texts) > 1:
        for first, second in pairwise(texts):
            before, after = first[-1], second[0]
            if (before.isalnum() or before in INSIDE_WORDS) and (after.isalnum() or after in INSIDE_WORDS):
                return None
    texts += others
    joined = "\n".join(texts)
    if len(joined) > max_chars:
        return None
    if ("\\" in joined or "%" in joined or "+" in joined) and any(map(_OTHER_FORM.match, texts)):
        return None
    return joined
