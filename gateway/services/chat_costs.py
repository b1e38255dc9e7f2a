"""What a completion may cost at most, and what it did cost. Pure but for the table of prices it is given.

Theory of operation. No tokenizer of any vendor makes more tokens of a text than it has bytes, and every message, tool
and key has more bytes of JSON around it than any chat template has tokens. So the bytes of the JSON that is forwarded
bound the tokens of the prompt. A picture, sound or file is not text: `OPAQUE_TOKENS` stand for each. A reply is bounded
by the request's own limit, else by the model's, else by a setting, for each of its choices.
"""

from collections.abc import Sequence
from typing import Protocol

from gateway.domain.budgets import Usage
from gateway.domain.prices import Prices, reply_bound
from gateway.llm.base import MOST_TOKENS, Prompt, Reply
from gateway.strict_json import write_json

OPAQUE_TOKENS = 50_000
DEFAULT_REPLY_TOKENS = 16_384


class Priced(Protocol):
    """A provider that may answer."""

    @property
    def prices(self) -> Prices | None:
        """Its own prices, if it has any."""
        ...

    @property
    def is_echo(self) -> bool:
        """Whether the built-in model answers, which says no more than the prompt."""
        ...


class ChatCosts:
    """The prices of this gateway. reply_tokens: most of a choice when neither request nor model has a limit."""

    def __init__(self, prices: Prices, *, reply_tokens: int = DEFAULT_REPLY_TOKENS) -> None:
        self._prices = prices
        self._reply_tokens = reply_tokens

    def worst(self, prompt: Prompt, candidates: Sequence[Priced], opaque_parts: int) -> Usage:
        """Return the most that a completion by any of the candidates can take."""
        prompt_tokens = len(write_json(prompt.body)) + opaque_parts * OPAQUE_TOKENS
        tokens, costs = [0], []
        for candidate in candidates:
            price, default = self._prices.find(prompt.model, candidate.prices), self._reply_tokens
            if candidate.is_echo:
                default = prompt_tokens
            elif price is not None and price.max_reply_tokens is not None:
                default = price.max_reply_tokens
            reply_tokens = min(reply_bound(prompt.body, default), MOST_TOKENS)
            tokens.append(prompt_tokens + reply_tokens)
            if price is not None:
                costs.append(price.cost_microusd(prompt_tokens, reply_tokens))
        return Usage(max(tokens), max(costs, default=None))

    def actual(self, prompt: Prompt, reply: Reply, candidate: Priced, worst: Usage | None) -> Usage | None:
        """Return what a completion took. worst: what was reserved for it, which stands where nobody counted.

        None: nobody counted, and nothing was reserved.
        """
        sent, made = reply.prompt_tokens, reply.completion_tokens
        if sent is None or made is None:
            return worst
        if not (0 <= sent <= MOST_TOKENS and 0 <= made <= MOST_TOKENS):
            sent, made = _counted(sent), _counted(made)
        price = self._prices.find(prompt.model, candidate.prices)
        return Usage(sent + made, None if price is None else price.cost_microusd(sent, made))


def _counted(tokens: int) -> int:
    """Return a count of somebody else as one that no sum overflows with."""
    return min(max(0, tokens), MOST_TOKENS)
