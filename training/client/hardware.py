"""This machine, as coarse as is useful to others."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import psutil

from training.protocol.metrics import Hardware

_MIB = 1 << 20


def hardware_read(*, use_gpu: bool = True) -> Hardware:
    """Return what this machine offers; needs no torch."""
    name, gpu_memory = _gpu_read() if use_gpu else ("", 0)
    return Hardware(
        device=(name or "cpu")[:80],
        cpus=cpus_usable(),
        memory_bytes=psutil.virtual_memory().total,
        gpu_memory_bytes=gpu_memory,
        system=f"{platform.system()} {platform.machine()}"[:40],
    )


def cpus_usable() -> int:
    """Return how many CPUs this process may use (containers often allow fewer)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_wsl() -> bool:
    """Return whether this is the Windows Subsystem for Linux."""
    try:
        return "microsoft" in Path("/proc/version").read_text().lower()
    except OSError:
        return False


def _gpu_read() -> tuple[str, int]:
    """Return name and memory (bytes) of the first NVIDIA GPU, ('', 0) without one."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return "", 0
    query = ["--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        output = subprocess.run(
            [program, *query], capture_output=True, text=True, timeout=10, check=True
        ).stdout
        name, memory = output.splitlines()[0].rsplit(",", 1)
        return name.strip(), int(memory) * _MIB
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return "", 0
