"""Objects are excluded from garbage collection only while a crawl or a command runs."""

import gc

import pytest

from scrapy_neardup.crawl.garbage import frozen


def test_objects_are_frozen_until_the_end_of_the_block() -> None:
    with pytest.raises(RuntimeError), frozen():
        assert gc.get_freeze_count() > 0
        raise RuntimeError
    assert gc.get_freeze_count() == 0


def test_a_second_crawl_leaves_the_freeze_of_the_first_one_alone() -> None:
    with frozen():
        count = gc.get_freeze_count()
        with frozen():
            assert gc.get_freeze_count() == count
        assert gc.get_freeze_count() == count
    assert gc.get_freeze_count() == 0
