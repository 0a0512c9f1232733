"""Settings: what is allowed, in Python and as text on the command line, and the errors for other values."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_neardup.detectors import build_detectors
from scrapy_neardup.settings import Config, ConfigError

DAY = 86_400.0
FLAGS = ["enabled", "skip_mirrors", "skip_start", "learn_hosts"]
NAMES = ["title_field", "url_field"]


def test_defaults_of_the_contract() -> None:
    config = Config.from_settings(Settings())
    assert config == Config()
    expected = {
        "enabled": True, "namespace": "", "fields": None, "title_field": "title", "url_field": "url",
        "action": "drop", "revisit": "keep", "scope": "all",
        "skip_mirrors": True, "skip_start": False, "dead_http_codes": {404, 410},
        "mirror_hosts": {}, "learn_hosts": True,
        "recheck": 0.01, "mirror_ttl": 30 * DAY, "unclean_run": "forget",
        "preferred_hosts": (), "ttl": None, "detectors": ("exact", "imatch", "simhash", "shingle"),
    }  # fmt: skip
    assert {name: getattr(config, name) for name in expected} == expected


GOOD: list[tuple[str, Any, Any]] = [
    *((name, value, True) for name in FLAGS for value in (True, 1, "1", "True", "true", "yes")),
    *((name, value, False) for name in FLAGS for value in (False, 0, "0", "False", "false", "no", "", None)),
    *((name, "other", "other") for name in NAMES),
    ("store", "/data/held.sqlite", "/data/held.sqlite"),
    ("store", "", None),
    ("dropped", "dropped-%(time)s.jsonl", "dropped-%(time)s.jsonl"),
    ("dropped", Path("dropped.csv"), "dropped.csv"),
    ("dropped", "", None),
    ("namespace", "{spider}", "{spider}"),
    ("fields", ["body", "lead"], ("body", "lead")),
    ("fields", "body, lead", ("body", "lead")),
    ("fields", "body", ("body",)),
    ("fields", '["body", "lead"]', ("body", "lead")),
    ("fields", "", None),
    ("detectors", ["shingle"], ("shingle",)),
    ("detectors", "exact,my.own.Detector", ("exact", "my.own.Detector")),
    ("detectors", [{"name": "simhash", "distance": 6}], ({"name": "simhash", "distance": 6},)),
    ("detectors", '["exact", {"name": "my.own.Detector"}]', ("exact", {"name": "my.own.Detector"})),
    *(("action", value, value) for value in ("drop", "tag", "audit")),
    *(("revisit", value, value) for value in ("keep", "drop", "skip")),
    *(("scope", value, value) for value in ("all", "host", "domain")),
    *(("unclean_run", value, value) for value in ("forget", "keep")),
    *(("short_text", value, value) for value in ("unique", "exact")),
    ("length_ratio", 1, 1.0),
    ("length_ratio", "1.5", 1.5),
    ("resemblance", 0, 0.0),
    ("resemblance", "1", 1.0),
    ("resemblance", {100: 0.5, "20": 0.9}, {20: 0.9, 100: 0.5}),
    ("resemblance", '{"20": 0.9}', {20: 0.9}),
    ("resemblance", "{20: 0.9, 100: 0.5}", {20: 0.9, 100: 0.5}),
    ("min_tokens", "0", 0),
    ("min_tokens", 50.0, 50),
    *(("extractor", value, value) for value in ("builtin", "trafilatura", "textwrap.dedent")),
    ("dead_http_codes", [404, 410, 451], {404, 410, 451}),
    ("dead_http_codes", "404,503", {404, 503}),
    ("dead_http_codes", "404", {404}),
    ("dead_http_codes", [], set()),
    ("dead_http_codes", "[]", set()),
    ("dead_http_codes", "", set()),
    ("mirror_hosts", {"M.example": "A.example"}, {"m.example": "a.example"}),
    ("mirror_hosts", '{"m.example": "a.example"}', {"m.example": "a.example"}),
    ("recheck", "0.5", 0.5),
    ("mirror_ttl", 60, 60.0),
    ("mirror_ttl", "60", 60.0),
    ("mirror_ttl", timedelta(days=2), 2 * DAY),
    ("mirror_ttl", "30 days", 30 * DAY),
    ("mirror_ttl", "1 Day", DAY),
    ("mirror_ttl", "2h", 7200.0),
    ("mirror_ttl", "1.5 hours", 5400.0),
    ("mirror_ttl", "10 minutes", 600.0),
    ("mirror_ttl", "2 weeks", 14 * DAY),
    ("mirror_ttl", "5s", 5.0),
    ("mirror_ttl", 0, 0.0),
    ("ttl", None, None),
    ("ttl", "", None),
    ("ttl", "90 days", 90 * DAY),
    ("ttl", timedelta(weeks=1), 7 * DAY),
    ("ttl", 0.5, 0.5),
    ("ignore_fields", "views, scraped*", ("views", "scraped*")),
    ("ignore_fields", [], ()),
    ("ignore_fields", "", ()),
    ("preferred_hosts", ["a.example"], ("a.example",)),
    ("preferred_hosts", "a.example, b.example", ("a.example", "b.example")),
    ("preferred_hosts", "", ()),
]


@pytest.mark.parametrize(
    ("name", "value", "expected"), GOOD, ids=lambda value: getattr(value, "__name__", repr(value)[:24])
)
def test_good_values_are_converted(name: str, value: Any, expected: Any) -> None:
    config = Config.from_settings(Settings({f"NEARDUP_{name.upper()}": value}))
    read = getattr(config, name)
    assert read == expected
    assert type(read) is type(expected) or isinstance(read, (frozenset, tuple, dict))


BAD: list[tuple[str, Any, str]] = [
    *((name, value, "True or False") for name in FLAGS for value in ("maybe", 2, [])),
    *((name, value, "the name of an item field") for name in NAMES for value in ("", None, 5, ["title"])),
    ("store", 5, "allowed is a path"),
    *(("store", f"{name}.sqlite", "NEARDUP_NAMESPACE = '{spider}'") for name in ("{spider}", "%(name)s")),
    ("dropped", 5, "allowed is a path"),
    ("namespace", None, "text"),
    ("namespace", "{spidr}", "text, in which {spider} stands for the name of the spider"),
    ("fields", '["body"', "a list of names"),
    ("fields", 5, "a list of names"),
    ("fields", [""], "a list of names"),
    ("fields", ["body", 3], "a list of names"),
    ("ignore_fields", 5, "a list of names"),
    ("ignore_fields", None, "a list of names"),
    ("detectors", "simmhash", "exact, imatch, simhash"),
    ("detectors", [], "exact, imatch, simhash"),
    ("detectors", None, "exact, imatch, simhash"),
    ("detectors", [{"name": "simhsh", "distance": 6}], "did you mean 'simhash'?"),
    ("detectors", [{"simhash": {"distance": 6}}], "exact, imatch, simhash"),
    ("action", "Drop", "'drop' or 'tag' or 'audit'"),
    ("action", None, "'drop'"),
    ("revisit", "forget", "'keep' or 'drop' or 'skip'"),
    ("scope", "site", "'all' or 'host' or 'domain'"),
    ("unclean_run", "delete", "'forget' or 'keep'"),
    ("short_text", "near", "'unique' or 'exact'"),
    *(("length_ratio", value, "a number from 1 up") for value in (0.9, "x", None, float("nan"), True)),
    *(
        ("resemblance", value, "a number from 0 to 1")
        for value in (-0.1, 1.1, "42%", float("nan"), {}, [], {20: 2}, {-1: 0.5}, {"x": 0.5}, "{")
    ),
    *(("min_tokens", value, "a whole number from 0 up") for value in (-1, 1.5, float("inf"), "many")),
    *(
        ("extractor", value, "'builtin', 'trafilatura', or (the import path of) a function")
        for value in ("builtn", "", None, 5, "no_such.module", "textwrap.no_such", "string.digits", ".a.b")
    ),
    *(("dead_http_codes", value, "from 400 to 599") for value in ([200], [600], "404,x", 404, None, ["x"])),
    *(("mirror_hosts", value, "a dictionary") for value in ([("a", "b")], {"a": ""}, {"a": 5}, "a:b", None)),
    *(("recheck", value, "a number from 0 to 1") for value in (-1, 2, "all")),
    *(("mirror_ttl", value, "'30 days'") for value in (-1, "soon", "3 fortnights", None, True, [], timedelta(days=-1))),
    *(("ttl", value, "'90 days'") for value in (0, "0 days", "soon", -1, True, [])),
    *(
        ("preferred_hosts", value, "a list of hosts, each with or without port")
        for value in (5, None, [""], {"a.example"}, ["http://a.example/"], "a b")
    ),
]


@pytest.mark.parametrize(
    ("name", "value", "allowed"), BAD, ids=lambda value: getattr(value, "__name__", repr(value)[:24])
)
def test_bad_value_is_refused_naming_setting_value_and_what_is_allowed(name: str, value: Any, allowed: str) -> None:
    setting = f"NEARDUP_{name.upper()}"
    for make in (lambda: Config(**{name: value}), lambda: Config.from_settings({setting: value})):
        with pytest.raises(ConfigError) as caught:
            make()
        message = str(caught.value)
        assert message.startswith(f"{setting} = {value!r} ")
        assert allowed in message
        assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "argument", "value", "why"),
    [
        *(
            ("simhash", "distance", value, "a whole number from 0 to 15")
            for value in (-1, 16, 2.5, "3", None, True, [])
        ),
        *(("imatch", "randomized", value, "a whole number from 0 to 64") for value in (-1, 65, "ten")),
        ("imatch", "lexicon", "/nowhere/my.lexicon", "No such file"),
        ("simhash", "distanz", 6, "allowed are distance=3"),
        ("exact", "size", 6, "allowed are none"),
        ("textwrap.TextWrapper", "breadth", 6, "unexpected keyword argument 'breadth'"),
    ],
)
def test_a_bad_argument_of_a_detector_is_named_in_one_line(name: str, argument: str, value: Any, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_detectors(Config(detectors=["exact", {"name": name, argument: value}]))
    message = str(caught.value)
    assert message.startswith(f"NEARDUP_DETECTORS: {{'name': {name!r}, {argument!r}: {value!r}}} can't be used")
    assert why in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "hint"),
    [("NEARDUP_DETECTOR", "NEARDUP_DETECTORS"), ("NEARDUP_MIN_TOKEN", "NEARDUP_MIN_TOKENS"), ("NEARDUP_COLOUR", None)],
)
def test_unknown_name_is_refused_with_a_hint(name: str, hint: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.from_settings(Settings({name: "x"}))
    message = str(caught.value)
    assert message.startswith(f"{name} is not a setting")
    assert (hint is None) is ("did you mean" not in message)
    assert hint is None or f"did you mean {hint}?" in message


def test_settings_of_others_are_none_of_ours_and_keywords_are_ours_in_lower_case() -> None:
    assert Config.from_settings(Settings({"NEARDUPLICATE": 1, "DEPTH_LIMIT": "x"})) == Config()
    assert Config.from_keywords({"min_tokens": "7"}) == Config.from_settings({"NEARDUP_MIN_TOKENS": 7})


def test_settings_do_not_change_not_even_with_what_they_were_made_of() -> None:
    rules = {"m.example": "a.example"}
    config = Config(mirror_hosts=rules)
    rules["n.example"] = "a.example"
    assert config.mirror_hosts == {"m.example": "a.example"}
    with pytest.raises(FrozenInstanceError):
        config.min_tokens = 3  # type: ignore[misc]
