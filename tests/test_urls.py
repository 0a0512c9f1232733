"""URLs: which spellings are one address, and what are the host and the domain of a URL."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import slow

from scrapy_neardup.text.urls import _PLAIN, canonical_url, domain, host, listing

KEPT = [
    "http://a.example:99999/", "http://a.example:port/", "http://[::1/", "http://[x]/y",  # can't be fetched
    "ftp://a.example/index.html", "mailto:a@b.example", "data:text/plain,hi", "/x?a=1",
    "http://a.example/news/", "http://a.example/news",
    *(f"http://a.example/{page}" for page in ("index.html.gz", "myindex.html", "index.html/x", "index", "index.json")),
    *(f"http://a.example/x?{name}=1" for name in ("utm", "utm_", "gclid2", "my_gclid", "spmx", "ref", "page", "id")),
    "http://a.example/x?utm-source=1",
]  # fmt: skip


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", ""),
        ("http://a.example", "http://a.example/"),
        ("HTTP://A.Example/Path", "http://a.example/Path"),
        ("https://a.example/x", "http://a.example/x"),
        ("http://a.example/x#part", "http://a.example/x"),
        ("http://a.example/x#?utm_source=y", "http://a.example/x"),
        # A route is part of the address of a page. An empty one is that of the first page.
        ("https://a.example/#/a/1", "http://a.example/#/a/1"),
        ("http://a.example/index.html?utm_source=y#!x", "http://a.example/#!x"),
        ("http://a.example/x?b=2&a=1#!/ü/1?y=é", "http://a.example/x?a=1&b=2#!/%C3%BC/1?y=%C3%A9"),
        *((f"http://a.example/x#{route}", "http://a.example/x") for route in ("", "/", "!", "!/", "a/1", ":~:text=a")),
        ("http://a.example/?b=2&a=1", "http://a.example/?a=1&b=2"),
        ("http://a.example/?a=2&a=1", "http://a.example/?a=1&a=2"),
        ("http://a.example/?", "http://a.example/"),
        ("http://a.example/%7euser", "http://a.example/~user"),
        ("http://a.example/?q=a%20b", "http://a.example/?q=a+b"),
        ("http://a.example/?q=中", "http://a.example/?q=%E4%B8%AD"),
        ("http://user:secret@a.example/x", "http://a.example/x"),
        ("http://user@a.example:8080/x", "http://a.example:8080/x"),
        # Only the default port of the scheme goes.
        ("http://a.example:80/x", "http://a.example/x"),
        ("https://a.example:443/x", "http://a.example/x"),
        ("http://a.example:/x", "http://a.example/x"),
        ("http://a.example:443/x", "http://a.example:443/x"),
        ("https://a.example:80/x", "http://a.example:80/x"),
        ("http://a.example:8080/x", "http://a.example:8080/x"),
        ("http://[2001:DB8::1]:80/x", "http://[2001:db8::1]/x"),
        ("http://[2001:db8::1]/x", "http://[2001:db8::1]/x"),
        ("http://[2001:db8::80]:8080/x", "http://[2001:db8::80]:8080/x"),
        ("http://user:80@a.example:80/x", "http://a.example/x"),
        ("https://bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC"),
        ("http://xn--bcher-kva.example/%c3%bc", "http://xn--bcher-kva.example/%C3%BC"),
        ("https://u@A.example:443/d/index.html?utm_id=1&b=%7e&a=ü#x", "http://a.example/d/?a=%C3%BC&b=~"),
        ("http://a.example/?a=&b", "http://a.example/?a=&b="),
        ("http://[::1]:80", "http://[::1]/"),
        *((url, url) for url in KEPT),
    ],
)
def test_one_form_for_all_spellings(url: str, expected: str) -> None:
    assert canonical_url(url) == expected
    assert canonical_url(expected) == expected or url == "https://a.example:80/x"  # the only one of which more goes


@pytest.mark.parametrize(
    "name",
    ["utm_source", "utm_anything", "UTM_Medium", "gclid", "fbclid", "msclkid", "mc_cid", "mc_eid", "_ga", "_gl", "spm",
     "yclid", "igshid", "scm", "bd_vid"],
)  # fmt: skip
def test_tracking_parameters_go(name: str) -> None:
    assert canonical_url(f"http://a.example/x?id=1&{name}=abc") == "http://a.example/x?id=1"
    assert canonical_url(f"http://a.example/x?{name}=abc&id=1") == "http://a.example/x?id=1"
    assert canonical_url(f"http://a.example/x?{name}") == "http://a.example/x"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ""), ("?page=2", ""), ("?PAGE=2", ""), ("/page/12/", ""), ("?cursor=aGk%3D", ""), ("?page_no=2", ""),
        ("?offset=9", ""), ("?start=2", "?start=2"),
        ("?sort=up", "?sort=up"), ("?sort=up&page=2", "?sort=up"), ("?page=2&sort=up", "?sort=up"),
        ("?a=b&page=2&sort=up", "?a=b&sort=up"), ("?page=about", "?page=about"), ("?id=2", "?id=2"), ("/2", "/2"),
        ("?homepage=2", "?homepage=2"), ("/page/2b", "/page/2b"),
    ],
)  # fmt: skip
def test_pages_of_one_list(query: str, expected: str) -> None:
    assert listing(f"https://a.example/list{query}") == f"http://a.example/list{expected}"


@pytest.mark.parametrize("page", ["index.html", "index.htm", "index.php", "default.html", "default.htm", "INDEX.HTML"])
def test_index_page_is_its_folder(page: str) -> None:
    assert canonical_url(f"http://a.example/{page}") == "http://a.example/"
    assert canonical_url(f"http://a.example/news/{page}?p=2") == "http://a.example/news/?p=2"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://WWW.A.Example:8080/x", "www.a.example"),
        ("http://user:secret@a.example/", "a.example"),
        ("http://a.example./x", "a.example"),
        ("http://[2001:db8::1]:80/", "2001:db8::1"),
        ("http://[::1/", ""),
        ("mailto:a@b.example", ""),
        ("/x", ""),
        ("", ""),
        # Scrapy requests the second, a user writes the first in NEARDUP_PREFERRED_HOSTS or NEARDUP_MIRROR_HOSTS.
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://xn--bcher-kva.example/", "xn--bcher-kva.example"),
    ],
)
def test_host_of_a_url(url: str, expected: str) -> None:
    assert host(url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://news.bbc.co.uk/x", "bbc.co.uk"),
        ("http://a.b.example.com./", "example.com"),
        ("http://example.com.cn/", "example.com.cn"),
        ("http://co.uk/", "co.uk"),
        ("http://localhost:6800/", "localhost"),
        ("http://192.0.2.7/", "192.0.2.7"),
        ("http://[::1]/", "::1"),
        ("", ""),
    ],
)
def test_registered_domain_of_a_url(url: str, expected: str) -> None:
    assert domain(url) == expected


HOSTS = ["a.com", "www.x-y.org", "a1.b2", "A.com"]
PIECES = ["/", "/a/", "index.html", "Default.htm", "b.c", "?", "id=1", "utm_source=x", "GCLID=3", "&", "~x", "-", "//"]


ASCII = st.characters(codec="ascii")
MADE = st.builds(
    lambda host, parts: f"http://{host}{''.join(parts)}",
    st.sampled_from(HOSTS),
    st.lists(st.sampled_from([*PIECES, "/."])),
)


@pytest.mark.parametrize("examples", [25, *slow(500)])
def test_a_plain_url_comes_to_what_any_other_would(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(st.from_regex(_PLAIN, fullmatch=True, alphabet=ASCII) | MADE)
    def try_one(url: str) -> None:
        # With a fragment none is plain.
        assert canonical_url(url) == canonical_url(f"{url}#")
        assert host(url) == host(f"{url}#")

    try_one()
