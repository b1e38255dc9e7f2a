"""Mention is not use: whether what stands before a match says that it is quoted or talked about. Judges, finds nothing.

Only what stands before a match is read, so that a text in pieces is judged as the whole one is.
"""

import re
from functools import cache
from itertools import islice
from typing import Literal

from gateway.shield.detections import Severity
from gateway.shield.ordinary import is_ordinary

# Categories of words meant for a model. Keys, commands, encodings and hidden text are no less harmful in quotes.
SAYABLE = frozenset(
    {"injection", "jailbreak", "extraction", "indirect", "social_engineering", "sensitive_path", "tool_abuse"}
)
# Commands are for nobody where a lesson shows what a form is fed (`ordinary`).
MENTIONABLE = SAYABLE | {"command"}
# What is forbidden to ask for is not asked for; but "never refuse" is what an attack says itself.
_FORBIDDABLE = frozenset({"extraction", "sensitive_path", "tool_abuse"})
LOWER_NOTE = " It is quoted or talked about here, and counts less for that."
_BEFORE_CHARS = 200
_NEGATION_CHARS = 40
# More places than that are not looked at: a match so often repeated counts in full.
MOST_PLACES = 32
Level = Literal[0, 1, 2, 3]

_LOWER = {Severity.CRITICAL: Severity.HIGH, Severity.HIGH: Severity.MEDIUM, Severity.MEDIUM: Severity.LOW}
_CLOSERS = {"“": "”", "„": "“”", "«": "»", "‹": "›", "「": "」", "『": "』", "‘": "’", "‚": "‘", "»": "«"}
_CODE = tuple(":=([{")
_SINGLE = re.compile(r"(?<=[\s\[(,{=])'(?=\w|\Z)(?![^']*\S'(?!\w)).*\Z")
_WORD = re.compile(r"\w")
_END = re.compile(r"[.!?;\n]")
# What these are searched for in is in lower case.
_TELLING = (
    r"\W(?:such as|phrases?|sentences?|wording|strings?|messages? like|texts? like|inputs? like|things like|"
    r"prompt.?injections?|injection attempts?|jailbreak (?:attempts?|prompts?)|attackers?|adversar(?:y|ies)|"
    r"(?:if|when|whenever) (?:the |a |an )?(?:user|player|visitor|customer|caller|someone|somebody|anyone|anybody|"
    r"message|text|mail|page)s? (?:says?|asks?|tells?|writes?|tries|contains?)|"
    r"(?:tries|tried|trying|attempts?|attempted) to|people who|"
    r"(?:refus(?:es?|ed|ing)|declin(?:es?|ed|ing)) (?:when|if) asked to|"
    r"matched|flag(?:s|ged)?|detect(?:s|ed|or|ion)?|filter(?:s|ed|ing)?|blocked|classif(?:y|ies|ier)|"
    r"def test_\w{0,60}|assert\w{0,20}|expect|headline|slogan|lyrics?|quoted|so-called|"
    r"copies of|meme|joke|attacks?|awareness|phishing|translat(?:or|ion)'?s? note|grep|quiz|exam(?:ple)? question|"
    r"explain why|blocks?|rejects?|(?:test|it|describe)(?=\()|dialogue|villain|chapter|subtitles?|"
    r"sätze wie|wie etwa|wie zum beispiel|phrases? comme|frases? como|frasi come|"
    r"(?:that|which|who|sticker|sign|banner|label|note|letter|review|post|page|comment|poster|button|caption|"
    r"voice|speaker|screen|computer|character) "
    r"(?:said|says|reads|stated|states|claimed|claims)(?=[\s,:]+(?:in effect,? )?[\"'“‘«„])|"
    r"zinnen als|zdania takie jak|jeżeli (?:gracz|użytkownik) powie|wenn (?:der|ein) (?:nutzer|spieler) sagt)\b"
)
# The same in scripts that put no blank between words.
_TELLING_BEYOND = (
    r"インジェクション|프롬프트 인젝션|提示词注入|提示注入|例如|比如|例えば|инъекци|например|इंजेक्शन|जैसे|حقن|مثل"
)
# What a quotation is announced by, some words before it, in several languages.
_ANNOUNCED = (
    r"(?:\b(?:texts?|sentences?|phrases?|lines?|strings?|messages?|words?|commands?|headings?|titles?|comments?|inputs?|"
    r"payload|e\.g\.|examples?|e-?mails?|beispiel|exemple|ejemplo|esempio|exemplo|voorbeeld|przykład|örnek|exempel|says?|said|saying|asks?|asked|writes?|wrote|written|reads?|types?|typed|contains?|claims?|"
    r"satz|sätze|nachricht|eingabe|schreibt|sagt|fragt|fordert|übersetzen?|texte|demande|écrit|dit|traduisez|"
    r"frase|texto|mensaje|dice|pide|escribe|traduce|mensagem|diz|pede|escreve|testo|messaggio|scrive|chiede|"
    r"zin|tekst|bericht|vraagt|zegt|schrijft|zdanie|wiadomość|pisze|prosi|mówi|metin|cümle|sagte|disse|dijo|zei|sade|powiedział|dedi|kata|nói|"
    r"whispered|shouted|growled|flüsterte|rief|zischte|raunte|demanda|chuchota|murmura|preguntó|gritó|murmuró|chiese|"
    r"sussurrò|gridò|perguntou|sussurrou|vroeg|riep|fluisterde|zapytał|szepnął|krzyknął|frågade|viskade|ropade|sordu|"
    r"fısıldadı|bağırdı|bertanya|berbisik|hỏi)\b|"
    r"пример|приклад|例|예시?|фраз|текст|сообщени|пиш|говорит|просит|сказал|сказав|спросил|крикнул|прошептал|запитав|прошепотів|قال|همس|कहा|说|メッセージ|文章|句子|문장|메시지|جملة|نص|वाक्य)"
    r"[^\s,:]{0,6}(?:[ ,:]{1,2}[^\s,:]{1,16}){0,3}[\s,:(]{0,3}\Z"
)
# What tells before a quotation that it shows an attack: tricks by name, who finds them, where they are taught.
_SHOWN = (
    r"\b(?:researchers?|job ?seekers?|applicants?|newsletters?|workshops?|webinars?|trainer|slides?|pasted?|typed|"
    r"hid|smuggled|planted|slipped|refuse[sd]|refusing|decline[sd]|declining|inyecci[oó]n|iniezion|injeç|enjeksiyon|wstrzykn|angriff|attaque|ataque|attacc|"
    r"aanval|atak|saldırı|angrepp|angrep|angreb|hyökkäy|támadás|útok|atac(?:ul|uri)|tấn công|serangan|"
    r"forsch(?:er|ungs)|versteckt|eingeschmuggelt|schulung|fortbildung|unterricht|chercheu|caché|dissimul|glissé|formation|"
    r"stagiaires|investigador|ocult[aoó]|escondi|taller|formación|pesquisador|oficina|formação|ricercator|nascos|nascond|"
    r"formazione|onderzoekers|verborgen|verstopt|scholing|badacz|ukry[łt]|szkoleni|warsztat|"
    r"araştırmacı|gizle[dn]|eğitim|forskare|gömd|utbildning)|"
    r"атак|исследовател|спрят|скрыт|дослідник|приховал|сховал|тренинг|семинар|семінар|"
    r"攻撃|攻击|攻擊|注入|研究者|研究人员|研究員|培训|研修|授業|隠し|隐藏|공격|연구(?:자|원|진)|숨겨|교육|"
    r"हमल|शोधकर्ता|هجوم|باحث|أخف|โจมตี|επίθεσ|ερευνητ|התקפ|חוקר"
)
# Whoever is told to do what stands in quotation marks is told so in full.
_COMMANDED = (
    r"\b(?:follow|obey|execute|carry out|comply|do (?:what|as)|perform|apply|act on|"
    r"befolge|folge|führe?|gehorche|suis|suivez|exécute|obéis|sigue|siga|ejecuta|obedece|cumple|executa|execute|cumpra|"
    r"segui|esegui|obbedisci|volg|voer|gehoorzaam|wykonaj|zastosuj|uygula|yerine getir|följ|utför|laksanakan|patuhi|"
    r"thực hiện|làm theo)\b|выполн|следуй|исполни|викона|дотримуйся|実行|従|执行|執行|遵循|照做|실행|따르|따라|"
    r"نفذ|اتبع|पालन"
)
_ANNOUNCED_CHARS = 80
# The name of a value in data, which announces nothing.
_NAMED = re.compile(r"(?:[\"'`]\s{0,2}:|=|(?:\A|[\n{,])\s{0,40}[\w.-]{1,40}\s?:)\s{0,4}\Z")
_OPENING = re.compile("[\"“„«‹「『‘‚]|(?<=[\\s\\[(,{=])'(?=\\w)")
# Whoever begins by calling the assistant by its name is its user: no document that speaks to whatever machine reads it.
_HAIL = re.compile(
    r"\W{0,4}(?:(?:hey|hi|hello|hallo|hola|salut|ciao|dear|ok|okay|yo|good (?:morning|afternoon|evening))[ ,]{1,2})?"
    r"(?:my |@)?(?:ai|assistant|copilot|chat ?gpt|gpt|claude|gemini|alexa|siri|cortana|bot|chatbot)"
    r"(?: ?[,!.:]|(?= (?:please|can you|could you|i )))",
    re.IGNORECASE,
)
# What others may ask for, told to whoever is to withstand it: "if anyone tells you to ..."
_FORESEEN = (
    r"\b(?:(?:if|when|whenever|should|even if) (?:(?:an?|the|any|some) )?(?:[\w'-]{1,16} ){0,3}"
    r"(?:asks?|tells?|orders?|instructs?|wants?|tries|begs?|says?|claims?|urges?|commands?|requests?)"
    r"(?: (?:you|it|them|him|her|the [\w-]{1,12}))?(?: to\b|(?=[ :,]{1,2}[\"'“«(]))|"
    r"(?:do not|don.t|never|must not|refuse to|don.t ever) (?:follow|obey|accept|comply with|act on|fall for|let|allow|"
    r"carry out|believe|heed|respond to|answer)(?: [\w'-]{1,16}){0,4} (?:to|that|who|which|such as|like)|"
    r"(?:if|when|whenever|where|should) (?:[\w'-]{1,16} ){1,4}(?:contains?|includes?|carries|holds) "
    r"(?:text|anything|something|instructions?|orders?|commands?|words|lines?|sentences?|content|notes?|messages?)\b)"
    r"(?: [\w'/-]{1,16}){0,6}[ :,]{0,2}[\"'“«(]{0,2}$"
)
# The same in other languages, as far as what is asked for hangs on it: "wenn jemand verlangt, dass du ...".
_FORESEEN_ELSEWHERE = (
    r"(?:\b(?:"
    r"(?:wenn|falls|sollte) (?:jemand|ein\w? \w{3,14}|der \w{3,14})\b[^.!?\n]{0,60}? (?:dass|zu|sie sollen|"
    r"du soll(?:e?st))|"
    r"si (?:quelqu.un|une? \w{3,14}|l[ea.] ?\w{3,14})\b[^.!?\n]{0,60}? (?:d[e’']|que (?:vous|tu)|à)|"
    r"(?:si|cuando) (?:alguien|una? \w{3,14}|el \w{3,14}|la \w{3,14})\b[^.!?\n]{0,60}? (?:que)|"
    r"(?:se|quando) (?:qualcuno|una? \w{3,14}|il \w{3,14}|alguém|um\w? \w{3,14}|o \w{3,14})\b[^.!?\n]{0,60}? "
    r"(?:di|che|que|para)|"
    r"(?:als|wanneer) (?:iemand|een \w{3,14}|de \w{3,14})\b[^.!?\n]{0,60}? (?:om|dat (?:je|jij|u)|te)|"
    r"(?:om|hvis) (?:någon|noen|nogen|en \w{3,14})\b[^.!?\n]{0,60}? (?:att (?:du|ni)?|om at|at (?:du|dere|i))|"
    r"(?:jeśli|jeżeli|gdy|kiedy) ktoś\b[^.!?\n]{0,60}? (?:o|żeby|żebyś|aby|abyś)|"
    r"eğer (?:biri|birisi)\b[^.!?\n]{0,60}?|"
    r"(?:jika|kalau|bila) (?:seseorang|ada (?:yang|orang))\b[^.!?\n]{0,60}? (?:untuk|agar|supaya)|"
    r"nếu (?:có )?(?:ai|người)[^.!?\n]{0,60}? (?:bạn|yêu cầu|bảo)|"
    r"(?:если|когда|якщо|коли) (?:кто-то|кто-либо|вас|тебя|хтось|вас|тебе)\b[^.!?\n]{0,60}? (?:чтобы|щоб|просит|"
    r"попросит|просят|попросят|просить|попросить)(?: (?:ты|вы|вас|тебя|ти|ви|тебе))?)"
    r"(?: ?[^\s.!?,;:]{1,16}){0,3}|"
    r"(?:若|如果|如|假如|倘若|遇到|凡是?)(?:有)?(?:人|用户|客户|对方)[^。！？!?\n]{0,30}?(?:要求|让|叫|请|請|命令)(?:你|您|他们|它|模型)?|"
    r"누군가[^.!?\n]{0,40}? )[ :,：，]{0,2}[\"'“«「『(]{0,2}$"
)
# What a question of an exam is about.
_EXAMINED = (
    r"\b(?:quiz|exam question|which of the following|multiple.choice|true or false|prüfungsfrage|"
    r"welche[rs]? der folgenden|laquelle des|lequel des|"
    r"parmi les suivantes|cuál de (?:las|los) siguientes|qual(?:e)? (?:delle|dei) seguenti|"
    r"qua(?:l|is) d[ao]s (?:seguintes|opções)|welke van de volgende|któr[aey] z (?:poniższych|następujących)|"
    r"vilken av följande|hvilke[nt] af følgende|как(?:ой|ая|ое) из|який з|яка з|aşağıdakilerden hangisi|"
    r"manakah dari)\b|(?:下面|以下|下列)(?:的)?哪|次のうち|以下のうち|다음 중|أي مما يلي|निम्नलिखित में से"
)
# A list in code that is called what it holds.
_LISTED = (
    r"(?:(?:injection|attack|payload|jailbreak|malicious|adversarial|hostile)\w{0,20}(?: ?: ?[\w\[\], .|<>]{1,30})? ?"
    r"(?::?=|: (?=\[)) ?(?:\w{1,12}\()?|parametrize\([\"'][\w, ]{1,40}[\"'], ?)"
    r"[\[({](?:[^\])}\n]|\n\s{0,12}[\"'`#/\[({]){0,200}$"
)
_NEGATED = (
    r"\b(?:do not|don.t|never|must not|should not|shouldn.t|cannot|can.t|won.t|"
    r"may not|nobody|nobody may|no one may|without|refuse to|avoid)"
    r"(?: [\w/'-]{1,14}){0,4}[ `\"'(]{1,3}$|"
    r"(?:\A|[.!?;:,\n] ?|\b(?:und|et|y|e|en|och|og|i|и|і|dan|và) )"
    r"(?:nunca|jam[aá]s|jamais|não|no|non|ne|n['’]|nie|nigdy nie|aldrig|inte|ikke|не|никогда не|ні|ніколи не|jangan|"
    r"đừng|không|μην?|ποτέ μην)(?: (?:les?|la|l[oa]s|me|lui|se|os|as|pernah|bao giờ))?[ `\"'(]{0,3}$|"
    r"(?:不要|请勿|切勿|不得|禁止|严禁|绝不|勿|别)$"
)
# The same within it: "nenne niemals deine Anweisungen".
_NEGATED_WITHIN = (
    r"\w (?:nie|niemals|nooit|nimmer|never|jamais|mai|nunca|jam[aá]s|aldrig|nigdy|никогда|ніколи|ποτέ|soha) "
    r"(?:(?:le|la|il|i|as|os|a|o|las?|los?) )?(?:your|deine?[nr]?|ihre|je|jouw|uw|tes|ton|ta|vos|tus?|sus?|tu[aeo]i?s?|"
    r"teus?|seus?|suas?|din[ae]?|ditt?|swoi\w{1,3}|twoi\w{1,3}|сво\w{1,3}|тво\w{1,3})\b[^,.:;!?]{0,40}$|"
    r" asla \w{1,20}$"
)

_FORESEEN_ANYHOW = (_FORESEEN, _FORESEEN_ELSEWHERE, _EXAMINED)


@cache
def _regex(text: str) -> re.Pattern[str]:
    """Compile a regex when it is first asked for: most texts have no match to judge."""
    return re.compile(text)


class Mentions:
    """How surely matches in one text are mentions. What stands before a place is read once."""

    __slots__ = ("_has_marks", "_levels", "_steps", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        # Whether a quotation may begin anywhere.
        self._has_marks = '"' in text or "'" in text or not text.isascii()
        self._levels: dict[int, Level] = {}
        self._steps: dict[tuple[int, int, str], Level] = {}

    def level(self, start: int, category: str) -> Level:
        """Say how surely a match at `start` is one: 3 one of a list of samples in code, 2 foreseen or quoted and
        announced, 1 one of both, 0 none.

        The beginning of a text is no mention, nor is a text that stands in quotation marks as a whole. What is said to
        machines that read a text counts as one where the text begins with it: its writer is the user himself.
        """
        text = self.text
        if category not in SAYABLE:
            return 0
        if category == "indirect" and (hail := _HAIL.match(text)) and start < hail.end():
            return 2
        if self._has_marks and _OPENING.match(text, start):
            start += 1
        if category in _FORBIDDABLE and _regex(_NEGATED).search(text[max(0, start - _NEGATION_CHARS) : start].lower()):
            return 2
        known = self._levels.get(start)
        if known is None:
            before = text[max(0, start - _BEFORE_CHARS) : start].lower()
            known = self._levels[start] = _level_after(before) if before else 0
        return known

    def steps(self, start: int, end: int, category: str) -> Level:
        """Say the same of a match, a half-open span: what is no order to a model (`ordinary`) is one in full."""
        known = self._steps.get((start, end, category))
        if known is None:
            known = self._steps[start, end, category] = self._steps_of(start, end, category)
        return known

    def _steps_of(self, start: int, end: int, category: str) -> Level:
        if category in _FORBIDDABLE:
            if _regex(_NEGATED_WITHIN).search(self.text[start:end].lower()):
                return 2
        steps = self.level(start, category)
        if steps < 2 and (
            (category in SAYABLE and self._has_shown(start, end)) or is_ordinary(self.text, start, end, category)
        ):
            return 2
        return steps

    def _has_shown(self, start: int, end: int) -> bool:
        """Say whether a match goes on into a quotation of what is shown to be an attack."""
        if not self._has_marks:
            return False
        for found in islice(_OPENING.finditer(self.text, start + 1, end), MOST_PLACES):
            before = self.text[max(0, found.end() - _BEFORE_CHARS) : found.end()].lower()
            quoted = _quoted_at(before)
            if quoted is not None and _is_shown(before, quoted):
                return True
        return False


def lowered(severity: Severity, steps: int) -> Severity:
    """Return the severity so many steps down, low at least."""
    for _ in range(steps):
        severity = _LOWER.get(severity, severity)
    return severity


def _level_after(before: str) -> Level:
    """Say how surely what follows some letters in lower case is a mention, whatever it is."""
    if _regex(_LISTED).search(before):
        return 3
    if any(_regex(one).search(before) for one in _FORESEEN_ANYHOW):
        return 2
    told = _told_at(before)
    quoted = _quoted_at(before)
    if quoted is not None:
        lead = before[max(0, quoted - _ANNOUNCED_CHARS) : quoted]
        is_announced = (
            told is not None
            or _is_shown(before, quoted)
            or (_regex(_ANNOUNCED).search(lead) and not _NAMED.search(lead))
        )
        if is_announced and not _regex(_COMMANDED).search(lead):
            return 2
        # A string in code or data holds anything, and is no quotation until something says so.
        return 0 if before[:quoted].rstrip()[-1:] in _CODE else 1
    return 1 if told is not None and not _END.search(before, told) else 0


def _is_shown(before: str, quoted: int) -> bool:
    """Say whether what stands before a quotation on its line says that it shows an attack."""
    return bool(_regex(_SHOWN).search(before, before.rfind("\n") + 1, quoted))


def _told_at(before: str) -> int | None:
    """Return where the last word ends that tells of texts or of those who write them."""
    # A word at the beginning needs something to stand after.
    ends = [found.end() - 1 for found in _regex(_TELLING).finditer(" " + before)]
    ends += [found.end() for found in _regex(_TELLING_BEYOND).finditer(before)]
    return max(ends, default=None)


def _quoted_at(before: str) -> int | None:
    """Return where a quotation begins that is open at the end of `before`, on its last line and after other words."""
    begin = before.rfind("\n") + 1
    line = before[begin:]
    found = [begin + at for mark in '"`' if line.count(mark) % 2 and _WORD.search(line, 0, at := line.rfind(mark))]
    single = _SINGLE.search(line) if "'" in line else None
    if single and _WORD.search(line, 0, single.start()):
        found.append(begin + single.start())
    if not line.isascii():
        for opener, closers in _CLOSERS.items():
            at = line.rfind(opener)
            if at > 0 and not any(closer in line[at + 1 :] for closer in closers):
                found.append(begin + at)
    # Of a quotation within another the inner one.
    return max(found, default=None)
