"""How often a piece of text stands in ordinary text, estimated from its letters. Every digit counts as 0.

Measured on 12,000 harmless texts, most of them English prose, the rest code and other languages.
"""

# Per 1000 characters; what is not listed is rare.
_COMMON = (
    (" ", 138), ("e", 78), ("t", 56), ("a", 53), ("in", 47), ("os", 45), ("r", 42), ("l", 27), ("dc", 25), ("h", 23),
    ("u", 20), ("pm", 18), ("0", 16), ("fg", 13), ("y.", 10), ("bw", 9), (",v", 7), ("-", 6), ("k", 5), ("*/`\"", 4),
    (":#", 3), ("_x)(", 2.3), ("j'>z=<", 1.3), ("[]{}|", 1),
)  # fmt: skip
SHARES = {char: share for chars, share in _COMMON for char in chars}
RARE = 0.3
_LETTERS = " abcdefghijklmnopqrstuvwxyz"
# Row: a letter; column: the letter after it; value: a for certain, each letter on is less likely by a factor of 1.41.
_AFTER = (
    "zhkjjkkmkjpplkmjjpkihmokwnt iuljkuolskunhjfujvghgmmpsls lgnqrfvorhnzgpsgtzilphvvzix kgwlugvygiyjiutfrxjmhkyzzoz "
    "diqunerquhruorritxmltkqtzoz ejqkilnosnurklgqmpghksmolot ehvuvhjvzgzwlwrfxziskkzzzmz ejtwsfumihyvlqlirzilpjwuznt "
    "hgtyrdxzwgyznrohxxmrjlzuzpz kknikjlluuupjkehmskhhskyrto pgypneswujroruqfqztfyfsnuvt ejqroeqmsgwrlrkkrupillzrzpv "
    "ggrrjfoqtgzrhothpwsklkquziz hflqpevpzhzxokshhzslukvvzmz fjujgiogskuoprnjrwtignotyot honkkpinsnsnjiflkzgkjhlksqv "
    "jgvsqgttmizwhprgjzgkjjyrsjz noxuttzsznwzjzuuyuquuazyzzz fhrmkeqnthzmmllhqwmjjmoszlx ekultgqtkizoppojksqjgkvozoz "
    "fivpugsufgzzoquhnzjkllxovlv jkkjkhplvkxsijgrjzgggypxtqs lguvucztzfzztzyivzrryrxzzrx hfuutgtzgfzunzkgxzllptzozvz "
    "hhuhsisyqhvwrqsqfvtqepvxomx clrqmjuryluznmmhkzrjkpzswsr gfupnewplgzvlpskuyvooitorol"
)
_CHANCE = {
    first + second: 2 ** -((ord(row[place]) - ord("a")) / 2)
    for first, row in zip(_LETTERS, _AFTER.split(), strict=True)
    for place, second in enumerate(_LETTERS)
} | {"00": 0.5}


def likelihood(text: str) -> float:
    """Estimate how often `text` stands at a given character of ordinary text, 0 to 1."""
    chance, last = 1.0, ""
    for char in text:
        chance *= _CHANCE.get(last + char) or SHARES.get(char, RARE) / 1000
        last = char
    return chance
