"""Make keys of well-known vendors in the places where they leak, and what only looks like one; count what is found:

    python -m training.secrets [--seed NUMBER] [--show]

`vendors.txt` and `lookalikes.txt` say what there is. Every form of a key is put in every place once. The same seed
makes the same texts; `--show` prints the texts that were missed or wrongly flagged.
"""

import argparse
import base64
import json
import random
import re
import string
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

from gateway.shield import Direction, Policy, Shield, Verdict, load

VENDORS = Path(__file__).with_name("vendors.txt")
LOOKALIKES = Path(__file__).with_name("lookalikes.txt")
POLICY = Policy(categories=frozenset(("secret",)))
_LETTERS_AND_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ALPHABETS = {
    "n": _LETTERS_AND_DIGITS,
    "a": string.ascii_letters,
    "z": string.ascii_lowercase,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "U": string.ascii_uppercase + "234567",
    "h": string.digits + "abcdef",
    "H": string.digits + "ABCDEF",
    "d": string.digits,
    "w": _LETTERS_AND_DIGITS + "-_",
    "b": _LETTERS_AND_DIGITS + "+/",
}
_PIECE = re.compile(r"\{(?:(uuid|jwt|pem)|(crc|id|[nazluUhHdwb])(\d+))\}")


@dataclass(frozen=True, slots=True)
class Text:
    """One made text. group: its vendor, or the kind of look-alike. place: where the key stands, or nothing."""

    text: str
    group: str
    place: str
    is_secret: bool


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a vendor's key. is_bare: only the setting tells what it is."""

    vendor: str
    setting: str
    form: str
    is_bare: bool


# Making keys


def key_of(form: str, choice: random.Random) -> str:
    """Fill the pieces of a form with random characters and valid checksums."""

    def fill(piece: re.Match[str]) -> str:
        whole, alphabet, length = piece[1], piece[2], int(piece[3] or 0)
        if whole:
            return {"uuid": _uuid, "jwt": _jwt, "pem": _pem}[whole](choice)
        if alphabet == "crc":
            body = _some("n", length, choice)
            return body + crc_base62(body)
        if alphabet == "id":
            return base64.b64encode(str(choice.randrange(10 ** (length - 1), 10**length)).encode()).decode().strip("=")
        return _some(alphabet, length, choice)

    return _PIECE.sub(fill, form)


def crc_base62(body: str) -> str:
    """Return the CRC-32 of a body in six base62 digits, as GitHub and npm end their tokens."""
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, 62)
        digits = _LETTERS_AND_DIGITS[digit] + digits
    return digits.rjust(6, "0")


def _some(alphabet: str, length: int, choice: random.Random) -> str:
    return "".join(choice.choices(_ALPHABETS[alphabet], k=length))


def _uuid(choice: random.Random) -> str:
    return str(UUID(int=choice.getrandbits(128), version=4))


def _jwt(choice: random.Random) -> str:
    parts = {"alg": "HS256", "typ": "JWT"}, {"sub": _some("d", 8, choice), "role": "service_role", "iat": 1700000000}
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return f"{head}.{body}.{_some('w', 43, choice)}"


def _pem(choice: random.Random) -> str:
    lines = "\n".join(
        "b3BlbnNzaC1rZXktdjEA" + _some("b", 44, choice) if not line else _some("b", 64, choice) for line in range(6)
    )
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\n-----END OPENSSH PRIVATE KEY-----"


# The places where keys stand


def _words(setting: str) -> list[str]:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", setting).lower().strip("_").split("_")


def _camel(setting: str) -> str:
    first, *rest = _words(setting)
    return first + "".join(word.capitalize() for word in rest)


def _snake(setting: str) -> str:
    return "_".join(_words(setting))


def _dashed(setting: str) -> str:
    return "-".join(_words(setting))


def _host(vendor: str) -> str:
    return f"api.{''.join(re.findall('[a-z0-9]', vendor.lower()))}.com"


def _escaped(key: str) -> str:
    return json.dumps(key)[1:-1]


def _header(form: Form, key: str) -> str:
    if form.is_bare:
        return f"POST /v1/jobs HTTP/1.1\nHost: {_host(form.vendor)}\nX-{_dashed(form.setting).title()}: {key}\n"
    return f"GET /v1/items HTTP/1.1\nHost: {_host(form.vendor)}\nAuthorization: Bearer {key}\nAccept: */*\n"


def _code(form: Form, key: str) -> str:
    if form.is_bare:
        return f'import requests\n\n{form.setting.upper()} = "{key}"\nrequests.get(URL, timeout=9)\n'
    return f'from sdk import Client\n\nclient = Client("{key}", timeout=9)\n'


def _command(form: Form, key: str) -> str:
    if form.is_bare:
        return f"deploy --region eu --{_dashed(form.setting)} {key} --yes"
    return f"curl -s -H 'Authorization: Bearer {key}' https://{_host(form.vendor)}/v1/items | jq ."


def _inner(form: Form, key: str) -> str:
    return json.dumps({"id": 7, "payload": json.dumps({"region": "eu", _snake(form.setting): key})})


PLACES: Mapping[str, Callable[[Form, str], str]] = {
    "environment": lambda form, key: f"DEBUG=0\n{form.setting}={_escaped(key)}\nPORT=8080\n",
    "export": lambda form, key: f'export {form.setting}="{_escaped(key)}"',
    "json": lambda form, key: json.dumps({"region": "eu", _camel(form.setting): key, "retries": 3}, indent=2),
    "json in json": _inner,
    "yaml": lambda form, key: f"service:\n  region: eu\n  {_snake(form.setting)}: {_escaped(key)}\n  retries: 3\n",
    "toml": lambda form, key: f'[service]\n{_snake(form.setting)} = "{_escaped(key)}"\nretries = 3\n',
    "header": lambda form, key: _header(form, _escaped(key)),
    "url": lambda form, key: (
        f"https://{_host(form.vendor)}/v1/items?page=2&{_snake(form.setting)}={quote(key, safe='')}"
    ),
    "command": lambda form, key: _command(form, _escaped(key)),
    "docker": lambda form, key: f"docker run --rm -e {form.setting}={_escaped(key)} -p 80:80 app:1.2",
    "code": lambda form, key: _code(form, _escaped(key)),
    "javascript": lambda form, key: f"const {_camel(form.setting)} = '{_escaped(key)}';\nmodule.exports = {{}};\n",
    "csv": lambda form, key: f"owner,name,value\nops,{form.setting},{_escaped(key)}\n",
    "log": lambda form, key: f"2026-03-04T05:06:07Z INFO app: starting with {form.setting}={_escaped(key)} workers=4",
    "chat": lambda form, key: f"Hi, the {form.vendor} {' '.join(_words(form.setting)[-2:])} is {key}, does it work?",
}


# What only looks like a key

_REFERENCES = (
    "{s}=${{{s}}}",
    "{s}=$(pass show prod/{l})",
    'const key = process.env.{s} || "";',
    'key = os.environ["{s}"]',
    "{l}: ${{{{ secrets.{s} }}}}",
    '{l}: \'{{{{ lookup("env", "{s}") }}}}\'',
    "{s}=op://prod/service/{l}",
    "{s}=vault:secret/data/prod/service#{l}",
    "{s}=arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/{l}-a1B2c3",
    "{s}=projects/prod-1234/secrets/{l}/versions/3",
    "- name: {s}\n  valueFrom:\n    secretKeyRef:\n      name: service\n      key: {l}",
    "Set {s} in your environment before you start the service.",
    "{s}=your-{d}-here",
    "{s}=<your {l}>",
    "{s}=changeme",
    "{s}=",
    "{s}: [REDACTED]",
    'raise RuntimeError("{s} is not set")',
)


def _filled(form: str, character: str) -> str:
    """Return a form whose random pieces are one character again and again, or digits or letters in their order."""
    orders = {"1": string.digits[1:] + "0", "a": string.ascii_lowercase}

    def fill(piece: re.Match[str]) -> str:
        length = int(piece[3] or 32)
        return (orders.get(character, character) * (length // len(orders.get(character, character)) + 1))[:length]

    return _PIECE.sub(fill, form)


def _placeholders(form: Form, choice: random.Random) -> Iterator[tuple[str, str]]:
    """Yield kinds and values that stand in manuals and logs instead of a key of this form."""
    key = key_of(form.form, choice)
    start = form.form.partition("{")[0]
    for character in "xX0*1a":
        yield "filled", _filled(form.form, character)
    yield "placeholder", f"{start}YOUR_{form.setting.upper()}"
    yield "placeholder", f"{start}<your-{_dashed(form.setting)}>"
    yield "masked", f"{key[: len(start) + 3]}{'*' * 16}"
    yield "masked", f"{key[: len(start) + 3]}...{key[-4:]}"
    if len(key) > len(start) + 16 and "{pem}" not in form.form:
        yield "example", f"{key[:-7]}EXAMPLE"
    if "{crc" in form.form:
        yield "wrong checksum", key[:-6] + _some("n", 6, choice)


# Counting


def forms() -> list[Form]:
    """Read all forms of all vendors, each with the first name of its setting and then the others in turn."""
    found = []
    for line in _lines(VENDORS):
        vendor, settings, written = (part.strip() for part in line.split(" | "))
        names = settings.split()
        for index, form in enumerate(written.split()):
            found.append(Form(vendor, names[index % len(names)], form.removeprefix("="), form.startswith("=")))
        found += [Form(vendor, name, *_plain(written.split()[0])) for name in names[len(written.split()) :]]
    return found


def secrets(seed: int) -> Iterator[Text]:
    """Yield every form of every vendor in every place."""
    choice = random.Random(seed)
    for form in forms():
        for place, write in PLACES.items():
            yield Text(write(form, key_of(form.form, choice)), form.vendor, place, True)


def lookalikes(seed: int) -> Iterator[Text]:
    """Yield placeholders of every form, references to every setting, and each text of `lookalikes.txt` ten times."""
    choice = random.Random(seed)
    names = list(PLACES)
    for form in forms():
        for kind, value in _placeholders(form, choice):
            place = choice.choice(names)
            yield Text(PLACES[place](form, value), kind, place, False)
        for reference in choice.sample(_REFERENCES, 4):
            parts = {"s": form.setting, "l": _snake(form.setting), "d": _dashed(form.setting)}
            yield Text(reference.format(**parts), "reference", "", False)
    for line in _lines(LOOKALIKES) * 10:
        kind, text = line.split(" | ", 1)
        yield Text(key_of(text.replace("\\n", "\n"), choice), kind.strip(), "", False)


def flagged(shield: Shield, text: str) -> bool:
    """Tell whether the shield sees a secret that is worth a review."""
    return shield.scan(text, Direction.INBOUND, policy=POLICY).verdict is not Verdict.ALLOW


def shares(shield: Shield, seed: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return how many secrets were found of how many, and how many look-alikes were flagged of how many."""
    counts = []
    for texts in (secrets(seed), lookalikes(seed)):
        seen = [flagged(shield, one.text) for one in texts]
        counts.append((sum(seen), len(seen)))
    return counts[0], counts[1]


def main() -> None:
    """Print the counts by vendor, place and kind."""
    parser = argparse.ArgumentParser(prog="python -m training.secrets", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what was missed or wrongly flagged")
    options = parser.parse_args()
    shield = load()
    tables: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for one in [*secrets(options.seed), *lookalikes(options.seed)]:
        seen = flagged(shield, one.text)
        if one.is_secret:
            tables["found by vendor"][one.group].append(seen)
            tables["found by place"][one.place].append(seen)
        else:
            tables["look-alikes flagged"][one.group].append(seen)
        if options.show and seen is not one.is_secret:
            print(f"{'missed' if one.is_secret else 'flagged'} {one.group} ({one.place}): {one.text!r}")
    for title, rows in tables.items():
        everything = [seen for row in rows.values() for seen in row]
        print(f"\n{title + ', all':<34}{len(everything):>7}{sum(everything) / len(everything):>10.2%}")
        for name, row in sorted(rows.items(), key=lambda item: sum(item[1]) / len(item[1])):
            if title != "found by vendor" or not all(row):
                print(f"  {name:<32}{len(row):>7}{sum(row) / len(row):>10.2%}")


def _plain(form: str) -> tuple[str, bool]:
    return form.removeprefix("="), form.startswith("=")


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]


if __name__ == "__main__":
    main()
