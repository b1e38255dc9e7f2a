"""How long a sign-in waits after failures."""

import pytest

from gateway.services.sign_in_throttle import MINUTE_MS, network_of, wait_ms

NOW = 1_700_000_000_000


def ago(*seconds: int) -> list[int]:
    return [NOW - one * 1000 for one in seconds]


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [
        ((), 0),
        ((0, 1, 2, 3), 0),
        ((0, 1, 2, 3, 4), 56),
        ((0, 1, 2, 3, 59), 1),
        ((0, 1, 2, 3, 60), 0),
        ((30, 40, 50, 60, 70, 80, 90, 100, 110), 0),
        ((30, 40, 50, 60, 70, 80, 90, 100, 110, 120), 270),
        ((299, *range(400, 409)), 1),
        ((300, *range(400, 409)), 0),
        ((300, *range(400, 414)), 1500),
        ((1800, *range(2000, 2014)), 0),
    ],
)
def test_failures_of_an_account_make_it_wait(failures: tuple[int, ...], seconds: int) -> None:
    assert wait_ms(ago(*failures), (), NOW) == seconds * 1000


@pytest.mark.parametrize(("count", "oldest", "seconds"), [(49, 30, 0), (50, 30, 30), (50, 60, 0)])
def test_failures_of_a_network_make_all_its_accounts_wait(count: int, oldest: int, seconds: int) -> None:
    assert wait_ms((), ago(*[0] * (count - 1), oldest), NOW) == seconds * 1000


def test_a_clock_that_was_set_back_locks_nobody_out_for_long() -> None:
    assert wait_ms([NOW + 10**12] * 15, (), NOW) == 30 * MINUTE_MS


@pytest.mark.parametrize(
    ("ip", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        (None, "none"),
        ("nonsense", "none"),
    ],
)
def test_an_ipv6_host_is_its_network(ip: str | None, network: str) -> None:
    assert network_of(ip) == network
