"""The wait of a sign-in after failed ones. Pure: the caller passes the failures and the time.

For one account from one network, 5 failures in a minute block the rest of that minute; from the 10th on, each failure
blocks 5 minutes, and from the 15th on 30 minutes. For one network and all accounts, the limit is 50 failures in a
minute. A success clears the failures of the account.
"""

import ipaddress
from collections.abc import Sequence

REMEMBER_MS = 24 * 3_600_000
ACCOUNT_FAILURES = 15
NETWORK_FAILURES = 50
MINUTE_MS = 60_000
_FAILURES_A_MINUTE = 5
_STEPS = ((15, 30 * MINUTE_MS), (10, 5 * MINUTE_MS))
_IPV6_PREFIX = 64
NO_ADDRESS = "none"


def wait_ms(of_account: Sequence[int], of_network: Sequence[int], now_at: int) -> int:
    """Return the remaining wait of a sign-in in milliseconds.

    of_account, of_network: times of the last failures, newest first, Unix milliseconds; at most `ACCOUNT_FAILURES` and
    `NETWORK_FAILURES` of them are read.
    """
    ends = [0]
    for count, wait in _STEPS:
        if len(of_account) >= count:
            ends.append(of_account[0] + wait)
            break
    if len(of_account) >= _FAILURES_A_MINUTE:
        ends.append(of_account[_FAILURES_A_MINUTE - 1] + MINUTE_MS)
    if len(of_network) >= NETWORK_FAILURES:
        ends.append(of_network[NETWORK_FAILURES - 1] + MINUTE_MS)
    # Bounded, in case the clock was set back.
    return min(max(0, max(ends) - now_at), _STEPS[0][1])


def network_of(ip: str | None) -> str:
    """Return the key of an address: itself, or the /64 network of an IPv6 address, because one host has all of it."""
    try:
        address = ipaddress.ip_address(ip or "")
    except ValueError:
        return NO_ADDRESS
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
