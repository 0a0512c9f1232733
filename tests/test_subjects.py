"""Subjects decide: pages of one form are kept if their subjects differ, and copies are found under any title.

Each story is a list of documents in the order of claims; some repeat an earlier one. The reverse order must give as
many duplicates. If each document is claimed in a run of its own, the verdicts must be the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers import claimed, edited, text, words
from tiers import slow

from scrapy_neardup import Deduplicator, Document

A, B = "http://a.example", "http://b.example"


class Story(NamedTuple):
    documents: list[Document]
    copies: int = 0
    """How many of the last documents repeat an earlier one."""


def one_run(documents: Iterable[Document]) -> list[str]:
    """Claim and commit one after another; return the statuses."""
    with Deduplicator.open() as dedup:
        return claimed(dedup, *documents)


def a_run_each(documents: Iterable[Document], store: Path) -> list[str]:
    """Do the same, with the store closed and opened again between any two."""
    statuses = []
    for document in documents:
        with Deduplicator.open(store) as dedup:
            statuses += claimed(dedup, document)
    return statuses


def items(host: str, *things: tuple[str, str]) -> list[Document]:
    """Return the items of a site: pairs of title and text."""
    return [Document(f"{host}/item/{number}", content, title) for number, (title, content) in enumerate(things)]


def html_page(url: str, title: str, content: str) -> Document:
    """Return a page that says its title as heading too, beside what all pages of its site say."""
    return Document.from_field(
        f"<html><head><title>{title} | Attic</title></head><body><nav><a href='/'>Attic</a></nav>"
        f"<main><h1>{title}</h1><p>{content}</p></main></body></html>",
        url=url,
    )


# Notices that say their subject once, where the text begins or ends


def notices(form: str, title: str, *names: str) -> Story:
    return Story(items(A, *((title.format(name), form.format(name)) for name in names)))


BRANCH = (
    "{} stays closed until the roof has been mended. Books that are due may be kept for as long, and nobody is fined. "
    "The reading room on Mill Street is open on all days instead, and the van comes to the market square each Tuesday."
)
FERRY = (
    "Паром сегодня не ходит из-за сильного ветра. Пассажиры могут вернуть билеты в кассе на берегу или поехать завтра "
    "утром без доплаты. О новом расписании мы сообщим вечером по радио и на доске у входа. Это касается пристани {}"
)
THEATRE = (
    "{} viendra mardi. La caisse ouvre à six heures, la pièce commence à sept, et le café de la cour reste ouvert "
    "jusqu'à la fin de la soirée. Le théâtre de la Rive a deux salles et se trouve au bord de la rivière, à côté de la "
    "gare. Les enfants et les élèves paient la moitié. Les manteaux restent au vestiaire de la petite salle, les sacs "
    "aussi. De la place pour les fauteuils roulants se trouve au premier rang."
)
STATION = (
    "{}站从今天起停止售票，候车室也不再开放。旅客请到旁边的汽车站乘车，已经买好的票可以在窗口退掉，不收手续费。"
    "何时恢复，另行通知。给大家带来不便，请谅解。"
)

# Things of one seller

SELLER = (
    "I sell what I find in old houses and send parcels on Mondays and Thursdays. Postage is paid by the buyer, and two "
    "things travel in one box where they fit. Whatever you do not like may come back within two weeks, and you get "
    "your money on the day it arrives. Please ask before you buy, since nothing here is new and every piece has lived. "
    "I answer in the evening, and my barn is open to visitors on Sundays."
)
THINGS = [
    ("Milk churn", "Holds twenty litres, grey steel with a lid on a chain. There is a dent near the foot, no rust."),
    ("Rocking horse", "Carved from lime wood, with a real mane and one glass eye. Children have chewed both ears."),
    ("Barometer", "Points to fair since the war, brass rim, oak back. A clockmaker in town knows how to wake it."),
    (
        "Apple press",
        "Beech staves and a screw as thick as an arm. It gave forty bottles last autumn, and leaks little.",
    ),
    (
        "School map",
        "Linen, two metres wide, shows rivers of Asia with names that have changed. Moths spared the north.",
    ),
    ("Egg basket", "Wire, folds flat, painted white by somebody in a hurry. Sixty eggs went to market in it weekly."),
]
OTHER_THINGS = [
    (
        "Violin lessons",
        "A retired player of the city's orchestra teaches children and grown-ups at his home by the park.",
    ),
    ("Firewood", "Dry ash and birch, split and stacked, to be fetched with your own trailer until the end of March."),
    (
        "Lost parrot",
        "Green with a red beak, answers to Captain and swears in Dutch. He was last seen on the town hall.",
    ),
]


def attic(*, titled: bool, others: bool = True, html: bool = False) -> Story:
    things = [(title, f"{content} {SELLER}") for title, content in THINGS]
    ads = [*(OTHER_THINGS if others else ()), *things]
    if html:
        return Story([html_page(f"{A}/{number}", *ad) for number, ad in enumerate(ads)])
    return Story(items(A, *((title if titled else "", content) for title, content in ads)))


# Ads of one employer

EMPLOYER = (
    "Die Stadtwerke Amselbrück versorgen seit neunzig Jahren vier Gemeinden mit Wasser, Strom und Wärme. Wir bieten "
    "einen sicheren Platz, dreißig Tage Urlaub, ein Jobticket und eine Kantine mit Blick auf den Fluss. Menschen mit "
    "Behinderung werden bei gleicher Eignung bevorzugt. Bitte schicken Sie Lebenslauf und Zeugnisse bis zum Ende des "
    "Monats an das Personalbüro, am besten in einer einzigen Datei. Kosten der Anreise erstatten wir nicht. Fragen "
    "beantwortet das Büro jeden Vormittag. "
)
JOBS = [
    (
        "Kraftfahrer",
        "Sie fahren den Kanalwagen, spülen Schächte und Rohre, halten das Fahrzeug sauber und schreiben auf, was Sie "
        "unterwegs an Schäden sehen. Ein Führerschein der Klasse C ist nötig.",
    ),
    (
        "Buchhalterin",
        "Sie prüfen eingehende Rechnungen, mahnen säumige Kunden, bereiten den Abschluss des Jahres vor und sprechen "
        "mit dem Finanzamt. Eine kaufmännische Ausbildung setzen wir voraus.",
    ),
]
OTHER_JOBS = [
    ("Gärtner", "Ein Friedhof sucht jemanden, der Hecken schneidet, Wege harkt und im Winter Schnee räumt."),
    ("Koch", "Unser Gasthaus am See braucht ab Mai einen Koch für Fisch und einfache Küche, Zimmer vorhanden."),
    ("Lehrerin", "Die Musikschule stellt für zwei Nachmittage eine Lehrerin für Flöte ein, gern auch im Studium."),
    ("Tischler", "Wir bauen Fenster für alte Häuser und suchen einen Gesellen, der genau und ruhig arbeitet."),
    ("Pfleger", "Ein kleines Heim mit zwölf Bewohnern sucht einen Pfleger für die Nacht, vier Dienste in der Woche."),
]


def employer(known: int, *, swapped: bool = False) -> Story:
    jobs = reversed(JOBS) if swapped else JOBS
    return Story(items(A, *OTHER_JOBS[:known], *((title, EMPLOYER + tasks) for title, tasks in jobs)))


# Ads with two titles, each in several towns

NURSE = (
    "Place of work: {1}. We are looking for a {0} nurse to join our team. You assess patients, plan their care, and "
    "work with doctors, therapists and families. You communicate well and work shifts, also on weekends. We offer a "
    "contract without end, thirty days of leave and help with finding a room. Please send the names of two referees."
)

# A name that another one contains

GRINDER = (
    "The {0} grinds beans for up to eight cups, coarse or fine, in half a minute. Its burrs are of hardened steel and "
    "come out without tools. The hopper keeps the light away, and the drawer for the powder is of glass. You can "
    "choose among twelve steps with the ring at the front. The {0} comes with a brush and a spoon."
)

# Events and meetings

LANTERN = (
    "{} can be heard at the Lantern on {}. The Lantern is a cellar with eighty chairs below the old mint; its door is "
    "in the yard, to the left of the well. We open at half past six. There is soup, bread and wine, and no table can "
    "be kept for you. Entry is nine crowns for all, and children pay nothing for their seats. Dogs stay at home. If "
    "you use a wheelchair, ring the bell at the gate and we take you down in the lift."
)
ACTS = [
    ("The Paper Kites", "Friday 7 June"),
    ("Songs from the Sea", "Sunday 9 June"),
    ("Ode to a Kettle", "Friday 14 June"),
    ("Of Bees and Men", "Thursday 20 June"),
]

PARISH = (
    "The parish meets on {} March at seven in the school at Elmfold. Anyone may come and listen. After the minutes and "
    "the report of the treasurer we talk about {}. Questions may be put at the end, two minutes each, and should reach "
    "the clerk in writing on the Friday before. The papers hang in the porch of the church for a week. Tea is served "
    "in the break, and the bus at nine waits for those who live on the hill."
)
TOPICS = [
    ("4", "a new roof for the bus shelter and who is to pay for it"),
    ("11", "the noise of the geese on the lower pond"),
    ("18", "the offer of a telephone company for the church tower"),
    ("25", "hedges along the footpath to Brook Farm"),
]

# Long texts


def ordinance(town: int, own: int, parts: int) -> str:
    """Return 6,000 words, in which parts that all towns have alternate with those of this one."""
    common, special = words(6000 - own, 1), words(own, 100 + town)
    wide, narrow = len(common) // parts, own // parts
    return " ".join(
        word
        for part in range(parts)
        for word in common[wide * part : wide * (part + 1)] + special[narrow * part : narrow * (part + 1)]
    )


def ordinances(titles: tuple[str, str], host: str, own: int, copies: int = 0) -> Story:
    sites = f"{A}/ordinance", f"{host}/ordinance2"
    return Story([Document(sites[n], ordinance(n, own, 12), titles[n]) for n in range(2)], copies)


TWO_TOWNS = "Building ordinance of Hallen", "Building ordinance of Morn"
ONE_TITLE = "Building ordinance", "Building ordinance"

KEPT = {
    "notices that begin with their subject": notices(
        BRANCH, "{} closed", "Northgate", "Elmwood", "Quayside", "Hillend"
    ),
    "plays with articles in their titles, French": notices(
        THEATRE, "{}", "Le Bal des ombres", "Les Oiseaux de la nuit", "La Part du fleuve"
    ),
    "notices that end with their subject, Russian": notices(FERRY, "Паром: {}", "Сосновка", "Берёзово", "Липки"),
    "notices that begin with their subject, Chinese": notices(STATION, "{}站公告", "梅岭", "青溪", "白塔"),
    "things of one seller": attic(titled=True),
    "things of one seller alone": attic(titled=True, others=False),
    "things of one seller as pages with headings": attic(titled=True, html=True),
    "two ads of one employer, no other known": employer(0),
    "two ads of one employer, two others known": employer(2),
    "two ads of one employer, five others known": employer(5),
    "two ads of one employer, the second one first, two others known": employer(2, swapped=True),
    "ads with two titles in several towns": Story(
        items(
            A,
            *(
                (f"{level} nurse", NURSE.format(level.lower(), town))
                for level in ("Junior", "Senior")
                for town in ("Hallen", "Morn", "Elmfold", "Skarvik")
            ),
        )
    ),
    "a name and the same with a word more": Story(
        items(A, *((f"{name} grinder", GRINDER.format(name)) for name in ("Brevo", "Brevo Mini")))
    ),
    "events with function words in their titles": Story(
        items(A, *((f"{act}, {day} | Lantern", LANTERN.format(act, day)) for act, day in ACTS))
    ),
    "meetings under one title": Story(items(A, *(("Parish meeting", PARISH.format(*topic)) for topic in TOPICS))),
    "long texts with two fifths of their own, on one host": ordinances(TWO_TOWNS, A, 2400),
    "long texts with two fifths of their own, on two hosts": ordinances(TWO_TOWNS, B, 2400),
    "long texts with two fifths of their own under one title, on one host": ordinances(ONE_TITLE, A, 2400),
    "long texts with two fifths of their own under one title, on two hosts": ordinances(ONE_TITLE, B, 2400),
}

# Copies


def edited_ad(form: int, title: str) -> Story:
    """Return twelve ads of 200 words by three employers, of which so many are form, and a copy with 3 % changed."""
    posts = [" ".join(words(2, 500 + number)) for number in range(12)]
    ads = [f"{text(number % 3, form)} {post} {text(50 + number, 198 - form)}" for number, post in enumerate(posts)]
    known = items(A, *((f"{post} | Jobs today", ad) for post, ad in zip(posts, ads, strict=True)))
    copy = Document(f"{B}/copy", edited(ads[7], *range(15, 200, 32)), title.format(posts[7]))
    return Story([*known, copy], 1)


NEWS = (
    "A fishing boat that was given up for lost came into the harbour of Skarvik last night with all five men aboard. "
    "Its engine had failed nine days ago in a storm, and the radio went silent soon after. The crew drank rain, ate "
    "what they had caught and rowed in turns by the stars. A lighthouse keeper saw their lamp at dusk and sent a "
    "pilot. The doctor says that they are thin but in good health. The skipper wants to go out again as soon as the "
    "engine runs."
)
CHINESE_NEWS = (
    "昨天夜里，一艘失踪九天的渔船回到港口，船上五个人都平安。船的发动机在风暴中坏了，电台不久也没有了声音。"
    "船员们喝雨水，吃打来的鱼，看着星星轮流划桨。傍晚，守灯塔的老人看见他们的灯，就派人去接。医生说他们瘦了，"
    "但是身体很好。船长想等发动机修好以后再出海。"
)
OTHER_NEWS = [(" ".join(words(3, 700 + number)) + " | Coast News", text(700 + number, 90)) for number in range(4)]


def reprint(headlines: tuple[str, str], article: str, copy: str) -> Story:
    documents = items(A, *OTHER_NEWS, (headlines[0], article))
    return Story([*documents, Document(f"{B}/reprint", copy, headlines[1])], 1)


BOAT = "Skarvik boat comes home after nine days"
CHURN = THINGS[0][0], f"{THINGS[0][1]} {SELLER}"


def at_two_urls(title: str) -> Story:
    documents = items(A, *OTHER_THINGS, (title, CHURN[1]))
    return Story([*documents, Document(f"{A}/again", CHURN[1], title)], 1)


FOUND = {
    "an edited ad with three tenths of form, another site's suffix": edited_ad(60, "{} - Work in Haven"),
    "an edited ad with three tenths of form, another site's prefix": edited_ad(60, "Haven jobs: {}"),
    "an edited ad that is half form, another site's suffix": edited_ad(100, "{} - Work in Haven"),
    "an edited ad that is half form, another site's prefix": edited_ad(100, "Haven jobs: {}"),
    "a reprint under another headline": reprint(
        (f"{BOAT} | Coast News", "Five men saved by a lamp at dusk - The Mail"), NEWS, NEWS
    ),
    "an edited reprint under another headline": reprint(
        (f"{BOAT} | Coast News", "Given up for lost, five men return - The Mail"),
        NEWS,
        NEWS.replace("last night", "on Monday").replace("thin but in good health", "tired but well"),
    ),
    "a reprint under another headline, Chinese": reprint(
        ("失踪渔船九天后回港_海岸报", "守塔老人救了五个人 - 晚报"), CHINESE_NEWS, CHINESE_NEWS
    ),
    "one item at two URLs": at_two_urls(CHURN[0]),
    "one item at two URLs without title": at_two_urls(""),
    "one page at two URLs": Story([html_page(f"{A}/{number}", *CHURN) for number in range(2)], 1),
    "one of a seller's things at two URLs": Story(
        [*attic(titled=True).documents, Document(f"{A}/again", CHURN[1], CHURN[0])], 1
    ),
    "a long text with a twentieth of its own under one title, on two hosts": ordinances(ONE_TITLE, B, 300, 1),
}

EACH = [pytest.param(story, id=name) for name, story in {**KEPT, **FOUND}.items()]
STORIES = pytest.mark.parametrize("story", EACH)
SOME_STORIES = pytest.mark.parametrize("story", [*EACH[::6], *slow(*(each for n, each in enumerate(EACH) if n % 6))])


def expected(story: Story) -> list[str]:
    return ["unique"] * (len(story.documents) - story.copies) + ["duplicate"] * story.copies


@STORIES
def test_other_subjects_are_kept_and_copies_are_found(story: Story) -> None:
    assert one_run(story.documents) == expected(story)


@SOME_STORIES
def test_as_many_are_kept_in_the_other_order(story: Story) -> None:
    assert one_run(reversed(story.documents)).count("duplicate") == story.copies


@SOME_STORIES
def test_a_store_that_is_opened_again_decides_alike(story: Story, tmp_path: Path) -> None:
    assert a_run_each(story.documents, tmp_path / "store.sqlite") == expected(story)


def test_things_without_titles_are_kept_where_other_pages_of_the_site_are_known() -> None:
    story = attic(titled=False)
    assert one_run(story.documents) == expected(story)
