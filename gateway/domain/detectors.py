"""Detectors: other programs that judge texts. When each one is asked, and what its answer does. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from gateway.domain.providers import STORED
from gateway.settings import is_loopback
from gateway.shield.detections import CATEGORIES, Direction, Effect, ScanResult

MAX_DETECTORS = 20
DETECTOR = "detector:"
"""The rule of a detector's detections is this and its name."""
FAILED = ":failed"
"""What follows in the rule of a missing judgement: no risk acceptance can name that."""
SAFE = "safe"
"""What `labels` says of a label that means that nothing was found."""
DEFAULT_POINTS = 25
DEFAULT_THRESHOLD = 0.5
DEFAULT_CACHE_SECONDS = 600
_SCORE = "(?:100|[1-9]?[0-9])"
_CATEGORY = f"(?:{'|'.join(CATEGORIES)})"
WHEN_PATTERN = (
    f"^(?:always|score {_SCORE}-{_SCORE}|category {_CATEGORY}(?:,{_CATEGORY})*|sample (?:1|0\\.[0-9]{{1,4}}))$"
)


class DetectorKind(StrEnum):
    """The protocol of a detector."""

    OPENAI_CHAT = "openai_chat"
    TEI_PREDICT = "tei_predict"
    VLLM_CLASSIFY = "vllm_classify"
    OPENAI_MODERATIONS = "openai_moderations"
    FMS_CONTENTS = "fms_contents"
    PRESIDIO = "presidio"
    JSON = "json"


class ChatFormat(StrEnum):
    """How a guard model is asked over chat completions, and how it answers. LABELS: its own, named in `labels`."""

    LLAMA_GUARD = "llama_guard"
    QWEN3GUARD = "qwen3guard"
    GRANITE_GUARDIAN_3 = "granite_guardian_3"
    GRANITE_GUARDIAN_3_3 = "granite_guardian_3_3"
    GRANITE_GUARDIAN_4 = "granite_guardian_4"
    SHIELDGEMMA = "shieldgemma"
    GPT_OSS_SAFEGUARD = "gpt_oss_safeguard"
    LABELS = "labels"


class OnError(StrEnum):
    """What a detector that gave no judgement does to a text."""

    BLOCK = "block"
    REVIEW = "review"
    ALLOW = "allow"


_ON_ERROR = {Effect.VETO: OnError.BLOCK, Effect.OBSERVE: OnError.ALLOW}
_WINDOW_CHARS = {DetectorKind.OPENAI_CHAT: 8_000, DetectorKind.JSON: 8_000, DetectorKind.PRESIDIO: 20_000}
_CLASSIFIER_WINDOW_CHARS = 1_200
"""What fits into the 512 tokens that most classifiers read, in nearly every language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """One detector. It never holds its key.

    model: the name of the model; the detector's id for FMS, and the language for Presidio. prompt: of `openai_chat`,
    the criterion or policy to judge by. labels: of the detector's own labels, those that count, with the category of
    the detection, or `SAFE`; ``*`` stands for all others. body: of `json`, the request with ``{{text}}`` in place of
    the text. score_path, label_path: JSON Pointers (RFC 6901) into its answer. threshold: least probability that
    counts. points: of the effect POINTS. when: see `is_asked`. on_error, timeout_ms, window_chars, send_masked: None
    for the default. window_chars: longest text in one question; longer ones are cut into windows that overlap by
    overlap_chars.
    """

    id: str
    name: str
    kind: DetectorKind
    base_url: str = ""
    model: str | None = None
    format: ChatFormat | None = None
    prompt: str | None = None
    body: str | None = None
    score_path: str | None = None
    label_path: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    key_reference: str | None = field(default=None, metadata={"json_name": None})
    directions: tuple[Direction, ...] = (Direction.INBOUND,)
    effect: Effect = Effect.OBSERVE
    threshold: float = DEFAULT_THRESHOLD
    points: int = DEFAULT_POINTS
    when: str = "always"
    on_error: OnError | None = None
    timeout_ms: int | None = None
    max_concurrent: int = 8
    window_chars: int | None = None
    overlap_chars: int = 200
    cache_seconds: int = DEFAULT_CACHE_SECONDS
    send_masked: bool | None = None
    allow_private: bool = False
    enabled: bool = True
    created_at: int = 0
    created_by: str = ""
    version: int = 1

    @property
    def rule(self) -> str:
        """The rule id of its detections."""
        return DETECTOR + self.name

    @property
    def error_action(self) -> OnError:
        """What happens without a judgement."""
        return self.on_error or _ON_ERROR.get(self.effect, OnError.REVIEW)

    @property
    def is_open(self) -> bool:
        """Whether a text passes unjudged while the detector fails, though its judgement would count."""
        return self.effect is not Effect.OBSERVE and self.error_action is OnError.ALLOW

    @property
    def wait_ms(self) -> int:
        """Longest wait for all judgements on one prompt or answer."""
        return self.timeout_ms or (5_000 if self.kind is DetectorKind.OPENAI_CHAT else 1_000)

    @property
    def window(self) -> int:
        """Characters of a window."""
        return self.window_chars or _WINDOW_CHARS.get(self.kind, _CLASSIFIER_WINDOW_CHARS)

    @property
    def masks(self) -> bool:
        """Whether secrets are masked before a text is sent: always by default, unless it stays on this host."""
        if self.send_masked is not None:
            return self.send_masked
        return not is_loopback(urlsplit(self.base_url).hostname or "")

    def category(self, label: str) -> str | None:
        """Return the category of a label; None if the label does not count. An empty one always counts."""
        usual = "pii" if self.kind is DetectorKind.PRESIDIO else "injection"
        others = self.labels.get("*", SAFE if self.labels else usual)
        found = self.labels.get(label, others)
        if not label and found == SAFE:
            return usual
        return None if found == SAFE else found

    def key_source(self) -> str | None:
        """Return the key reference for display: `STORED` in place of a reference to the stored file."""
        reference = self.key_reference
        return STORED if reference is not None and reference.startswith("stored:") else reference

    def is_asked(self, result: ScanResult, chance: float) -> bool:
        """Tell whether the detector is asked about a text that the shield has judged so.

        `when` is ``always``; ``score 20-79``: between these scores; ``category injection,jailbreak``: the shield found
        one of these; or ``sample 0.05``: this share of all texts. chance: 0 to 1.
        """
        kind, _, wanted = self.when.partition(" ")
        if kind == "score":
            low, _, high = wanted.partition("-")
            return int(low) <= result.score <= int(high)
        if kind == "category":
            return any(one.category in wanted.split(",") for one in result.detections)
        return kind == "always" or chance < float(wanted)
