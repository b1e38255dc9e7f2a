"""What the sentence around a match is about: a tale, an exercise, an everyday matter. Judges, finds nothing.

Orders to a language model and orders among people use the same verbs. They are told apart by what they are about: whose
instructions are to be ignored, which text is to be repeated. Where a sentence names an everyday matter (a meeting, a
dose, a router) and nothing near it speaks of a model, its instructions or what it is to answer, people are meant.
"""

import re
from functools import cache

from gateway.shield import everyday

# How much is read before and behind a match.
BEFORE_CHARS = 200
AFTER_CHARS = 160
NEAR_CHARS = 90
# Categories whose orders are told from those among people by what they are about.
_OF_MATTERS = frozenset({"injection", "extraction"})
# How near before a match without rules the figure stands that has none.
_FIGURE_CHARS = 60
_NEXT_WORDS = r"(?:,? [^\W\d_]{1,14}){0,4}"
_JUDGED = _OF_MATTERS | {"jailbreak"}
_REFUSABLE = frozenset({"extraction", "social_engineering", "exfiltration"})
# What a form or a query is fed in a lesson, and how one tells a lesson: never an order to a shell.
_FED = r"(?i)(?:['\"]|\bunion |; ?exec|\binto outfile|;? ?waitfor)"
_LESSON = (
    r"(?i)injection|prepared statement|parameter|placeholder|sanitiz|escap|\bquer(?:y|ies)\b|"
    r"\btest_|\bassert|unit ?tests?\b|\bexpect\(|单元测试|テスト|vulnerab|\bwaf\b|"
    r"bobby tables|beginners|exam question|\blab\b|the login form|is (?:this|that) an attack|dangerous|consulta|"
    r"inyecci|échapp|requête|dangereux|abfrage|gefährlich|iniezion|interrogazion|injeç|"
    r"zapytani|запрос|запит|sorgu|クエリ|プレースホルダ|查询|参数化|쿼리"
)
# What a match of plain words does not hold.
_SIGNS = frozenset("<>|[]{}#=*`_\\@")

_SAID = (
    "sa(?:id|ys)|whisper|murmur|mutter|shout|cri(?:ed|es)|yell|hiss|ask(?:ed|s)|repli|answer|growl|snarl|sobb|begg|"
    "plead|sigh|bark|snapp|told|breath|croak|roar|call|laugh|grinn|smil|added|continued|boom|rasp|purr|drawl|"
    "sagt|flüster|rief|murmel|zischt|schrie|antwort|fragt|raunt|meint|brüll|hauch|knurr|keuch|"
    "dit\\b|disait|souffl|murmur|cria|répond|demand|chuchot|lança|s.écria|gronda|répliqu|"
    "disse|sussurr|mormor|grid[oò]|rispo|chies|esclam|ordinò|bisbigli|ringhi|"
    "dijo|susurr|grit[oó]|respond|pregunt|exclam|murmur|orden[oó]|gruñ|contest|sisse|"
    "murmur|gritou|pergunt|segred|ordenou|rosn|"
    "zei\\b|zegt|fluister|riep|mompel|siste|vroeg|schreeuw|antwoord|grom|sprak|"
    "sade?\\b|viska|ropa|mumla|väste|svara|fråga|skrek|"
    "powiedzia|szepn|mrukn|krzykn|zawoła|odpar|zapyta|rzek|warkn|sykn|"
    "сказа|прошепт|крикну|пробормот|ответи|спроси|шепну|шепта|закрича|произн|прошип|буркну|велел|воскликн|"
    "прошепот|крикну|відпові|спита|промови|буркн|мови|вигукн|"
    "dedi|diye|fısılda|bağır|mırılda|cevap|emretti|tısla|"
    "nói|thì thầm|hét|đáp|hỏi|quát|rít|kata|bisik|ujar|teriak|gumam|seru|perintah|jawab|"
    "कह|बोल|फुसफुसा|चिल्ला|पूछ|قال|همس|صرخ|صاح|تمتم|سأل|أجاب|ردّ|هتف"
)
_SINGLE = r"(?:^|(?<=[\s(]))'(?:(?=\w)|\Z)(?![^']*\S'(?!\w))"
_CLOSERS = {"“": "”", "„": "“”", "«": "»", "»": "«", "‹": "›", "「": "」", "『": "』", "‘": "’"}
_QUOTES = "\"“”„«»‹›「」『』‘’'"
_OPENED = frozenset(_QUOTES)
# A quotation that ends, and then who said it: "...," the old man whispered.
_TAG = (
    "(?i)"
    rf"(?:[^{_QUOTES}\n]|(?<=\w)['’](?=\w)){{0,190}}(?:[{_QUOTES}][\s,،.!?…—–-]{{0,4}}"
    rf"(?:[^\s{_QUOTES}.!?]{{1,15}}[ ,]{{1,2}}){{0,4}}(?:{_SAID})"
    r"|[”」』\"]\s{0,2}[，,]?[^。，\n]{0,10}?(?:说|道[：，。,:]|说道|问|喊|叫|低声|喃喃|言|囁|ささや|告げ|命じ|叫ん|つぶや|答え|"
    r"尋ね|聞い|"
    r"말했|속삭|외쳤|물었|중얼|대답|소리쳤|[^\"\n]{0,60}?[었았했였렸겼웠]다))"
)
# The same before it, within a quotation that goes on: "Stop," he said. "...
_TOLD = (
    "(?i)"
    rf"[{_QUOTES}][\s,،.!?…—–-]{{0,4}}(?:[^\s{_QUOTES}.!?]{{1,15}}[ ,]{{1,2}}){{0,4}}(?:{_SAID})[^{_QUOTES}\n]{{0,60}}"
    rf"[{_QUOTES}][^{_QUOTES}\n]{{0,80}}\Z"
)
# Who said a line of dialogue that begins with a dash: behind the next one, or behind an earlier one.
_DASH_TAG = (
    "(?i)"
    rf"[^\n—–]{{0,190}}[—–-]\s{{0,2}}(?:[^\s—–-]{{1,15}} ){{0,3}}(?:{_SAID})"
)
_DASH_TOLD = (
    "(?i)"
    rf"(?:^|\n)\s{{0,3}}[—–-][^\n]{{2,160}} [—–-]\s{{0,2}}(?:[^\s—–-]{{1,15}} ){{0,3}}(?:{_SAID})[^\n]{{0,80}}\Z"
)
# A speaker of a play, with what he does; and the names of two of them.
_STAGED = r"(?:^|\n)\W{0,3}[^\W\d_a-z][\w'’. -]{1,24} ?\([^()\n]{3,70}\) ?[:.—–-] ?[^\n]{0,150}\Z"
_SPEAKER = r"(?:(?<=^)|(?<=\n)|(?<=[.!?)…] ))([^\W\d_a-z]{3,14}(?: [^\W\d_a-z]{2,14})?)(?: ?\([^()\n]{2,60}\))? ?:"
# The same written like names: two of them, of whom one speaks again.
_TALKER = r"(?:(?<=^)|(?<=[\n.!?)…”“»] )|(?<=\n)|(?<=[—–-] ))([^\W\d_a-z][^\W\d_A-Z]{2,14})(?: ?\([^()\n]{2,60}\))? ?:"
_NO_SPEAKER = (
    r"SYS|USER|ASSIST|HUMAN|ADMIN|\bA\.?I|BOT\b|MODEL|NOTE|IMPORT|WARN|ATTENT|INSTR|TASK|UPDAT|ALERT|NOTIC|NEW|STOP|"
    r"OVERR|PROMPT|DEVEL|ROOT|INPUT|OUTPUT|TOOL|EMAIL|MAIL|SUBJ|FROM|DOC|TEXT|RESULT|DAN\b|CLASSIC|JAILB|TODO|FIXME|"
    r"URGENT|CRITIC|SECUR|MESSAGE|ORDER|COMMAND(?!ER)|RULE|POLICY|PRIOR|CONTEXT|TRANSL|QUEST|ANSW|BENUTZ|USUAR|UTILIS|GEBRUIK|ПОЛЬЗ|КОРИСТ|NUTZER|KULLAN|PENGG|KUNDE|CLIENT|АССИСТ|ASIST|ASYST|STEP|END|BEGIN|START|INFO"
)
# What is said in a tale or on a stage, and the one who says it before he does: 'The new captain shouts: "...'.
_STAGE = (
    r"(?i)\b(?:sketch|sketsch|scene|szene|scène|escena|scena|cena|stage|"
    r"bühne|theat|théâtre|teatr|play about|novel|roman|"
    r"story|erzähl|histoire|cuento|racconto|conto|actors?|actress|schauspiel|acteur|actor|attor|attric|ator|atriz|"
    r"regista|regisseur|director de escena|dialogue|rehearsal|probe|prova|ensayo|comedy|komödie|drehbuch|"
    r"screenplay|screenwriter)"
)
_SAYER = (
    rf"(?i)(?:{_SAID}|ruft|schreit|befiehlt|crie|ordonne|grida|ordina|grita|ordena|roept|beveelt|ropar|interrupt|unterbricht|interromp|interrump)[^\W\d_]{{0,6}}"
    rf"(?: [^\s{_QUOTES}.!?]{{1,14}}){{0,4}}[ :,]{{1,2}}[{_QUOTES}]\Z"
)
# A turn of a conversation that somebody pasted: a label, no hail; and one in which the assistant says no to the last.
_TURN = r"(?i)[^\n]{0,60}\n\W{0,3}(?:assistant|bot|ai|agent|support|chatbot) ?: "
_ASKER = (
    r"(?i)(?:^|\n)\W{0,3}(?:user|customer|client|caller|visitor|guest|kunde|kundin|nutzer|usuario|usuário|utente|"
    r"utilisateur) ?: "
)
_REFUSED = (
    r"(?i)[^\n]{0,60}\n\W{0,3}(?:assistant|bot|ai|agent|support|chatbot|asistente|assistente|assistent|agente) ?: "
    r"[^\n]{0,40}?(?:sorry|i (?:can.?t|cannot|won.?t)|i.m (?:not able|unable|afraid)|i don.t|unfortunately|leider|"
    r"ich kann|darf ich nicht|je ne peux|désolé|no puedo|lo siento|non posso|mi dispiace|não posso|desculp)"
)
# The label of an exercise, at the beginning of its line.
_EXERCISE = (
    "(?i)"
    r"(?:^|\n)[^\w\n]{0,6}(?:(?:exercise|activity|drill|homework|worksheet|warm-?up|lesson|question|übung|"
    r"aufgabe|hausaufgabe|"
    r"exercice|activité|devoir|ejercicio|actividad|deberes|tarea|esercizio|compito|attività|exercício|atividade|"
    r"opdracht|oefening|huiswerk|ćwiczenie|zadanie|alıştırma|ödev|etkinlik|упражнение|задание|вправа|завдання|övning|"
    r"uppgift|läxa|latihan|tugas|bài tập|bài|अभ्यास|गृहकार्य|تمرين|نشاط|واجب)(?:\s?(?:nr\.?|no\.?|n[°º]|số)?\s?"
    r"[0-9٠-٩०-९]{1,3}[a-z]?)?\s?[:.)—–-]"
    r"|(?:练习|練習|作业|宿題|課題|연습|숙제|"
    r"問題)\s?(?:[0-9０-９一二三四五六七八九十]{1,3})?\s?[:：.)、])[^\n]{0,120}\Z"
)
# What a device, a person or a program does by itself, and how to make it do so.
_STATED = (
    "(?i)"
    r"\b(?:he|she|they|who|(?:the|this|that|my|our|his|her|its|an?|every|each|all|"
    r"no) (?:[a-z-]{2,14} )?(?!(?:read|us)ers?\b|text)"
    r"[a-z-]{2,14}) (?:will|would|may|might|can|could|did|does|do|tried to|tries to|had to|wants? to|wanted to|"
    r"seems? to|"
    r"refused to|forgot to|started to|decided to)(?: [a-z]{2,8}ly| then| also| not)? \Z|"
    r"\b(?:he|she|they|who|had|been|was|were|[a-z]{4,12}(?<!\byou)) (?:had been|has been|been|was|were) "
    r"(?:told|ordered|instructed|asked|taught|made|forced) to \Z|"
    r"\bhow (?:can|do|could|should|to|would) (?:(?:i|we|you|one) )?(?:make|get|let|force|tell|have|configure|"
    r"set up|stop) "
    r"(?:[\w'-]{1,14} ){1,4}(?:to |from )?\Z"
)
# Words that are hidden for fun.
_PUZZLE = (
    "(?i)"
    r"\b(?:caesar|cipher|cypher|vigen[eè]re|crossword|escape room|riddles?|scavenger|treasure hunt|homework|puzzles?|"
    r"pupils|worksheet|friend|classmates?|birthday|rätsel|schatz\w{0,6}|chasse au trésor|énigmes?|acertijos?|tesoro)\b"
)
# What a model was told, by itself or by its place.
_GIVEN = r"(?i)\b(?:you (?:were|are|have|had|got|receiv|follow|use|must|see|hold|keep)|you[’']|(?:above|before|preced))"
# What an order is about, said behind it, or before it where that is usual.
_TOPIC = (
    "(?i)"
    r"\w{0,8},?(?: [^\W\d_]{2,14})?,? (?:regarding|concerning|about|relating to|as to|when it comes to|bezüglich|"
    r"betreffend|hinsichtlich|zur|zum|"
    r"über|für (?:den|die|das)|concernant|relati(?:f|ve)s? (?:à|aux?)|au sujet|à propos|sur (?:la|le|les|l.)|"
    r"sobre|acerca|"
    r"relativ[oa]s? a|en materia|em matéria|riguardant[ei]|riguardo|relativ[ei] a|sulla|sul|sui|sulle|in merito|over|"
    r"betreffende|inzake|omtrent|om|angående|gällande|dotycząc\w{1,3}|w sprawie|odnośnie|o|об|по|про|щодо|относительно|"
    r"касательно|насчёт|касающ\w{1,4}|стосовно|بخصوص|بشأن|حول|عن|المتعلق\w{1,3}|الخاصة ب\w{3,}|mengenai|tentang|"
    r"terkait|"
    r"về|liên quan|privind|referitoare|cu privire) (?!(?:this|that|these|those|it|you|how|what|who|everything|"
    r"him|them|me|us|"
    r"tot|todo|tudo|tutto|wie|was|dich|dir|te|ti|toi|je|jou|тебя|тебе|ты|você|bạn|kamu|ce|cette|diese[rmns]?|este|esta|"
    r"questo|questa|deze|den här|detta)\b)\w{3}"
)
_TOPIC_WITHIN = (
    "(?i)"
    r"\b(?:щодо|относительно|касательно|стосовно|bezüglich|hinsichtlich|concernant|dotyczące|regarding|concerning|"
    r"riguardanti|mengenai|بخصوص|بشأن|المتعلقة)\b"
)
_TOPIC_BEFORE = (
    r"(?:に関する|についての|に関して|に関した|관련(?:된)?|에 관한|에 대한|대한|के बारे में|संबंधी|से संबंधित|"
    r"ile ilgili|ilişkin|"
    r"hakkındaki|konusundaki|关于[^，。]{1,12}的?|有关[^，。]{1,12}的?|對於[^，。]{1,12}的?)\s?\Z"
)
_NAMED = (
    r"(?<!\w)(?:A\.?Is?|IA|KI|ИИ|ШІ|DAN)(?!\w)|\b(?:an|the|this|any|your|dear|to|you|by|if|all|other|every|which|"
    r"as) ais?\b"
)
# One of these stands in each match of that.
_NAMES = ("AI", "A.I", "IA", "KI", "ИИ", "ШІ", "DAN", " ai")
_CARRIED = r"(?i)@\w|https?:|www\."
_ADDRESS = (
    "(?i)"
    r"@\w|https?:|www\.|\byou(?:'re|’re| are| will| must| now)\b"
)
# Orders that are the model's own, whatever stands beside them.
_OWN = (
    "(?i)"
    r"\b(?:your|ur) (?:[\w-]{1,14} ){0,3}(?:instruction|rule|guideline|directive|restriction|polic|limit|system|setup|"
    r"configuration|principle|boundar)|\b(?:deine|ihre|tes|vos|tus|sus|tue|tuoi|suas|seus|tuas|jouw|dina|twoje) "
)

# Kinds of words, and the words of each.
_MACHINE, _GUARDED, _ANSWER, _EVERYDAY, _FIGURE, _ASKED = 1, 2, 4, 8, 16, 32
_WORDS = {
    _MACHINE: everyday.MACHINE_WORDS,
    _GUARDED: everyday.GUARDED_WORDS,
    _ANSWER: everyday.ANSWER_WORDS,
    _EVERYDAY: everyday.EVERYDAY_WORDS,
    _FIGURE: everyday.FIGURE_WORDS,
    _ASKED: everyday.ASKED_WORDS,
}
_STEMS = {
    _MACHINE: everyday.MACHINE_STEMS,
    _ANSWER: everyday.ANSWER_STEMS,
    _EVERYDAY: everyday.EVERYDAY_STEMS,
    _FIGURE: everyday.FIGURE_STEMS,
    _ASKED: everyday.ASKED_STEMS,
}
_PHRASES = {
    _MACHINE: everyday.MACHINE_PHRASES,
    _ANSWER: everyday.ANSWER_PHRASES,
    _EVERYDAY: everyday.EVERYDAY_PHRASES,
    _FIGURE: everyday.FIGURE_PHRASES,
    _ASKED: everyday.ASKED_PHRASES,
}
_WORD = r"[^\W\d_][^\W_]*(?:[-'’\u0900-\u0dff\u064b-\u0652]+[^\W_]*)*"
# The same in ASCII alone: a letter in lower case, a digit or a sign within words is as it is, all else ends a word.
_NO_BEGIN = "0123456789-'"
_PLAIN = bytes(
    ord(letter) if (letter := chr(byte).lower()) in "abcdefghijklmnopqrstuvwxyz" + _NO_BEGIN else 32
    for byte in range(256)
)
_ARABIC = "^(?:[وف]?[بلك]?ال|لل)(?=\\w{3})"
_UNSPACED = "[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|[ạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹđơư]"


# Compiled when it is first asked for: most texts have no match to judge.
_regex = cache(re.compile)


def is_ordinary(text: str, start: int, end: int, category: str) -> bool:
    """Say whether a match, a half-open span, is no order to a model: told in a story, stated of others, of every day.

    Only what stands AFTER_CHARS behind it is read.
    """
    before = text[max(0, start - BEFORE_CHARS) : start]
    matched, after = text[start:end], text[end : end + AFTER_CHARS]
    if "\n" in matched and _regex(_TURN).match(matched) and _regex(_ASKER).search(before + matched):
        return True
    if category in _REFUSABLE and "\n" in after and _regex(_REFUSED).match(after):
        line = before[before.rfind("\n") + 1 :]
        if _regex(_ASKER).search(line + matched):
            return True
    if category == "command":
        near = before[-NEAR_CHARS:] + after
        return bool(_regex(_FED).match(matched)) and any(map(str.isalpha, after)) and bool(_regex(_LESSON).search(near))
    if category not in _JUDGED and not _is_spoken(before, matched, after):
        return False
    # Nobody in a story orders a model about, or sends anything to an address.
    kinds = _kinds(matched + after, until=_MACHINE)
    if kinds & _MACHINE:
        return False
    before_kinds = _kinds(before[-NEAR_CHARS:], until=_MACHINE)
    if before_kinds & _MACHINE or _is_named(before[-NEAR_CHARS:] + matched + after):
        return False
    is_spoken = category not in _JUDGED or _is_spoken(before, matched, after)
    if is_spoken and not _regex(_CARRIED).search(matched + after):
        return True
    if category == "jailbreak":
        # A figure of a tale or a daydream has no rules, and nobody is asked to answer as one.
        words = _regex(_NEXT_WORDS).match(after)
        around = before[-_FIGURE_CHARS:] + matched + (words[0] if words else "")
        return not (before_kinds | kinds) & _ASKED and bool(_kinds(around) & _FIGURE)
    if category not in _OF_MATTERS:
        return False
    if _regex(_STATED).search(before):
        return True
    if not _SIGNS.isdisjoint(matched) or _regex(_OWN).search(matched) or _regex(_ADDRESS).search(matched + after):
        return False
    if category == "extraction":
        if not _regex(_GIVEN).search(matched) and _regex(_PUZZLE).search(before[-NEAR_CHARS:] + matched + after):
            return True
    elif kinds & _ANSWER:
        return False
    if (before_kinds | kinds) & _GUARDED:
        return False
    if (
        _regex(_EXERCISE).search(before)
        or _regex(_TOPIC).match(after)
        or _regex(_TOPIC_WITHIN).search(matched)
        or _regex(_TOPIC_BEFORE).search(before)
    ):
        return True
    line = before[-NEAR_CHARS:].rpartition("\n")[2] + matched + after.partition("\n")[0]
    return bool((before_kinds | kinds) & _EVERYDAY and _kinds(line) & _EVERYDAY)


def _is_named(text: str) -> bool:
    """Say whether a machine is called by what machines are called."""
    return any(name in text for name in _NAMES) and _regex(_NAMED).search(text) is not None


def _is_spoken(before: str, matched: str, after: str) -> bool:
    """Say whether somebody in a story or a play says it."""
    line = before[before.rfind("\n") + 1 :]
    if _is_quoted(line + matched[:1]) and (
        _regex(_TAG).match(matched.lstrip(_QUOTES) + after) or _regex(_TOLD).search(before)
    ):
        return True
    if line[-1:] in _OPENED and _regex(_STAGE).search(before) and _regex(_SAYER).search(line):
        return True
    if (line + matched).lstrip()[:1] in ("-", "–", "—"):
        return bool(_regex(_DASH_TAG).match(matched.lstrip("—–- ") + after) or _regex(_DASH_TOLD).search(line))
    if ")" in line and _regex(_STAGED).search(line):
        return True
    if ":" not in line:
        return False
    names = {name for name in _regex(_SPEAKER).findall(before + matched + after) if name == name.upper()}
    talkers = _regex(_TALKER).findall(before + matched + after)
    if len(talkers) > len(set(talkers)) > 1:
        names.update(map(str.upper, talkers))
    return len(names) > 1 and not any(map(_regex(_NO_SPEAKER).search, names))


def _is_quoted(line: str) -> bool:
    """Say whether a quotation is open at the end of a line."""
    if line.count('"') % 2 or ("'" in line and _regex(_SINGLE).search(line)):
        return True
    return not line.isascii() and any(
        line.rfind(opener) > max(map(line.rfind, closers)) for opener, closers in _CLOSERS.items()
    )


def _kinds(text: str, until: int = 0) -> int:
    """Return the kinds of the words in a text, added up. until: kinds of which one is enough to read no further."""
    words, stems = _lexicon()
    kinds = 0
    for word in _words_of(text):
        kind = words.get(word)
        if kind is not None:
            kinds |= kind
            if kind & until:
                return kinds
            continue
        if "\u0600" <= word[0] <= "\u06ff":
            word = _regex(_ARABIC).sub("", word)
        for stem, kind in stems.get(word[:3], ()):
            if word.startswith(stem):
                kinds |= kind
        if kinds & until:
            return kinds
    if not text.isascii() and _regex(_UNSPACED).search(text):
        for kind, phrases in _PHRASES.items():
            if _regex(phrases).search(text):
                kinds |= kind
    return kinds


def _words_of(text: str) -> list[str]:
    """Return the words of a text, as `_WORD` finds them."""
    if not text.isascii():
        return _regex(_WORD).findall(text.casefold())
    parts = text.encode().translate(_PLAIN).decode().split()
    # No word begins with a digit or a sign.
    return [word for part in parts if (word := part if part[0] >= "a" else part.lstrip(_NO_BEGIN))]


@cache
def _lexicon() -> tuple[dict[str, int], dict[str, list[tuple[str, int]]]]:
    """Return the kinds of words, and the kinds of their beginnings by the first three letters."""
    words: dict[str, int] = {}
    stems: dict[str, list[tuple[str, int]]] = {}
    for kind, some in _WORDS.items():
        for word in some:
            words[word] = words.get(word, 0) | kind
    for kind, some in _STEMS.items():
        for stem in some:
            stems.setdefault(stem[:3], []).append((stem, kind))
    return words, stems
