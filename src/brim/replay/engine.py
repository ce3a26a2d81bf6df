"""Many conversations through one function: in this process, in several, or on a ray cluster, always with the same outcomes.

Conversations are read one after the other and handed out a few at a time, so memory does not grow with the corpus.
Outcomes come back in the order of the conversations, whoever was done first. A worker that dies takes nothing with it
but its time: what it held is played again, one conversation at a time, so that a conversation that kills its workers is
found and named rather than tried forever.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from brim.errors import BrimError, UsageError
from brim.replay.play import Plays
from brim.replay.transcript import Transcript

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

T = TypeVar("T")
AHEAD = 2
"""Conversations handed out for each worker: one at work, one waiting."""
TRIES = 3


def play_all(
    transcripts: Iterable[Transcript],
    plays: Plays,
    *,
    work: Callable[[Transcript, Plays], T],
    jobs: int = 1,
    engine: str = "local",
) -> Iterator[T]:
    """The outcome of each conversation, in order. `work` is what a worker runs: a function of a module.

    Raises UsageError for an engine that does not exist or is not installed, BrimError where a conversation cannot be
    played.
    """
    if engine == "ray":
        return _on_ray(transcripts, plays, jobs, work)
    if engine != "local":
        raise UsageError(f"no engine {engine!r}", hint="there are local and ray")
    if jobs <= 1:
        return (work(transcript, plays) for transcript in transcripts)
    return _in_processes(transcripts, plays, jobs, work)


def _in_processes(
    transcripts: Iterable[Transcript], plays: Plays, jobs: int, work: Callable[[Transcript, Plays], T]
) -> Iterator[T]:
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children

    source = iter(transcripts)
    held: deque[tuple[Transcript, Future[T]]] = deque()
    others = set(active_children())
    pool = _pool(jobs)
    try:
        while True:
            while len(held) < AHEAD * jobs and (transcript := next(source, None)) is not None:
                try:
                    with _undisturbed():
                        held.append((transcript, pool.submit(work, transcript, plays)))
                except BrokenProcessPool:
                    held.append((transcript, _broken()))
            if not held:
                return
            transcript, future = held[0]
            try:
                outcome = future.result()
            except BrokenProcessPool:
                # Whose worker died is not known, so what was handed out is played one by one.
                again = [each for each, _ in held]
                held.clear()
                pool.shutdown(wait=False, cancel_futures=True)
                for each in again:
                    yield _alone(each, plays, work)
                pool = _pool(jobs)
                continue
            held.popleft()
            yield outcome
    except KeyboardInterrupt:
        for worker in set(active_children()) - others:  # or what they are at would be waited for
            worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _alone(transcript: Transcript, plays: Plays, work: Callable[[Transcript, Plays], T]) -> T:
    from concurrent.futures.process import BrokenProcessPool

    for _ in range(TRIES):
        with _pool(1) as pool:
            try:
                with _undisturbed():
                    future = pool.submit(work, transcript, plays)
                return future.result()
            except BrokenProcessPool:
                continue
    raise BrimError(
        f"the worker that played {transcript.id} died {TRIES} times",
        hint="leave that conversation out, or run with --jobs 1 to see why; too little memory is the usual reason",
    )


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Processes started here do not hear Ctrl-C, which a terminal sends to all at once: what is to be done then is for
    this process to say. It hears of one that came meanwhile right after."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its own start would lift the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pool(jobs: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


def _broken() -> Future[Any]:
    from concurrent.futures import Future
    from concurrent.futures.process import BrokenProcessPool

    future: Future[Any] = Future()
    future.set_exception(BrokenProcessPool("its pool was broken before it began"))
    return future


def _on_ray(
    transcripts: Iterable[Transcript], plays: Plays, jobs: int, work: Callable[[Transcript, Plays], T]
) -> Iterator[T]:
    ray = _ray()
    started = not ray.is_initialized()
    if started:
        # The address comes from RAY_ADDRESS, where a cluster runs; otherwise one is made here.
        ray.init(log_to_driver=False, configure_logging=False, **({"num_cpus": jobs} if jobs > 1 else {}))
    try:
        remote: Any = ray.remote(max_retries=TRIES, num_cpus=1)(work)
        width = AHEAD * max(jobs, int(ray.cluster_resources().get("CPU", 1)))
        source = iter(transcripts)
        held: deque[tuple[Transcript, Any]] = deque()
        shared = ray.put(plays)
        while True:
            while len(held) < width and (transcript := next(source, None)) is not None:
                held.append((transcript, remote.remote(transcript, shared)))
            if not held:
                return
            transcript, reference = held.popleft()
            try:
                yield ray.get(reference)
            except ray.exceptions.WorkerCrashedError as error:
                raise BrimError(f"the worker that played {transcript.id} died {TRIES + 1} times") from error
            except ray.exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, BrimError) else error from error
    finally:
        if started:
            ray.shutdown()


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise UsageError("ray is not installed", hint="pip install 'brim[cluster]', or use --jobs") from error
    return ray
