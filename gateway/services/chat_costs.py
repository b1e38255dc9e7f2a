"""Compute what a completion may cost at most, and what it did cost. Pure but for the table of prices it is given.

No vendor's tokenizer makes more tokens of a text than it has bytes, and each message, tool and key has more bytes of
JSON around it than any chat template has tokens. So the bytes of the forwarded JSON bound the tokens of the prompt. A
picture, sound or file is no text: `OPAQUE_TOKENS` stand for each. The request's own limit bounds a reply, else the
model's, else a setting, for each of its choices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.budgets import Usage
from gateway.domain.prices import Prices, reply_bound
from gateway.llm.base import MOST_TOKENS, Prompt, Reply
from gateway.services.routing import ProviderConnection
from gateway.strict_json import write_json

OPAQUE_TOKENS = 50_000
DEFAULT_REPLY_TOKENS = 16_384


@dataclass(frozen=True, slots=True)
class ChatCosts:
    """The prices of this gateway. reply_tokens: most of a choice when neither request nor model has a limit."""

    prices: Prices
    reply_tokens: int = DEFAULT_REPLY_TOKENS

    def worst(self, prompt: Prompt, candidates: Sequence[ProviderConnection], opaque_parts: int) -> Usage:
        """Return the most that a completion by any of the candidates can take."""
        prompt_tokens = len(write_json(prompt.body)) + opaque_parts * OPAQUE_TOKENS
        tokens, costs = [0], []
        for candidate in candidates:
            price, default = self.prices.find(prompt.model, candidate.prices), self.reply_tokens
            if candidate.is_echo:
                default = prompt_tokens
            elif price is not None and price.max_reply_tokens is not None:
                default = price.max_reply_tokens
            reply_tokens = min(reply_bound(prompt.body, default), MOST_TOKENS)
            tokens.append(prompt_tokens + reply_tokens)
            if price is not None:
                costs.append(price.cost_microusd(prompt_tokens, reply_tokens))
        return Usage(max(tokens), max(costs, default=None))

    def actual(self, prompt: Prompt, reply: Reply, candidate: ProviderConnection, worst: Usage | None) -> Usage | None:
        """Return what a completion took; `worst`, what was reserved for it, if nobody counted."""
        if reply.prompt_tokens is None or reply.completion_tokens is None:
            return worst
        sent, made = (min(max(0, count), MOST_TOKENS) for count in (reply.prompt_tokens, reply.completion_tokens))
        price = self.prices.find(prompt.model, candidate.prices)
        return Usage(sent + made, None if price is None else price.cost_microusd(sent, made))
