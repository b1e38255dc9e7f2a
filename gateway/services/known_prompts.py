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
from gateway.llm.base import Dialect, Leaves, Prompt, Reply, Unread
from gateway.services.chat_guard import ScannedPrompt, ScannedReply
from gateway.shield.detections import ScanResult

MOST_PROMPTS = 512
"""How many one half of the memory holds; the older half goes when the newer one is full."""
MOST_BYTES = 16_384
_DIGEST_BYTES = 16


class KnownPrompt:
    """What is kept of a prompt. model, user: as it names them. scanned: under `policy` and rules of `generation`."""

    __slots__ = ("_counts", "_key", "_reply", "_result", "generation", "model", "policy", "scanned", "user")

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
        self._reply = b""
        self._counts: tuple[int | None, int | None] = None, None
        self._result: ScanResult

    def mark(self, raw: bytes) -> bytes | None:
        """Return what stands for the bytes of a reply; None when they are too many."""
        return sha256(self._key + raw).digest()[:_DIGEST_BYTES] if len(raw) <= MOST_BYTES else None

    def reply(self, mark: bytes, raw: bytes, headers: tuple[tuple[str, str], ...]) -> Reply | None:
        """Return the reply of these bytes, if it is the one that came the last time."""
        if mark != self._reply:
            return None
        return Reply(Unread(raw), headers, *self._counts, False, raw, mark, True)

    def note(self, reply: Reply, scanned: ScannedReply) -> None:
        """Keep what was found out about a reply in which nothing was found."""
        if reply.mark is not None and not reply.is_known:
            self._reply, self._result = reply.mark, scanned.result
            self._counts = reply.prompt_tokens, reply.completion_tokens

    def scanned_reply(self, reply: Reply) -> ScannedReply:
        """Return what was found in the reply that came the last time, which this one is."""
        return ScannedReply(reply.body, self._result, "none")

    def holds(self, policy: ShieldPolicy, generation: int) -> bool:
        """Tell whether a scan of now would find the same."""
        return policy is self.policy and generation == self.generation


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

    def mark(self, raw: bytes, owner: str) -> bytes:
        """Return what stands for a body of an owner, whose name has no line break."""
        if not self._key:  # not before the process is forked
            self._key = self._ids.random_bytes(32)
        return sha256(b"%b%b\n%b" % (self._key, owner.encode(), raw)).digest()[:_DIGEST_BYTES]

    def find(self, mark: bytes, generation: int) -> KnownPrompt | None:
        """Return what is known of a body since authority last changed. generation: the store's."""
        if generation != self._generation:
            self._newer, self._older = {}, {}
            self._generation = generation
            return None
        found = self._newer.get(mark)
        if found is None and (found := self._older.get(mark)) is not None:
            self._add(mark, found)  # what still comes outlives what does not
        return found

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
