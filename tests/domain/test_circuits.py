"""The circuit of a provider, moment by moment."""

from gateway.domain.circuits import Circuit, ProviderStatus


def opened(at_seconds: float = 0.0) -> Circuit:
    circuit = Circuit()
    for _ in range(5):
        circuit = circuit.failed(at_seconds)
    return circuit


def test_it_opens_at_the_fifth_failure_in_a_row_and_at_none_before() -> None:
    circuit = Circuit()
    for _ in range(4):
        circuit = circuit.failed(0)
    assert circuit.may_pass(0) and circuit.status(0) is ProviderStatus.DEGRADED
    assert not circuit.failed(0).may_pass(0)
    again = Circuit(has_answered=True).failed(0)
    assert again.may_pass(0) and again.failures == 1, "a success begins the row anew"


def test_it_lets_one_probe_through_when_the_pause_is_over() -> None:
    circuit = opened(at_seconds=100)
    assert not circuit.may_pass(129.9)
    assert circuit.status(129.9) is ProviderStatus.OPEN
    assert circuit.may_pass(130)
    assert circuit.status(130) is ProviderStatus.DEGRADED
    probing = circuit.begun()
    assert not probing.may_pass(130)
    assert probing.cancelled().may_pass(130), "a probe that was given up leaves its place to the next"


def test_the_pause_doubles_up_to_five_minutes() -> None:
    circuit, now_seconds, pauses = opened(), 0.0, []
    for _ in range(6):
        assert circuit.open_until_seconds is not None
        pauses.append(circuit.open_until_seconds - now_seconds)
        now_seconds = circuit.open_until_seconds
        circuit = circuit.begun().failed(now_seconds)
    assert pauses == [30, 60, 120, 240, 300, 300]


def test_late_failures_of_requests_from_before_do_not_lengthen_the_pause() -> None:
    circuit = opened()
    assert circuit.failed(10).open_until_seconds == circuit.open_until_seconds


def test_nobody_knows_how_a_provider_is_that_was_never_asked() -> None:
    assert Circuit().status(0) is ProviderStatus.UNTESTED
    assert Circuit(has_answered=True).status(0) is ProviderStatus.HEALTHY
