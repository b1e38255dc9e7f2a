"""How long a sign-in must wait after failures before it. Pure: told what failed when, remembers nothing.

Of one account from one network: 5 failures in a minute, wait until the minute is over; from the 10th on 5 minutes after
each, from the 15th on 30. Of one network over all accounts: 50 in a minute. A success forgets the account's failures.
"""

import ipaddress
from collections.abc import Sequence

REMEMBER_MS = 24 * 3_600_000
ACCOUNT_FAILURES = 15
NETWORK_FAILURES = 50
MINUTE_MS = 60_000
_A_MINUTE = 5
_STEPS = ((15, 30 * MINUTE_MS), (10, 5 * MINUTE_MS))
_IPV6_PREFIX = 64
NO_ADDRESS = "none"


def wait_ms(of_account: Sequence[int], of_network: Sequence[int], now_at: int) -> int:
    """Return how many milliseconds a sign-in must still wait, 0 for none.

    of_account, of_network: when the last failures were, newest first, Unix milliseconds; `ACCOUNT_FAILURES` and
    `NETWORK_FAILURES` of them are enough.
    """
    ends = [0]
    for count, wait in _STEPS:
        if len(of_account) >= count:
            ends.append(of_account[0] + wait)
            break
    if len(of_account) >= _A_MINUTE:
        ends.append(of_account[_A_MINUTE - 1] + MINUTE_MS)
    if len(of_network) >= NETWORK_FAILURES:
        ends.append(of_network[NETWORK_FAILURES - 1] + MINUTE_MS)
    # Bounded, in case the clock was set back since.
    return min(max(0, max(ends) - now_at), _STEPS[0][1])


def network_of(ip: str | None) -> str:
    """Return what stands for the address: itself, or its /64 when it is IPv6, of which one host has all addresses."""
    try:
        address = ipaddress.ip_address(ip or "")
    except ValueError:
        return NO_ADDRESS
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
