"""Executors: what a second process gains, what a task costs, and whether killed processes lose anything.

``python -m benchmarks.execution speed``, ``... kills``, ``... kills --dask`` (needs the package distributed).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import simqueue as sq
from simqueue.execution import Executor, Failed, ThisProcess
from simqueue.execution.cluster import DaskCluster
from simqueue.execution.local import LocalProcesses

SCENARIO: dict[str, Any] = {
    "step_time": {"kind": "linear", "overhead_s": 0.006, "per_prefill_token_s": 5.0e-5, "per_decode_s": 3.0e-5},
    "kv_cache": {"layout": "paged", "block_size": 16, "blocks": 6886},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 6},
        "prompt_tokens": {"distribution": "lognormal", "mean": 1024, "cv": 0.6, "min": 16, "max": 3072},
        "output_tokens": {"distribution": "lognormal", "mean": 192, "cv": 0.6, "min": 8, "max": 896},
    },
    "policies": {"chunked": {"scheduler": "chunked", "max_num_batched_tokens": 512, "max_num_seqs": 128}},
}
TASK_S = 0.3
LIMIT = 1.9
LARGEST_OUTCOME = 3_000_000


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.execution", description=__doc__)
    parser.add_argument("what", choices=("speed", "kills"))
    parser.add_argument("--tasks", type=int, default=48, help="tasks of a round of speed")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of speed")
    parser.add_argument("--kills", type=int, default=50, help="how many processes are killed")
    parser.add_argument("--every", type=float, default=0.2, help="seconds between two kills, on average")
    parser.add_argument("--dask", action="store_true", help="kill workers of a Dask cluster of this machine")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.2f}, cores: {os.cpu_count()}")
    if given.what == "speed":
        speed(given.tasks, given.rounds)
    else:
        with _Dask() if given.dask else _Local(2) as where:
            kills(where, given.kills, given.every, random.Random(given.seed))


def speed(tasks: int, rounds: int) -> None:
    """Print how many times faster two processes are than one, and what an empty task costs."""
    played = partial(play, _requests(TASK_S))
    ratios = []
    for _ in range(rounds):
        one, one_busy = _seconds(ThisProcess(), played, tasks)
        with LocalProcesses(2) as where:
            start, start_busy = _seconds(where, played, where.workers)  # imports, and a task each
            two, two_busy = _seconds(where, played, tasks)
        ratios.append(one / two)
        print(
            f"{tasks} tasks of {one / tasks:.3f} s: one process {one:.2f} s, two {two:.2f} s, ratio {one / two:.3f} "
            f"(processor time {one_busy:.2f} s and {two_busy:.2f} s); start of both and a task each {start:.2f} s "
            f"({start_busy:.2f} s)"
        )
    print(f"ratio: best {max(ratios):.3f}, median {sorted(ratios)[rounds // 2]:.3f} (limit {LIMIT})")
    empty = 5000
    with LocalProcesses(2) as where:
        list(where.unordered(_same, range(10)))
        started = time.perf_counter()
        list(where.unordered(_same, range(empty)))
        print(f"an empty task: {1e3 * (time.perf_counter() - started) / empty:.3f} ms (limit 2)")


def play(requests: int, seed: int) -> float:
    """Return the mean TTFT of a run."""
    scenario = {**SCENARIO, "seed": seed, "workload": {**SCENARIO["workload"], "num_requests": requests}}
    return sq.run(scenario, workers=1).values("chunked", "mean_ttft_ms")[0] or 0.0


def _same(task: int) -> int:
    return task


def _requests(seconds: float) -> int:
    """Return how many requests take so much processor time here."""
    play(100, 1)
    started = time.process_time()
    play(2000, 1)
    return max(100, round(2000 * seconds / (time.process_time() - started)))


def _seconds(where: Executor, played: Callable[[int], float], tasks: int) -> tuple[float, float]:
    """Return the wall time of tasks, and the processor time of this process and the others."""
    started, busy = time.perf_counter(), _busy(where)
    outcomes = dict(where.unordered(played, range(1, tasks + 1)))
    if len(outcomes) != tasks or any(isinstance(one, Failed) for one in outcomes.values()):
        raise RuntimeError("a task failed")
    return time.perf_counter() - started, _busy(where) - busy


def _busy(where: Executor) -> float:
    """Return the processor time of this process and of those of an executor, in seconds."""
    members = where.members if isinstance(where, LocalProcesses) else []
    files = [Path("/proc", str(member.popen.pid), "stat").read_text() for member in members]
    ticks = sum(int(part) for text in files for part in text.rpartition(")")[2].split()[11:13])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def kills(where: Executor, wanted: int, every: float, rng: random.Random) -> None:
    """Kill processes at random instants until enough were, and print whether each task has its one outcome."""
    killed: list[int] = []
    killer = threading.Thread(target=_kill, args=(where, wanted, every, rng, killed), daemon=True)
    killer.start()
    started = time.perf_counter()
    seen: dict[int, object] = {}
    for number, outcome in where.unordered(large, _while_any(killer)):
        if number in seen:
            raise RuntimeError(f"task {number} has two outcomes")
        seen[number] = outcome
    failed = [number for number, one in seen.items() if isinstance(one, Failed)]
    wrong = [number for number, one in seen.items() if number not in failed and one != large(number)]
    missing = set(range(len(seen))) - seen.keys()
    print(
        f"{len(killed)} kills in {time.perf_counter() - started:.0f} s, {len(seen)} tasks: {len(missing)} missing, "
        f"{len(wrong)} wrong, {len(failed)} failed because two processes died of them"
    )


def large(number: int) -> tuple[str, bytes]:
    """Return an outcome that takes a while to be sent, after a short time."""
    time.sleep(0.01 * (number % 5))
    size = LARGEST_OUTCOME * (number % 7) // 6
    return sha256(str(number).encode()).hexdigest(), bytes([number % 256]) * size


def _while_any(thread: threading.Thread) -> Iterator[int]:
    number = 0
    while thread.is_alive():
        yield number
        number += 1


def _kill(where: Any, wanted: int, every: float, rng: random.Random, killed: list[int]) -> None:
    while len(killed) < wanted:
        time.sleep(rng.uniform(0.1, 1.9) * every)
        numbers = [number for number in where.process_numbers() if number not in killed]
        if numbers:
            killed.append(rng.choice(numbers))
            with contextlib.suppress(ProcessLookupError):
                os.kill(killed[-1], signal.SIGKILL)
            where.one_was_killed()


class _Local(LocalProcesses):
    """Two processes of this machine; the executor starts others in their place."""

    def process_numbers(self) -> list[int]:
        return [member.popen.pid for member in list(self.members)]

    def one_was_killed(self) -> None:
        """Do nothing."""


class _Dask(DaskCluster):
    """Two workers of a Dask cluster; killed ones are started again here, as a batch system does."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        for _ in range(2):
            self.one_was_killed()
        file = Path(self._folder, "scheduler.json")
        while not file.exists() or not file.read_text():
            time.sleep(0.1)
        super().__init__(json.loads(file.read_text())["address"])

    def process_numbers(self) -> list[int]:
        found = self._client.run(os.getpid, on_error="return")
        return sorted(number for number in found.values() if isinstance(number, int))

    def one_was_killed(self) -> None:
        """Start a worker."""
        self._start("worker", "--no-nanny", "--nthreads", "1", "--memory-limit", "0")

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for process in self._processes:
            process.kill()
            process.wait()
        shutil.rmtree(self._folder)

    def _start(self, *words: str) -> None:
        command = [sys.executable, "-m", "dask", *words, "--no-dashboard", "--scheduler-file", "scheduler.json"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        nowhere = subprocess.DEVNULL
        self._processes.append(
            subprocess.Popen(command, cwd=self._folder, env=environment, stdout=nowhere, stderr=nowhere)
        )


if __name__ == "__main__":
    main()
