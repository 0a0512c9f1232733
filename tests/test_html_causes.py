"""Main text that was once mistaken for a footer, a menu or a dialog, or not found: a page for each cause."""

from __future__ import annotations

import pytest

from scrapy_neardup.text.html import PageText, html_to_page

# About lighthouses; one paragraph of each script.
ENGLISH = (
    "The keeper climbs the iron stairs at dusk, trims the lamp and winds the clockwork that turns the lens. When fog"
    " comes in from the sound he starts the horn as well, and nobody in the village sleeps until it lifts again."
)
CHINESE = (
    "黄昏时分，看守人爬上铁梯，修剪灯芯，给转动透镜的钟表装置上紧发条。"
    "海峡起雾的时候，他还要拉响雾笛，直到雾散，全村人都睡不着觉。"
)
JAPANESE = (
    "日が暮れると灯台守は鉄の階段をのぼり、灯芯を切りそろえ、"
    "レンズを回す時計仕掛けのねじを巻く。"
    "霧が出れば霧笛も鳴らし、晴れるまで村の誰も眠れない。"
)
KOREAN = (
    "해 질 무렵 등대지기는 철제 계단을 올라가 심지를 다듬고 렌즈를 돌리는 태엽을 감는다."
    " 해협에 안개가 끼면 무적도 울리는데,"
    " 안개가 걷힐 때까지 마을 사람은 아무도 잠들지 못한다."
)
ARABIC = (
    "يصعد الحارس الدرج الحديدي عند الغروب ويقص فتيل المصباح ويدير الساعة التي تحرك العدسة، وعندما يأتي الضباب من المضيق"
    " يشغل البوق أيضا فلا ينام أحد في القرية حتى ينقشع."
)
THAI = (
    "ยามพลบค่ำคนเฝ้าประภาคารปีนบันไดเหล็กขึ้นไปตัดไส้ตะเกียงและไขลานที่หมุนเลนส์"
    " เมื่อหมอกลงเขาต้องเปิดแตรหมอกด้วย และไม่มีใครในหมู่บ้านได้นอนจนกว่าหมอกจะจาง"
)
SCRIPTS = pytest.mark.parametrize(
    "text", [ENGLISH, CHINESE, JAPANESE, KOREAN, ARABIC, THAI], ids=["en", "zh", "ja", "ko", "ar", "th"]
)
HEADING = "The keeper of the old lighthouse"
RIGHTS = (
    "<p>All rights in the pictures and texts of this site are held by the society of friends of old lighthouses.</p>"
    "<p>No part of it may be printed or shown elsewhere without a letter that the board of the society has signed.</p>"
)
LINKS = "".join(f'<li><a href="/{n}">Lighthouse number {n} of the coast</a></li>' for n in range(30))


def page_of(body: str) -> PageText:
    return html_to_page(f"<!DOCTYPE html><html><head><title>T</title></head><body>{body}</body></html>")


@SCRIPTS
def test_paragraphs_in_the_footer_only(text: str) -> None:
    page = page_of(
        f'<div class="header"><h1>{HEADING}</h1><div>1 {text}<br>2 {text}</div></div><footer>{RIGHTS}</footer>'
    )
    assert page.text == f"{HEADING}\n1 {text}\n2 {text}"


@SCRIPTS
@pytest.mark.parametrize(
    "name",
    ["header", "modal-body", "page widget-area", "has-section-nav sidebar", "cookie-recipes", "i-nav_drawer_slide"],
)
def test_a_name_that_would_cost_the_content_is_not_believed(text: str, name: str) -> None:
    body = f'<div class="{name}"><p>1 {text}</p><p>2 {text}</p></div><div class="box"><p>Open on Sundays.</p></div>'
    assert f"1 {text}\n2 {text}" in page_of(body).text


def test_names_within_names_that_would_cost_the_content() -> None:
    inner = f'<div class="builder-widget-box"><p>{ENGLISH}</p><p>{ENGLISH}</p></div>'
    wrapped = "".join(f'<div class="builder-widget widget-{n}">' for n in range(9)) + inner + "</div>" * 9
    other = '<div class="share-widget"><p>Tell your friends about this page.</p></div>'
    assert page_of(wrapped + other).text == f"{ENGLISH}\n{ENGLISH}"


def test_thousands_of_links_in_a_header_are_read_in_no_time() -> None:
    links = "<a>x</a>" * 30_000
    assert page_of(f"<div class='header'>{links}</div><p>{ENGLISH}</p>").text == ENGLISH


@SCRIPTS
def test_short_lines_are_not_given_up_for_one_long_line(text: str) -> None:
    rows = "".join(f"<tr><td>lamp{n}()</td><td>number {n}</td></tr>" for n in range(30))
    page = page_of(f"<div><h1>Lamps</h1><p>{text}</p><table>{rows}</table></div><div class='footer'>{RIGHTS}</div>")
    assert {"Lamps", text, "lamp0()", "number 29"} <= set(page.text.split("\n"))
    assert "All rights" not in page.text


@SCRIPTS
def test_a_table_of_contents_of_the_whole_site_is_no_text_of_a_page(text: str) -> None:
    said = "".join(f"<p>{text}</p>" for _ in range(4))
    page = page_of(f"<div><h1>{HEADING}</h1>{said}<hr></div><div><b>Contents</b><ul>{LINKS * 20}</ul></div>")
    assert text in page.text
    assert "Lighthouse number" not in page.text


@SCRIPTS
def test_a_page_of_links_keeps_them_and_not_the_foot(text: str) -> None:
    page = page_of(f"<h1>{text[:20]}</h1><ul>{LINKS}</ul><div class='site-footer'>{RIGHTS}</div>")
    assert len(page.text.split("\n")) == 31
    assert "All rights" not in page.text


@SCRIPTS
def test_text_for_readers_without_scripts(text: str) -> None:
    posts = "".join(f"<div><h3>{n}</h3><p>{text * 2}</p></div>" for n in range(3))
    page = page_of(f"<div id='app'></div><noscript><h1>Fog</h1>{posts}</noscript>")
    assert page.text.count(text) == 6


def test_a_notice_to_switch_scripts_on_is_no_text() -> None:
    notice = "<noscript><p>Please switch scripts on in your browser: this page can't do without.</p></noscript>"
    assert page_of(f"<div id='app'>Loading</div>{notice}").text == "Loading"
    assert page_of(f"<p>{ENGLISH}</p>{notice}").text == ENGLISH


@SCRIPTS
@pytest.mark.parametrize(
    "name",
    ['id="CookieNotice2"', 'class="cc-cookiebar"', 'id="onetrust-banner-sdk"', 'class="gdprBox"', 'id="myConsentsBox"'],
)
def test_a_consent_dialog_is_no_text_however_long_it_is(text: str, name: str) -> None:
    dialog = f"<div {name}>{'<p>We and our partners keep small files on your device to count visits.</p>' * 40}</div>"
    assert page_of(f"{dialog}<div><p>1 {text}</p><p>2 {text}</p></div>").text == f"1 {text}\n2 {text}"


@SCRIPTS
def test_a_short_page_has_one_text_in_two_frames(text: str) -> None:
    body = f"<h1>{HEADING}</h1><p>1 {text}</p><p>2 {text}</p>"
    bare = f'<div class="navheader"><a href="/">Up</a></div><div class="chapter">{body}</div>'
    portal = (
        '<div class="topline"><a href="/">Coast</a> · <a href="/new">New</a></div>'
        f'<div class="columns"><div class="left"><ul>{LINKS[:170]}</ul></div><div class="middle">{body}</div>'
        '<div class="right"><p>Become a friend of the old lighthouses for a small sum a year.</p></div></div>'
        '<div class="foot"><p>Pictures are the property of those who took them, unless we say otherwise.</p></div>'
    )
    assert page_of(bare).text == page_of(portal).text == f"{HEADING}\n1 {text}\n2 {text}"


def test_a_box_with_a_heading_of_its_own_is_no_frame() -> None:
    first = "<div><h2>Name</h2><p>lamp, the part of a lighthouse that gives the light of a lighthouse</p></div>"
    assert "gives the light" in page_of(f"{first}<div><h2>Use</h2><p>{ENGLISH}</p></div>").text


def test_given_text_is_not_called_thin() -> None:
    assert not html_to_page(f"<p>{ENGLISH}</p>", text="x").thin
