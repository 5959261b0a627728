"""Where machine code is kept, that it travels, and that nothing fails where there is no room."""

import ast
import fcntl
import os
import pickle
import shutil
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from pyspark import cloudpickle

import skewless
from skewless.compiled import compiled, inlined
from skewless.compiled.beside import compiling_beside
from skewless.compiled.cache import ROOMS
from skewless.compiled.outside import from_outside
from skewless.compiled.shipping import Shipment
from skewless.compiled.store import Store
from skewless.schemes import scheme_of

PACKAGE = Path(skewless.__file__).parent
ROUTE = (
    "import numpy as np, skewless; from skewless.compiled.store import STORE; "
    "print(skewless.route(np.arange(9, dtype=np.uint64), 'partial', 3).tolist(), STORE.folder)"
)
DECORATORS = {"compiled", "inlined", "allocating"}
# Root may write anywhere, but for one without this capability.
LESS_THAN_ROOT = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
AS_ORDINARY_USER = LESS_THAN_ROOT if os.getuid() == 0 else ()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package and no machine code in it."""
    folder = tmp_path_factory.mktemp("installed")
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / "skewless", ignore=without)
    return folder


def python(code, installed, before=(), **environment):
    """What a new process prints, with only these variables set, and a home of its own."""
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": f"{installed}/home",  # else a cache of whoever runs the tests would be found
        "PYTHONPATH": str(installed),
        "PYTHONDONTWRITEBYTECODE": "1",
        **environment,
    }
    ran = subprocess.run(
        [*before, sys.executable, "-c", code],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def is_routed(printed):
    return printed.startswith(
        str(skewless.route(np.arange(9, dtype=np.uint64), "partial", 3).tolist())
    )


def test_every_compiled_function_lies_in_a_room_whose_sources_are_digested():
    outside = []
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                names = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
                if names & DECORATORS and room not in ROOMS:
                    outside.append((room, node.name))
    assert not outside
    assert all((PACKAGE / room).exists() for room in ROOMS)


def test_nothing_is_compiled_but_through_the_three_decorators():
    users = [p for p in PACKAGE.rglob("*.py") if "njit" in p.read_text()]
    assert [p.relative_to(PACKAGE).as_posix() for p in users] == ["compiled/build.py"]


def test_the_digest_follows_the_sources(installed):
    printed = "from skewless.compiled.cache import digest_of_sources; print(digest_of_sources())"
    before = python(printed, installed)
    assert before == python(printed, installed)
    kernels = installed / "skewless" / "schemes" / "partial.py"
    source = kernels.read_text()
    kernels.write_text(source + "# changed\n")
    try:
        assert python(printed, installed) != before
    finally:
        kernels.write_text(source)


def test_machine_code_is_kept_where_the_user_says(installed, tmp_path):
    printed = python(ROUTE, installed, NUMBA_CACHE_DIR=str(tmp_path))
    assert printed.endswith(str(tmp_path / "skewless"))
    kept = list((tmp_path / "skewless").iterdir())
    assert kept
    assert not [path for path in kept if path.suffix == ".lock"]


def test_machine_code_is_made_only_of_what_python_calls(installed, tmp_path):
    python(ROUTE, installed, NUMBA_CACHE_DIR=str(tmp_path))
    kept = [path.name.rpartition("-")[0] for path in (tmp_path / "skewless").iterdir()]
    assert kept == ["route_PartialKeyGrouping"]


def test_to_run_what_was_kept_loads_nothing_that_only_compiling_takes(installed, tmp_path):
    folder = {"NUMBA_CACHE_DIR": str(tmp_path)}
    python(ROUTE, installed, **folder)
    again = python(
        f"{ROUTE}; import sys; print('numba.np.arraymath' in sys.modules)", installed, **folder
    )
    assert is_routed(again)
    assert again.endswith("False")


def test_compiling_works_after_kept_machine_code_was_loaded(installed, tmp_path):
    folder = {"NUMBA_CACHE_DIR": str(tmp_path)}
    python(ROUTE, installed, **folder)
    more = "; print(skewless.route(['a', 'b'], 'd-choices', 3).tolist())"
    printed = python(ROUTE + more, installed, **folder).splitlines()
    assert is_routed(printed[0])
    assert printed[1] == str(skewless.route(["a", "b"], "d-choices", 3).tolist())


@inlined
def half(x):
    return 1 / x


@compiled
def twice_half(x):
    return half(x) + half(x)


def test_a_kernel_may_be_called_by_python_and_by_other_kernels():
    assert (half(4.0), twice_half(4.0)) == (0.25, 0.5)


def test_an_error_within_a_kernel_reaches_python():
    with pytest.raises(ZeroDivisionError):
        twice_half(0.0)


def test_a_kernel_travels_by_its_name():
    assert pickle.loads(pickle.dumps(half)) is half


def test_a_kernel_without_a_name_travels_by_what_it_is():
    sent = cloudpickle.dumps(compiled(lambda x: half(x) + 1))
    assert cloudpickle.loads(sent)(4.0) == 1.25


def _defined(code):
    space = {"__name__": "elsewhere", "inlined": inlined, "compiled": compiled}
    exec(code, space)
    return from_outside(space["f"].py_func)


def test_functions_from_outside_the_package_are_told_apart_by_what_they_do():
    one = "one = 1\n@inlined\ndef g(x): return x + one\n@compiled\ndef f(x): return g(x)"
    assert _defined(one) == _defined(one)
    others = [one.replace("one = 1", "one = 2"), one.replace("x + one", "x - one")]
    assert all(_defined(other) != _defined(one) for other in others)


def test_the_packages_own_functions_are_told_apart_by_its_sources():
    assert from_outside(scheme_of("consistent").route.py_func) == []


def test_damaged_machine_code_is_compiled_again(installed, tmp_path):
    python(ROUTE, installed, NUMBA_CACHE_DIR=str(tmp_path))
    for path in (tmp_path / "skewless").iterdir():
        path.write_bytes(path.read_bytes()[:-7] + b"garbage")
    assert is_routed(python(ROUTE, installed, NUMBA_CACHE_DIR=str(tmp_path)))


def test_a_zip_on_the_path_runs_without_a_home_or_a_folder_to_write_to(installed, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "skewless"), "zip", installed)
    nowhere = {"HOME": "/nonexistent", "NUMBA_CACHE_DIR": "/proc/nowhere", "TMPDIR": "/proc"}
    assert is_routed(python(ROUTE, archive, **nowhere))


def test_a_read_only_installation_and_no_home(installed, tmp_path):
    folders = [path for path in [installed, *installed.rglob("*")] if path.is_dir()]
    try:
        for folder in folders:
            folder.chmod(0o555)
        nowhere = {"HOME": "/proc/nowhere", "TMPDIR": str(tmp_path)}
        printed = python(ROUTE, installed, before=AS_ORDINARY_USER, **nowhere)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert is_routed(printed)
    assert printed.endswith(f"{tmp_path}/skewless-{os.getuid()}")


def test_a_folder_that_others_can_write_to_is_left_alone(tmp_path, monkeypatch):
    folder = tmp_path / "skewless"
    folder.mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    Store().put("entry", b"code")
    assert (folder / "entry").is_file()
    assert Store().get("entry") == b"code"
    folder.chmod(folder.stat().st_mode | stat.S_IWOTH)
    assert Store().folder != folder
    assert Store().get("entry") is None


def test_where_files_cannot_be_locked_nobody_waits(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(fcntl, "flock", lambda *given: (_ for _ in ()).throw(OSError(38, "none")))
    start_s = time.monotonic()
    assert Store().await_or_claim("kernel") is None
    assert time.monotonic() - start_s < 5


def test_a_full_disk_is_one_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    store = Store()
    assert store.folder == tmp_path / "skewless"

    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        store.put("one", b"1")
    store.put("two", b"2")
    assert not list((tmp_path / "skewless").iterdir())


def test_machine_code_travels_and_nothing_is_compiled_where_it_arrives(installed, tmp_path):
    scheme = scheme_of("partial")
    plan = scheme.plan(3, 0)
    sent = pickle.dumps(Shipment((scheme, plan), lambda: scheme.warm_up(plan)))
    (tmp_path / "job").write_bytes(sent)
    code = (
        "import pickle, numpy as np; "
        f"scheme, plan = pickle.load(open({str(tmp_path / 'job')!r}, 'rb')).value; "
        "from skewless.compiled.store import STORE; "
        "scheme.warm_up(plan); print(list(STORE.folder.iterdir()))"
    )
    assert python(code, installed, NUMBA_CACHE_DIR=str(tmp_path / "empty")) == "[]"


def test_of_processes_that_start_at_once_one_compiles(installed, tmp_path):
    code = (
        "from skewless.compiled.store import Store\n"
        "put, kept = Store.put, []\n"
        "Store.put = lambda self, name, data: (kept.append(name), put(self, name, data))\n"
        "from skewless.schemes import scheme_of\n"
        "s = scheme_of('key'); s.warm_up(s.plan(3, 0)); print(len(kept))"
    )
    folder = str(tmp_path)
    with ThreadPoolExecutor(3) as threads:
        ran = [threads.submit(python, code, installed, NUMBA_CACHE_DIR=folder) for _ in range(3)]
    compiled = [int(process.result()) for process in ran]
    assert sum(compiled) == len(list((tmp_path / "skewless").iterdir()))


def test_a_numba_newer_than_known_compiles_in_its_own_way_to_the_same_routes(installed, tmp_path):
    folder = {"NUMBA_CACHE_DIR": str(tmp_path)}
    newer = f"from skewless.compiled import build; build.NEWEST_NUMBA = (0, 60); {ROUTE}"
    assert is_routed(python(newer, installed, **folder))


BESIDE = """
import os, sys, time
from skewless.compiled.beside import compiling_beside
from skewless.compiled.store import STORE
from skewless.schemes import scheme_of

def warm_up():
    print("warming up", file=sys.stderr)
    partial = scheme_of("partial")
    partial.warm_up(partial.plan(3, 0))
    raise SystemExit("of the other process")

def kept():
    return [path.name for path in STORE.folder.glob("route*") if path.suffix != ".lock"]

with compiling_beside(warm_up):
    until = time.monotonic() + 60
    while not kept() and time.monotonic() < until:
        time.sleep(0.01)
    print("kept by the other:", kept())
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("nobody is left")
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="on one core nothing is beside")
def test_a_process_beside_compiles_quietly_and_ends_with_the_block(installed, tmp_path):
    printed = python(BESIDE, installed, NUMBA_CACHE_DIR=str(tmp_path))
    assert printed.startswith("kept by the other: ['route_"), printed
    assert printed.strip().endswith("nobody is left")


def test_nothing_is_compiled_beside_where_other_threads_run(monkeypatch):
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a copy would lack the other threads"))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        with compiling_beside(lambda: None):
            pass
