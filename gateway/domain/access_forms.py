"""Which values an entry of the access list can surely have, as patterns for the OpenAPI document. Pure; checks nothing.

`access_list.read_value` takes more: addresses with a zone, networks of IPv6 at any bit, domains in other alphabets.
"""

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
# The multiples of 4 and of 2, which are many; those of 8 and more are listed.
_MULTIPLES = {
    6: "[048]|[2468][048]|[13579][26]|1(?:[02468][048]|[13579][26])|2(?:[024][048]|[13][26]|52)",
    7: "[02468]|[1-9][02468]|1[0-9][02468]|2[0-4][02468]|25[024]",
}
_GROUP = "[0-9A-Fa-f]{1,4}"
_LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_ADDRESS_4 = f"(?:{_OCTET}\\.){{3}}{_OCTET}"
_ADDRESS_6 = "|".join(
    (
        f"(?:{_GROUP}:){{7}}{_GROUP}",
        f"(?:{_GROUP}:){{1,7}}:",
        *(f"(?:{_GROUP}:){{{count}}}(?::{_GROUP}){{1,{7 - count}}}" for count in range(1, 7)),
        f"::(?:{_GROUP}(?::{_GROUP}){{0,6}})?",
    )
)


def _networks_4() -> str:
    """Return the pattern of all networks of IPv4 without bits beyond their prefix."""
    forms = [_ADDRESS_4 + "(?:/32)?", "0\\.0\\.0\\.0/0"]
    for whole in range(4):  # octets before the one that the prefix ends in
        ends, zeros = [], "\\.0" * (3 - whole)
        for bits in range(1, 8):
            octets = _MULTIPLES.get(bits) or "|".join(str(octet) for octet in range(0, 256, 256 >> bits))
            ends.append(f"(?:{octets}){zeros}/{8 * whole + bits}")
        if whole < 3:
            ends.append(f"{_OCTET}{zeros}/{8 * whole + 8}")
        forms.append(f"(?:{_OCTET}\\.){{{whole}}}(?:{'|'.join(ends)})")
    return "|".join(forms)


def _networks_6() -> str:
    """Return the pattern of networks of IPv6 that end at a hex digit, written with ``::`` behind their prefix."""
    forms = [f"(?:{_ADDRESS_6})(?:/128)?", "::/0"]
    for whole in range(7):
        ends = [f"{_GROUP}::/{16 * whole + 16}"]
        ends += [f"[0-9A-Fa-f]{{{digits}}}{'0' * (4 - digits)}::/{16 * whole + 4 * digits}" for digits in (1, 2, 3)]
        forms.append(f"(?:{_GROUP}:){{{whole}}}(?:{'|'.join(ends)})")
    return "|".join(forms)


ADDRESS_PATTERN = f"^(?:{_ADDRESS_4}|{_ADDRESS_6})$"
NETWORK_PATTERN = f"^(?:{_networks_4()}|{_networks_6()})$"
DOMAIN_PATTERN = f"^(?:\\*\\.)?(?:localhost|(?:{_LABEL}\\.){{1,120}}{_LABEL})$"
