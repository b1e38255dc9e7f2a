"""Documents become HTML: each block and span, and never markup that a page wrote itself."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain import manual, markdown

TAGS = set("p pre code ul ol li table thead tbody tr th td strong em blockquote a br hr h1 h2 h3 h4 h5 h6".split())


class Reader(HTMLParser):
    """Checks that tags, attributes and the targets of links are those of a page, and that tags nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        allowed = {"a": {"href"}, "ol": {"start"}, "code": {"class"}}.get(tag, {"id"})
        assert tag in TAGS and {name for name, _ in attrs} <= allowed
        assert all(re.match(r"https?://|(?!//)[\w./#-]+$", value or "") for name, value in attrs if name == "href")
        self.open += [] if tag in ("br", "hr") else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert tag in ("br", "hr") or self.open.pop() == tag


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# A `b` & c", '<h1 id="a-b--c">A <code>b</code> &amp; c</h1>'),
        ("one\ntwo\n\nthree", "<p>one two</p><p>three</p>"),
        ("**bold `x<y`** *end*", "<p><strong>bold <code>x&lt;y</code></strong> <em>end</em></p>"),
        ("[a `b`](../x/y.md#z)", '<p><a href="../x/y.md#z">a <code>b</code></a></p>'),
        ("see <https://a.example/?b=c&d>", '<p>see <a href="https://a.example/?b=c&amp;d">https://a.example/?b=c&amp;d</a></p>'),
        ("[x](javascript:a&amp;lt;)", "<p>[x](javascript:a&amp;lt;)</p>"),
        ("<b> `x`", "<p>&lt;b&gt; <code>x</code></p>"),
        ("- a\n  b\n- c", "<ul><li>a b</li><li>c</li></ul>"),
        ("1. a\n   - b\n2. c", "<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>"),
        ("```sh\na <b>\n```\n\n2. d", '<pre><code class="language-sh">a &lt;b&gt;</code></pre><ol start="2"><li>d</li></ol>'),
        ("| a | b |\n| --- | :-: |\n| `x\\|y` | <br>z |", "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td><code>x|y</code></td><td><br>z</td></tr></tbody></table>"),
        ("<!-- roles\n<b> -->\n\na<!-- c -->", "<p>a</p>"),
        ("![picture](x.png)", "<p></p>"),
    ],
)  # fmt: skip
def test_a_block_and_a_span_become_html(text: str, html: str) -> None:
    made = markdown.render(text)
    assert re.sub(r"(?<=>)\n *|\n *(?=<)", "", made).replace("\n", " ") == html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "a <script src=//evil.example></script> b", "<svg/onload=alert(1)>", "<div onclick=\"alert(1)\">\n\n<p>x</p></div>",
        "| a |\n| - |\n| <img src=x onerror=alert(1)> <b>`<i>` |", "| <script> |\n| --- |\n| `\\|<script>` <BR onclick=x> |", "- <iframe srcdoc='<b>'>\n\n  > <style>*{}</style>",
        "# <a name=\"x\" href='y'> \"quoted\" 'names'\n", "```\"><script>alert(1)</script>\nx\n```", "```html\n</code></pre><script>\n```", "&lt;script&gt; &#60;script&#62;",
        "<!-- a --><script><!-- b --></script>", "<!-<!-- -->- <script> -->", "<!-- never closed <script>", "<![CDATA[<script>]]> <?php <b> ?> <!DOCTYPE html>",
        "[<script>](x.md)", '[x](http://a"onclick=alert(1))', '[x](<http://a" onmouseover="alert(1)>)', '[x](a.md "t\\" onclick=\\"alert(1)")',
        "<https://a.example/\"onclick='x'>", "![x\"onerror=\"y](z.png 'q\"')",
    ],
)  # fmt: skip
def test_markup_of_a_page_is_text(text: str) -> None:
    assert "<script" not in markdown.render(text)
    Reader(markdown.render(text))


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", "javascript&colon;alert(1)", "&#106;avascript:alert(1)", "javascript\\:alert(1)", "javascript%3Aalert(1)",
        "<java&Tab;script:alert(1)>", "<  javascript:alert(1)>", "vbscript:x", "x:y.md", "data:text/html,x", "file:///etc/passwd", "mailto:a@b.example",
        "//evil.example/x", "\\\\evil.example",
    ],
)  # fmt: skip
def test_a_link_that_leads_elsewhere_is_text(target: str) -> None:
    for text in ("[words]({})", "[words]({} 'title')", "[words][r]\n\n[r]: {}", "words <{}>"):
        html = markdown.render(text.format(target))
        assert "words" in html and "<a" not in html


@given(st.text(alphabet="ab <>&\"'`*_[]()!|#-1.~\n\\/:", max_size=80))
def test_whatever_a_page_says_it_adds_no_markup_of_its_own(text: str) -> None:
    Reader(markdown.render(text))


@pytest.mark.parametrize("name", manual.names())
def test_a_page_leaves_no_signs_of_markdown(name: str) -> None:
    html = markdown.render(manual.read(name))
    Reader(html)
    plain = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", html, flags=re.DOTALL)
    assert [sign for sign in ("**", "`", "](", "| ---", "<!--") if sign in plain] == []
