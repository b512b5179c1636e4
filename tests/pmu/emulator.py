"""An emulated AArch64 machine with a PMU, and our reader in it: Debian's kernel and Python under QEMU.

Debian's packages are fetched by apt into a folder of its own (nothing of this machine's packages
changes), unpacked and booted from an initramfs. With `-icount shift=0` QEMU counts each instruction it
executes, and its PMU then offers that number to the guest; without, it offers cycles alone. One
instruction is one cycle of one ns there: this shows what is counted and for whom, not how fast it is.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import experiments

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
# What the first process needs of Debian's Python, to keep the machine's boot short.
PACKAGES = ("collections", "ctypes", "encodings", "importlib", "json", "re", "urllib")
BOOT_S = 500  # a busy machine's; a quiet one takes a tenth


def fetch(folder: Path) -> Path:
    """Fetch Debian's packages for arm64 unless they are there; return the folder they are in."""
    debs = folder / "debs"
    if (debs / ".done").exists():
        return debs
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("lists/partial", "cache/archives/partial", "debs"):
        (folder / part).mkdir(parents=True)
    _apt("apt-get", folder, "update")
    kernel = _depends(folder, "linux-image-cloud-arm64", r"linux-image-\S+")
    python = _depends(folder, "python3-minimal", r"python3\.\d+-minimal")
    libraries = (f"lib{python}", f"lib{python.removesuffix('-minimal')}-stdlib")
    others = ("libc6", "zlib1g", "libexpat1", "libffi8")
    _apt("apt-get", folder, "download", kernel, python, *libraries, *others)
    (debs / ".done").touch()
    return debs


def build(debs: Path, folder: Path, count: int) -> tuple[Path, Path]:
    """Return a kernel and an initramfs whose first process counts loops of so many instructions."""
    shutil.rmtree(folder, ignore_errors=True)
    unpacked, root = folder / "unpacked", folder / "root"
    unpacked.mkdir(parents=True)
    for deb in debs.glob("*.deb"):
        _run("dpkg-deb", "--extract", str(deb), str(unpacked))
    (kernel,) = (unpacked / "boot").glob("vmlinuz-*")
    (python,) = (path for path in (unpacked / "usr/bin").glob("python3.*") if path.is_file())
    _copy_python(unpacked, root, python.name)
    shutil.copytree(unpacked / "lib", root / "lib", ignore=shutil.ignore_patterns("modules"))
    shutil.copytree(unpacked / "usr/lib/aarch64-linux-gnu", root / "usr/lib/aarch64-linux-gnu")
    compile_loop(root / "loop", "aarch64-linux-gnu-gcc")
    ours = root / "ours"
    shutil.copytree(SOURCE / "pliant/monitor", ours / "pliant/monitor")
    for name in ("__init__.py", "program.py", "errors.py"):
        shutil.copy(SOURCE / "pliant" / name, ours / "pliant")
    for name in ("experiments.py", "guest.py"):
        shutil.copy(HERE / name, ours)
    _run(
        sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(root)
    )
    init = root / "init"
    # The kernel passes a script's first line as one word after the program.
    init.write_text(
        f"#!/usr/bin/{python.name} -ES\nimport sys; sys.argv = ['guest', '{count}']\n"
        "sys.path.insert(0, '/ours')\nimport guest\n"
    )
    init.chmod(0o755)
    image = folder / "initramfs"
    image.write_bytes(archive(root))
    return kernel, image


def boot(kernel: Path, image: Path, *options: str) -> tuple[list[dict[str, Any]], str]:
    """Boot the machine with QEMU's options; return its experiments and all that it printed."""
    argv = ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a57", "-m", "512", *options]
    argv += ["-nographic", "-nic", "none", "-no-reboot", "-kernel", str(kernel)]
    argv += ["-initrd", str(image), "-append", "console=ttyAMA0 quiet panic=-1"]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BOOT_S, check=False
    )
    return told(done.stdout), done.stdout + done.stderr


def told(text: str) -> list[dict[str, Any]]:
    """Return the experiments of what was printed."""
    return [json.loads(found) for found in re.findall(rf"{experiments.MARK}({{.*}})", text)]


def compile_loop(program: Path, compiler: str) -> None:
    """Compile the program whose instructions are known, for a machine without libraries."""
    _run(
        compiler,
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-static",
        "-pthread",
        "-o",
        str(program),
        str(HERE / "loop.c"),
    )


def archive(root: Path) -> bytes:
    """Return a folder as an initramfs (cpio's "newc"), with a console for its first process."""
    parts = [
        _member("dev", stat.S_IFDIR | 0o755),
        _member("dev/console", stat.S_IFCHR | 0o600, minor=1),
    ]
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        data = b""
        if path.is_symlink():
            data = bytes(path.readlink())
        elif path.is_file():
            data = path.read_bytes()
        parts.append(_member(str(path.relative_to(root)), mode, data))
    return b"".join([*parts, _member("TRAILER!!!", 0)])


def _member(name: str, mode: int, data: bytes = b"", minor: int = 0) -> bytes:
    """Return one member; a device's major number is 5, the console's."""
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 5 * bool(minor), minor, len(name) + 1, 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def _copy_python(unpacked: Path, root: Path, name: str) -> None:
    """Copy Debian's interpreter and the modules at the top of its library, and few packages."""
    library = unpacked / "usr/lib" / name
    target = root / "usr/lib" / name
    shutil.copytree(library / "lib-dynload", target / "lib-dynload")
    for package in PACKAGES:
        shutil.copytree(library / package, target / package)
    for module in library.glob("*.py"):
        shutil.copy(module, target)
    (root / "usr/bin").mkdir(parents=True)
    shutil.copy(unpacked / "usr/bin" / name, root / "usr/bin")


def _depends(folder: Path, package: str, pattern: str) -> str:
    text = _apt("apt-cache", folder, "depends", package)
    found = re.search(rf"Depends: ({pattern})$", text, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{package} depends on no {pattern}:\n{text}")
    return found[1]


def _apt(program: str, folder: Path, *words: str) -> str:
    """Run apt for arm64 with all its files in `folder`, but for this machine's sources."""
    options = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "root",
        "Dir::State::Lists": f"{folder}/lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": f"{folder}/cache",
    }
    given = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    return _run(program, "-q", *given, *words, cwd=folder / "debs")


def _run(*argv: str, cwd: Path | None = None) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout
