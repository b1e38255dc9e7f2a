"""Documents become HTML: each block and span, and never markup that a page wrote itself."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain import manual, markdown

TAGS = set("p pre code ul ol li table thead tbody tr th td strong a br h1 h2 h3 h4 h5 h6".split())


class Reader(HTMLParser):
    """Checks that tags nest, and collects the names of tags, anchors and targets of links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.targets: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"href", "id"}
        self.tags.add(tag)
        self.targets += [value or "" for name, value in attrs if name == "href"]
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# A `b` & c", '<h1 id="a-b--c">A <code>b</code> &amp; c</h1>'),
        ("one\ntwo\n\nthree", "<p>one two</p>\n<p>three</p>"),
        ("**bold `x<y`** end", "<p><strong>bold <code>x&lt;y</code></strong> end</p>"),
        ("[a `b`](../x/y.md#z)", '<p><a href="../x/y.md#z">a <code>b</code></a></p>'),
        ("see <https://a.example/?b=c&d>", '<p>see <a href="https://a.example/?b=c&amp;d">https://a.example/?b=c&amp;d</a></p>'),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("<b> `x`", "<p>&lt;b&gt; <code>x</code></p>"),
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ("- a\n  b\n- c", "<ul><li>a b</li><li>c</li></ul>"),
        ("1. a\n\n   - b\n2. c", "<ol><li>a\n<ul><li>b</li></ul></li><li>c</li></ol>"),
        ("```sh\na <b>\n\n# c\n```\nd", "<pre><code>a &lt;b&gt;\n\n# c</code></pre>\n<p>d</p>"),
        ("| a | b |\n| --- | --- |\n| `x\\|y` | <br>z |", "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td><code>x|y</code></td><td><br>z</td></tr></tbody></table>"),
        ("<!-- roles -->\n\na", "<p>a</p>"),
        ("![picture](x.png)", "<p></p>"),
    ],
)  # fmt: skip
def test_a_block_and_a_span_become_html(text: str, html: str) -> None:
    assert markdown.render(text) == html


@given(st.text(alphabet="ab <>&\"'`*[]()!|#-1.\n\\/:", max_size=80))
def test_whatever_a_page_says_it_adds_no_markup_of_its_own(text: str) -> None:
    read = Reader(markdown.render(text))
    assert read.tags <= TAGS
    assert all(re.match(r"https?://|[\w./#-]+$", target) for target in read.targets)


@pytest.mark.parametrize("name", manual.names())
def test_a_page_leaves_no_signs_of_markdown(name: str) -> None:
    html = markdown.render(manual.read(name))
    assert Reader(html).tags <= TAGS
    plain = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", html, flags=re.DOTALL)
    assert [sign for sign in ("**", "`", "](", "| ---", "<!--") if sign in plain] == []
