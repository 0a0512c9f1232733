"""How long a crawl's reactor is held, and by whom: what `bench/crawl_cost.py` measures with."""

from __future__ import annotations

import asyncio
import gc
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from inspect import iscoroutinefunction, signature
from typing import Any

TICK = 0.005


class Clock:
    """Times every stretch in which an entry point holds the reactor's thread, the reactor's lag, and collections."""

    def __init__(self) -> None:
        self.times: dict[str, array[float]] = defaultdict(partial(array, "d"))
        self.own: dict[str, array[float]] = defaultdict(partial(array, "d"))
        """The same, less what of it went to collecting garbage."""
        self.longest: dict[str, dict[str, Any]] = {}
        """Of the longest of these what is to be told of it."""
        self.lags, self.collections = array("d"), array("d")
        self._began = time.perf_counter()
        self._collected = 0.0
        gc.callbacks.append(self._collect)

    def _collect(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._since = time.perf_counter()
        else:
            self.collections.append(time.perf_counter() - self._since)
            self._collected += self.collections[-1]

    @contextmanager
    def stretch(self, name: str, arguments: Iterable[Any]) -> Iterator[None]:
        began, cpu, collected = time.perf_counter(), time.thread_time(), self._collected
        try:
            yield
        finally:
            taken, garbage = time.perf_counter() - began, self._collected - collected
            self.times[name].append(taken)
            self.own[name].append(taken - garbage)
            if taken - garbage > self.longest.get(name, {}).get("own", 0):
                page = next(filter(None, map(_url, arguments)), "")
                cpu = time.thread_time() - cpu - garbage
                self.longest[name] = {"own": taken - garbage, "cpu": cpu, "at": began - self._began, "page": page}

    def watch(self, owner: type, method: str) -> None:
        """Time a method wherever it is called from."""
        name, original = f"{owner.__name__}.{method}", getattr(owner, method)
        wanted = signature(original).parameters  # signals bring more, and leave out what a function does not name

        @wraps(original)
        def timed(*arguments: Any, **named: Any) -> Any:
            named = {name: value for name, value in named.items() if name in wanted}
            with self.stretch(name, (*arguments, *named.values())):
                return original(*arguments, **named)

        @wraps(original)
        async def steps(*arguments: Any, **named: Any) -> Any:
            stretch = partial(self.stretch, name, (*arguments, *named.values()))
            return await _Steps(original(*arguments, **named), stretch)

        made = steps if iscoroutinefunction(original) else timed
        setattr(owner, method, staticmethod(made) if method == "from_crawler" else made)

    def tick(self, due: float = 0.0) -> None:
        """Measure the reactor's lag from now on."""
        now = time.perf_counter()
        if due:
            self.lags.append(now - due)
        asyncio.get_running_loop().call_later(TICK, self.tick, time.perf_counter() + TICK)


class _Steps:
    """A coroutine, each step of which is timed."""

    def __init__(self, coroutine: Any, stretch: Callable[[], Any]) -> None:
        self._coroutine, self._stretch = coroutine, stretch

    def __await__(self) -> Generator[Any, Any, Any]:
        step = partial(self._coroutine.send, None)
        while True:
            try:
                with self._stretch():
                    awaited = step()
            except StopIteration as end:
                return end.value
            try:
                step = partial(self._coroutine.send, (yield awaited))
            except BaseException as error:
                step = partial(self._coroutine.throw, error)


def _url(argument: Any) -> str:
    if isinstance(argument, dict):
        return str(argument.get("url", ""))
    # The extension is asked at the end of an item, and knows its response.
    return str(getattr(argument, "url", "") or getattr(getattr(argument, "response", None), "url", ""))


def high(times: array[float]) -> float:
    """Return the time that 99.9 % stay below."""
    return sorted(times)[int(len(times) * 0.999)]
