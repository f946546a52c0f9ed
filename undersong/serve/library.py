"""The store behind the pages: one connection a thread to read, one to write, and figures that are worked out once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

from undersong.errors import StoreError
from undersong.models import SequenceReading, SessionVerdict
from undersong.patterns.catalog import all_rules
from undersong.report.finding_view import RuleWords, rule_words
from undersong.serve.review_order import ReviewQueue
from undersong.serve.runs import Run, Runs
from undersong.serve.settings import ServeSettings
from undersong.stores.browsing import open_browser
from undersong.stores.sql.browsing import BrowsingStore

T = TypeVar("T")


class CachedValue(NamedTuple):
    """A value, the version of the store that it is of, and when it was made."""

    version: int
    made: float
    value: object


class Library:
    """What all pages read from; methods may be called from any thread."""

    def __init__(self, settings: ServeSettings) -> None:
        self.settings, self.runs, self.queue = settings, Runs(settings), ReviewQueue()
        self._threads = threading.local()
        self._lock, self._writing = threading.RLock(), threading.RLock()
        self._opened: dict[threading.Thread, BrowsingStore] = {}
        self._watch: BrowsingStore | None = None
        self._writer: BrowsingStore | None = None
        self._cached: dict[str, CachedValue] = {}
        self._refreshing: set[str] = set()
        self._closed = False

    @property
    def store(self) -> BrowsingStore:
        """The store for reading; a connection of this thread's own."""
        opened: BrowsingStore | None = getattr(self._threads, "store", None)
        if opened is None:
            opened = self._threads.store = self._open()
            with self._lock:
                for thread in [each for each in self._opened if not each.is_alive()]:
                    self._opened.pop(thread).close()
                self._opened[threading.current_thread()] = opened
        return opened

    def write(self, work: Callable[[BrowsingStore], T]) -> T:
        """Do work on the one connection that writes; when it returns, a killed server or a power cut loses nothing."""
        with self._writing:
            if self._writer is None:
                self._writer = open_browser(self.settings.store, durable=True)
            return work(self._writer)

    def version(self) -> int:
        """A number that changes with the store."""
        with self._lock:
            if self._watch is None:
                self._watch = self._open()
            return self._watch.data_version()

    def cached(self, name: str, compute: Callable[[], T], stale: float = 0.0) -> T:
        """What ``compute`` gives, worked out again only when the store has changed.

        For ``stale`` seconds the value of before is given while a thread works out the new one: a store that others
        write to changes several times a second.
        """
        version = self.version()
        with self._lock:
            stored = self._cached.get(name)
        if stored is not None and stored.version == version:
            return cast("T", stored.value)
        if stored is not None and time.monotonic() - stored.made < stale:
            self._refresh(name, compute)
            return cast("T", stored.value)
        return self._computed(name, compute)

    def _computed(self, name: str, compute: Callable[[], T]) -> T:
        version, value = self.version(), compute()
        with self._lock:
            self._cached[name] = CachedValue(version, time.monotonic(), value)
        return value

    def _refresh(self, name: str, compute: Callable[[], object]) -> None:
        """Work it out in a thread, one at a time."""
        with self._lock:
            if name in self._refreshing or self._closed:
                return
            self._refreshing.add(name)

        def work() -> None:
            try:
                self._computed(name, compute)
            except StoreError:
                return  # whoever asks when the old value is too old is told
            finally:
                self._release()
                with self._lock:
                    self._refreshing.discard(name)

        threading.Thread(target=work, name=f"undersong-{name}", daemon=True).start()

    def judge_hash(self) -> str:
        """The judge with the most rows, whose scores the pages show; "" without any."""
        judges = self.cached("judges", lambda: self.store.judges())
        return max(judges, key=lambda judge: judge.rows).judge_hash if judges else ""

    def rules(self) -> dict[str, RuleWords]:
        """Rule hash → its words."""
        return rule_words(all_rules())

    def session(self, conversation_id: str) -> tuple[Run, SessionVerdict] | None:
        """The verdict of the latest run over a conversation, None where no report has one."""
        for run in self.runs.all():
            if conversation_id in run.sessions:
                return run, run.sessions[conversation_id]
        return None

    def reading(self, reading_id: str | None) -> SequenceReading | None:
        """The reading of a sequence by its id, of any run."""
        readings = (run.readings.get(reading_id) for run in self.runs.all()) if reading_id else ()
        return next((each for each in readings if each is not None), None)

    def _release(self) -> None:
        """Close the connection of a thread that ends."""
        with self._lock:
            opened = self._opened.pop(threading.current_thread(), None)
            if opened is not None:
                opened.close()

    def close(self) -> None:
        """Release every connection."""
        with self._lock:
            self._closed = True
            for opened in (*self._opened.values(), self._watch, self._writer):
                if opened is not None:
                    opened.close()
            self._opened, self._watch, self._writer = {}, None, None
            self._threads = threading.local()

    def _open(self) -> BrowsingStore:
        return open_browser(self.settings.store, read_only=True)
