"""What is masked of a text when the shield could not read all of it, or finds something only in another reading."""

from gateway.clock import Clock
from gateway.domain.policies import MASKING, Capture, ShieldPolicy
from gateway.llm.base import Leaf
from gateway.services.captures import Captures
from gateway.shield.detections import Detection, Direction, ScanResult, Severity, Verdict
from gateway.shield.engine import BUDGET_RULE
from gateway.shield.scoring import Policy

REDACTED = ShieldPolicy(capture=Capture.REDACTED)
UNREAD = Detection(
    rule=BUDGET_RULE, name="", category="encoding", severity=Severity.HIGH, description="", matched="",
    confidence=1.0, score=0, count=1, start=0, end=1, view="text",
)  # fmt: skip


async def find_word(text: str, direction: Direction, policy: Policy) -> ScanResult:
    """Find one word, and say of a text with dots that it was not read to its end."""
    assert policy is MASKING
    found = (UNREAD,) if "..." in text else ()
    return ScanResult(Verdict.ALLOW, 0, found, text.replace("secret", "s…(6)") if "secret" in text else None)


async def kept(*leaves: Leaf) -> str:
    captured = await Captures(find_word, Clock()).of_leaves(leaves, Direction.INBOUND, REDACTED)
    assert captured is not None
    return captured.text


async def test_a_text_that_was_not_read_to_its_end_is_kept_as_four_characters() -> None:
    captured = await Captures(find_word, Clock()).of_text("hello world...", Direction.INBOUND, REDACTED)
    assert captured is not None and captured.text == "hell…(14)"
    assert await kept(Leaf("a", "hello world...")) == "[a]\nhell…(14)"


async def test_only_the_text_with_a_match_is_changed() -> None:
    assert await kept(Leaf("a", "hello"), Leaf("b", "a secret")) == "[a]\nhello\n\n[b]\na s…(6)"


async def test_a_text_whose_other_reading_has_a_match_is_masked_whole_and_the_reading_is_not_kept() -> None:
    assert await kept(Leaf("a", "sec\\u0072et"), Leaf("a", "secret", view="json")) == "[a]\nsec…(11)"


async def test_a_file_is_kept_as_it_reads() -> None:
    assert await kept(Leaf("a", "its secret", view="base64")) == "[a]\nits s…(6)"


async def test_without_capture_nothing_is_scanned() -> None:
    captures = Captures(find_word, Clock())
    assert await captures.of_text("secret", Direction.INBOUND, ShieldPolicy()) is None
    assert await captures.of_leaves((Leaf("a", "..."),), Direction.INBOUND, ShieldPolicy()) is None
