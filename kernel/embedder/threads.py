"""How many threads torch may use, and how they wait."""

import math
import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def usable_cpus(cgroups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """Cores that this process may really use: its affinity, and its group's quota; at least 1."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quotas = [_quota(folder) for folder in _groups(cgroups, membership)]
    return max(1, min(affinity or 1, *(math.floor(q) for q in quotas if q is not None), 1 << 16))


def _groups(cgroups: Path, membership: Path) -> list[Path]:
    """The control groups above this process, as far as they can be seen (version 2, then 1)."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        lines = []
    own = next((line[3:].strip("/") for line in lines if line.startswith("0::")), "")
    path = cgroups / own
    return [path, *(p for p in path.parents if p.is_relative_to(cgroups)), cgroups / "cpu"]


def _quota(group: Path) -> float | None:
    """Cores that a group may use in the long run."""
    try:
        quota, period = (group / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        quota = (group / "cpu.cfs_quota_us").read_text()
        period = (group / "cpu.cfs_period_us").read_text()
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError):
        return None


def prepare_torch(threads: int) -> int:
    """Import torch so that idle threads sleep instead of spinning; returns the threads it uses.

    Two spinning threads on two busy cores turned a query of 20 ms into one of 970 ms. The variables
    are read once, when torch is loaded: later calls only set the number.
    """
    for name, value in {
        "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0",
        "TOKENIZERS_PARALLELISM": "false",
    }.items():  # fmt: skip
        os.environ.setdefault(name, value)
    import torch

    count = threads or usable_cpus()
    torch.set_num_threads(count)
    return count
