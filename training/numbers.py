"""Print how many numbers of people and firms the shield finds, and how many look-alikes it takes for one:

    python -m training.numbers [--seed N] [--each N] [--show N] [--country XX ...]

Each number has valid check digits (`number_checks.py`) and is written as in its country (`numbers.tsv`), with an
official or a short name before or behind it: in a sentence, on a line of a form, in a row of CSV, in a field of JSON.
It is found if a detection of the categories pii or financial overlaps it. `numbers-announced.tsv` holds announcements
by a second author, who had not read the rules; they are counted apart. A look-alike stands beside no name; it is
flagged if the text reaches REVIEW, and `any` counts those with any such detection. The same seed gives the same texts.
"""

import argparse
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from gateway.shield import Direction, Shield, load
from training.number_checks import MAKERS, Make, fill

TABLE = Path(__file__).with_name("numbers.tsv")
ANNOUNCED = Path(__file__).with_name("numbers-announced.tsv")
EACH, ANNOUNCED_EACH, LOOKALIKES_EACH = 24, 6, 400
REVIEW_SCORE = 25
# In each language: the name before the number, and the name behind it.
SENTENCES = {
    "de": ("Meine {n} lautet {v}, bitte vermerken.", "Unter {v} ({n}) bin ich dort gemeldet."),
    "fr": ("Mon {n} est le {v}, merci de le noter.", "Le {v} est mon {n}."),
    "it": ("Il mio {n} è {v}, grazie.", "{v} è il mio {n}."),
    "es": ("Mi {n} es {v}, gracias.", "El {v} es mi {n}."),
    "pt": ("O meu {n} é {v}, obrigado.", "{v} é o meu {n}."),
    "nl": ("Mijn {n} is {v}, alvast bedankt.", "{v} is mijn {n}."),
    "pl": ("Mój {n} to {v}, proszę o zapisanie.", "{v} to mój {n}."),
    "cs": ("Moje {n} je {v}, děkuji.", "{v} je moje {n}."),
    "sk": ("Moje {n} je {v}, ďakujem.", "{v} je moje {n}."),
    "hu": ("A {n} a következő: {v}, köszönöm.", "{v} az én {n}."),
    "ro": ("{n} meu este {v}, mulțumesc.", "{v} este {n} al meu."),
    "bg": ("Моят {n} е {v}, благодаря.", "{v} е моят {n}."),
    "hr": ("Moj {n} je {v}, hvala.", "{v} je moj {n}."),
    "sl": ("Moja {n} je {v}, hvala.", "{v} je moja {n}."),
    "sr": ("Moj {n} je {v}, hvala.", "{v} je moj {n}."),
    "el": ("Ο {n} μου είναι {v}, ευχαριστώ.", "{v} είναι ο {n} μου."),
    "sv": ("Mitt {n} är {v}, tack.", "{v} är mitt {n}."),
    "no": ("Mitt {n} er {v}, takk.", "{v} er mitt {n}."),
    "da": ("Mit {n} er {v}, tak.", "{v} er mit {n}."),
    "fi": ("Minun {n} on {v}, kiitos.", "{v} on minun {n}."),
    "et": ("Minu {n} on {v}, aitäh.", "{v} on minu {n}."),
    "lv": ("Mans {n} ir {v}, paldies.", "{v} ir mans {n}."),
    "lt": ("Mano {n} yra {v}, ačiū.", "{v} yra mano {n}."),
    "en": ("My {n} is {v}, please note it.", "{v} is my {n}."),
    "zh": ("我的{n}是{v}，谢谢。", "{v}是我的{n}。"),
    "ja": ("私の{n}は{v}です。", "{v}が私の{n}です。"),
    "ko": ("제 {n}는 {v}입니다.", "{v}가 제 {n}입니다."),
    "th": ("{n}ของฉันคือ {v} ค่ะ", "{v} คือ{n}ของฉัน"),
    "vi": ("{n} của tôi là {v}, cảm ơn.", "{v} là {n} của tôi."),
    "id": ("{n} saya adalah {v}, terima kasih.", "{v} adalah {n} saya."),
    "tr": ("{n} {v}, teşekkürler.", "{v} benim {n}."),
    "ru": ("Мой {n}: {v}, спасибо.", "{v} — мой {n}."),
    "uk": ("Мій {n}: {v}, дякую.", "{v} — мій {n}."),
    "ar": ("{n} الخاص بي هو {v} وشكرا", "{v} هو {n}"),
    "he": ("{n} שלי הוא {v}, תודה", "{v} הוא {n} שלי"),
    "hi": ("मेरा {n} {v} है।", "{v} मेरा {n} है।"),
}


@dataclass(frozen=True, slots=True)
class Number:
    """One kind of number: how it is made and written, and what it is called.

    layouts: `#` is the next character of the number; an empty layout is the number as it is.
    """

    country: str
    language: str
    kind: str
    make: Make
    layouts: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A text with a number in it, or a look-alike; `kind` says of which kind, `group` in which line it is counted."""

    group: str
    kind: str
    text: str
    number: str


def numbers() -> list[Number]:
    """Read the table."""
    rows = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines()]
    return [
        Number(country, language, kind, MAKERS[kind], tuple(layouts.split("|")), tuple(names.split("|")))
        for country, language, kind, layouts, names in rows
    ]


def examples(seed: int, each: int = EACH) -> Iterator[Example]:
    """Make `each` texts for each kind of number."""
    for number in numbers():
        choice = Random(f"{seed} {number.country} {number.language} {number.kind}")
        for turn in range(each):
            value = write(number.make(choice), choice.choice(number.layouts))
            text = announce(choice.choice(number.names), value, number.language, turn, choice)
            yield Example(number.country, number.kind, text, value)


def announced(seed: int, each: int = ANNOUNCED_EACH) -> Iterator[Example]:
    """Put `each` numbers into each announcement of the second author."""
    known = {(number.country, number.kind): number for number in numbers()}
    for row in ANNOUNCED.read_text("utf-8").splitlines():
        country, kind, form = row.split("\t")
        number, choice = known[country, kind], Random(f"{seed} {row}")
        for _ in range(each):
            value = write(number.make(choice), choice.choice(number.layouts))
            yield Example(country, kind, form.replace("\\n", "\n").format(v=value), value)


def write(digits: str, layout: str) -> str:
    """Write a number with the blanks and dots of a layout."""
    following = iter(digits)
    return "".join(next(following, "") if sign == "#" else sign for sign in layout) or digits


def announce(name: str, value: str, language: str, turn: int, choice: Random) -> str:
    """Put a number and its name into a text; `turn` chooses the kind of text."""
    before, behind = SENTENCES[language]
    if turn % 3 == 0:
        return before.format(n=name, v=value)
    field = "".join(unicodedata.normalize("NFKD", sign)[0] if sign < "\u0250" else sign for sign in name.lower())
    name = choice.choice((name, name, name.upper()))
    shapes: tuple[Callable[[], str], ...] = (
        lambda: f"Anna Muster\n{name}: {value}\n",
        lambda: json.dumps(
            {"id": 7, re.sub(r"[\s.'\"°º#/-]+", "_", field).strip("_"): value, "ok": True}, ensure_ascii=False
        ),
        lambda: behind.format(n=name, v=value),
        lambda: f"{value} ({name})",
        lambda: f"nr;{name};city\n1;{value};X\n",
        lambda: f"| {name} | {value} |",
        lambda: f"{name} {value}",
        lambda: f"{name}\n{value}",
    )
    return shapes[turn % len(shapes)]()


LOOKALIKES: dict[str, tuple[str, ...]] = {
    "order number": (
        "Order {1#######} has shipped.",
        "Bestellung {1#########}",
        "commande n° {1######}",
        "PO-{1#####}-{##}",
    ),
    "phone": ("Call +49 30 {1#######}", "Tel. 0211 {1###}-{####}", "ring 020 {7### ####}", "tél. 01 {## ## ## ##}"),
    "date": ("on 2024-01-1{#} at 0{#}:1{#}", "am 1{#}.03.1998", "from 2024011{#} to 2024021{#}", "1{#}/12/2024"),
    "amount": ("total {1#,###.##} EUR", "Summe {1.###.###,##} €", "costs {1 ### ###} Ft", "{1##############} wei"),
    "version": ("v1.{##.1###}", "build 10.0.{1####.1##}", "chrome/12{#}.0.{1###.1##}", "release 2024.{1#.#}"),
    "tracking number": (
        "1Z{1@1##}03{########}",
        "tracking {1###########}",
        "Sendung 00340434{1###########}",
        "RR{1########}GB",
    ),
    "article": ("EAN 40{###########}", "ISBN 978-3-{1##-#####-#}", "part no. {1###-####-##}", "SKU {1##-##-####}"),
    "log": ("[{1#########}] job {1########} done in {1###} ms", "pid={1####} user={1########} req={1###########}"),
    "data": (
        "{1########,1#########,1##########,1###########}",
        "id: {1##############}",
        "0x{1#######}",
        "-{1#.######,##.######}",
    ),
    "code": (
        "const N = {1#########};",
        "MAX = {1###########}  # ns",
        "sleep({1#######})",
        "issue {1####} in commit {1######}",
    ),
}


def lookalikes(seed: int, each: int = LOOKALIKES_EACH) -> Iterator[Example]:
    """Make texts with numbers that are nobody's: other kinds of numbers, and numbers with a wrong check digit."""
    for kind, forms in LOOKALIKES.items():
        choice = Random(f"{seed} {kind}")
        for turn in range(each):
            text = random_digits(forms[turn % len(forms)], choice)
            yield Example(kind, kind, text, text)
    known = [number for number in numbers() if not number.kind.startswith(("passport", "licence"))]
    choice = Random(f"{seed} wrong")
    for turn in range(each * 2):
        number = known[turn % len(known)]
        digits = number.make(choice)
        places = [i for i, sign in enumerate(digits) if sign.isdigit()]
        place = choice.choice(places[-2:])
        digits = digits[:place] + str((int(digits[place]) + choice.randint(1, 9)) % 10) + digits[place + 1 :]
        value = write(digits, choice.choice(number.layouts))
        yield Example("wrong check digit", number.kind, choice.choice(_BARE).format(v=value), value)


_BARE = (
    "{v}",
    "see {v}, please",
    "item {v} of the list",
    "reference {v}",
    "siehe {v}",
    "{v};7;open",
    '{{"key": "{v}"}}',
)


def random_digits(form: str, choice: Random) -> str:
    """Fill in what stands in braces."""
    return re.sub(r"\{(.*?)\}", lambda found: fill(found[1], choice), form)


def tell(shield: Shield, title: str, found: Iterator[Example], show: int, *, are_numbers: bool) -> None:
    """Scan all texts, print a line for each group and one for all, then texts that went wrong."""
    counts, hits, reviews = Counter[str](), Counter[str](), Counter[str]()
    wrong: list[tuple[Example, str]] = []
    for example in found:
        result = shield.scan(example.text, Direction.INBOUND)
        start = example.text.find(example.number)
        spans = [
            (one.rule, span)
            for one in result.detections
            if one.category in ("pii", "financial")
            for span in (one.spans or ((one.start, one.end),))
        ]
        hit = [rule for rule, (begin, end) in spans if begin < start + len(example.number) and start < end]
        for group in (example.group, "all"):
            counts[group] += 1
            hits[group] += bool(hit)
            reviews[group] += result.score >= REVIEW_SCORE
        if bool(hit) != are_numbers:
            wrong.append((example, " ".join(hit)))
    print(f"{title:<28}{'texts':>7}{'found' if are_numbers else 'any':>9}{'review':>9}")
    counts["all"] = counts.pop("all", 0)
    for group, count in counts.items():
        print(f"  {group:<26}{count:>7}{hits[group] / count:>9.1%}{reviews[group] / count:>9.2%}")
    for example, rules in wrong[:show]:
        print(f"    {example.group} {example.kind} {rules} {example.text!r}")


def report(shield: Shield, seed: int, each: int = EACH, show: int = 0, only: tuple[str, ...] = ()) -> None:
    """Print the three tables."""
    for title, texts in (("numbers announced", examples(seed, each)), ("by a second author", announced(seed))):
        chosen = (example for example in texts if not only or example.group in only)
        tell(shield, title, chosen, show, are_numbers=True)
    tell(shield, "number look-alikes", lookalikes(seed), show, are_numbers=False)


def main() -> None:
    """Print the tables for the rules that come with the gateway."""
    parser = argparse.ArgumentParser(prog="python -m training.numbers", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=EACH, help="texts for each kind of number")
    parser.add_argument("--show", type=int, default=0, help="print so many texts that went wrong")
    parser.add_argument("--country", nargs="*", default=[], help="only these countries")
    options = parser.parse_args()
    report(load(), options.seed, options.each, options.show, tuple(options.country))


if __name__ == "__main__":
    main()
