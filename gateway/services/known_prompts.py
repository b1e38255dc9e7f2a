"""Which prompts have come before, byte for byte, and were clean, so that none of them is read twice. Holds no text.

Theory of operation. Who tries again, draws several samples or probes sends the very same body. What it says is a
function of its bytes: that it is strict JSON of the right shape, its model, the hash of its texts; and what the shield
says of it is one of rules and policy too. So of a usual prompt in which nothing at all was found, and that has come a
second time, is kept what its record needs, by a digest under a key of this process and its owner. It holds for the
policy it was scanned under, until authority changes in any process. Whoever wants more of it reads the bytes that came.
Nothing else is left out: limits, budgets, lists and the record are as for any other.

A model answers in other words, or at least under another id. But an upstream that keeps answers, as many gateways do,
has the same bytes for the same prompt: so of a prompt that is known the last clean reply is kept, in the same way.
"""

from hashlib import sha256

from gateway.clock import Ids
from gateway.domain.policies import ShieldPolicy
from gateway.llm.base import Dialect, Leaves, Prompt, Reply
from gateway.services.chat_guard import ScannedPrompt, ScannedReply

MOST_PROMPTS = 512
"""How many one half of the memory holds; the older half goes when the newer one is full."""
MOST_BYTES = 16_384


class KnownPrompt:
    """What is kept of a prompt. model, user: as it names them. scanned: under `policy` and rules of `generation`.

    replied: what was found in the reply that came the last time, under the same.
    """

    __slots__ = ("_key", "_made", "_mark", "_sent", "generation", "model", "policy", "replied", "scanned", "user")

    def __init__(
        self,
        key: bytes,
        prompt: Prompt,
        scanned: ScannedPrompt,
        policy: ShieldPolicy,
        generation: int,
    ) -> None:
        self.model = prompt.model
        self.user = prompt.user
        self.scanned = scanned
        self.policy = policy
        self.generation = generation
        self._key = key
        self.replied: ScannedReply
        self._mark = b""
        self._sent: int | None = None
        self._made: int | None = None

    def recall(self, raw: bytes, headers: tuple[tuple[str, str], ...]) -> Reply | bytes | None:
        """Return the reply of these bytes, if it is the one that came the last time.

        Else what stands for them; None when they are too many.
        """
        if len(raw) > MOST_BYTES:
            return None
        mark = sha256(self._key + raw).digest()
        if mark != self._mark:
            return mark
        return Reply(None, headers, self._sent, self._made, False, raw, mark, True)

    def note(self, reply: Reply, scanned: ScannedReply) -> None:
        """Keep what was found out about a reply in which nothing was found."""
        if reply.mark is not None:
            self._mark, self.replied = reply.mark, scanned
            self._sent, self._made = reply.prompt_tokens, reply.completion_tokens


class ReadPrompt:
    """A checked request and every text of it. mark: what stands for its bytes, if it may be noted by them.

    known: what was found out about it before; leaves: None to look for them when somebody asks for them.
    """

    __slots__ = ("_dialect", "_leaves", "known", "mark", "prompt")

    def __init__(
        self,
        prompt: Prompt,
        leaves: Leaves | None,
        dialect: Dialect,
        mark: bytes | None = None,
        known: KnownPrompt | None = None,
    ) -> None:
        self.prompt = prompt
        self.mark = mark
        self.known = known
        self._leaves = leaves
        self._dialect = dialect

    @property
    def leaves(self) -> Leaves:
        """Return every text."""
        if self._leaves is None:
            _, self._leaves = self._dialect.read(self.prompt.body, self.prompt.raw)
        return self._leaves


class KnownPrompts:
    """The memory of one process. ids: where its key comes from."""

    __slots__ = ("_generation", "_ids", "_key", "_newer", "_older", "_once")

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._key = b""
        self._newer: dict[bytes, KnownPrompt] = {}
        self._older: dict[bytes, KnownPrompt] = {}
        self._once: set[bytes] = set()
        self._generation = -1

    def __len__(self) -> int:
        """How many prompts are known."""
        return len(self._newer) + len(self._older)

    def recall(self, raw: bytes, owner: str, generation: int) -> KnownPrompt | bytes | None:
        """Return what is known of a body of an owner, whose name has no line break, since authority last changed.

        Else what stands for it; None when it is too long. generation: the store's.
        """
        if len(raw) > MOST_BYTES:
            return None
        if not self._key:  # not before the process is forked
            self._key = self._ids.random_bytes(32)
        mark = sha256(self._key + owner.encode() + b"\n" + raw).digest()
        if generation != self._generation:
            self._newer, self._older = {}, {}
            self._generation = generation
        found = self._newer.get(mark)
        if found is None and (found := self._older.get(mark)) is not None:
            self._add(mark, found)  # what still comes outlives what does not
        return found or mark

    def note(self, mark: bytes, prompt: Prompt, scanned: ScannedPrompt, policy: ShieldPolicy, generation: int) -> None:
        """Keep what was found out about a body that has come twice. generation: of before it was scanned."""
        if mark not in self._once:  # of most there is no second one
            if len(self._once) >= MOST_PROMPTS:
                self._once.clear()
            self._once.add(mark)
        elif generation == self._generation:
            self._add(mark, KnownPrompt(self._key, prompt, scanned, policy, generation))

    def _add(self, mark: bytes, known: KnownPrompt) -> None:
        if len(self._newer) >= MOST_PROMPTS:
            self._older, self._newer = self._newer, {}
        self._newer[mark] = known
