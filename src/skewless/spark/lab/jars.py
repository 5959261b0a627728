"""Java packages by their coordinates, fetched with the resolver that Spark itself brings (Ivy).

`spark.jars.packages` uses the same resolver, and would do if it could leave out one dependency of
another, kept its progress off the terminal, and told a missing registry in one sentence. Ivy checks
each file against the checksum that the registry gives for it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from pyspark.find_spark_home import _find_spark_home  # the one way PySpark has to say where it is

from skewless.errors import SkewlessError
from skewless.spark.lab.java import java

LIMIT_S = 300
_NAMED = "[organisation]_[artifact]-[revision](-[classifier]).[ext]"
# The public registry of Java packages is Ivy's own default.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="public"/>
  <resolvers><ibiblio name="public" m2compatible="true"/></resolvers>
</ivysettings>
"""


@dataclass(frozen=True)
class Packages:
    """Java packages with pinned versions.

    name: of the folder that they are kept in, new with every change of the versions
    coordinates: group:artifact:version
    transitive: also fetch what they depend on
    """

    name: str
    coordinates: tuple[str, ...]
    transitive: bool = False


def fetched(packages: Packages, parent: Path | None = None) -> list[Path]:
    """The jars of the packages; fetched once, and then read from their folder.

    parent: where the folder is, or is made; the user's cache if not given
    """
    folder = (parent or user_cache()) / packages.name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as work:
            _fetch(packages, Path(work))
            _put(Path(work) / "jars", folder)
    return sorted(folder.glob("*.jar"))


def user_cache() -> Path:
    """Where jars are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).expanduser() / "skewless" / "jars"


def spark_jars() -> Path:
    """The folder of the jars that Spark itself brings."""
    return Path(_find_spark_home()) / "jars"


def _fetch(packages: Packages, work: Path) -> None:
    (work / "settings.xml").write_text(_SETTINGS)
    (work / "ivy.xml").write_text(_module(packages.coordinates, packages.transitive))
    resolver = [str(jar) for name in ("ivy-*", "commons-cli-*") for jar in spark_jars().glob(name)]
    command = [java(), "-cp", os.pathsep.join(resolver), "org.apache.ivy.Main"]
    command += ["-settings", str(work / "settings.xml"), "-ivy", str(work / "ivy.xml")]
    command += ["-cache", str(work / "cache"), "-retrieve", str(work / "jars" / _NAMED), "-warn"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        told = done.stdout + done.stderr
        complete = done.returncode == 0 and (work / "jars").is_dir()
    except subprocess.TimeoutExpired:
        complete, told = False, f"no answer within {LIMIT_S} s"
    if not complete:
        raise SkewlessError(
            f"The Java packages {', '.join(packages.coordinates)} could not be fetched "
            f"({_reason(told)}): connect this machine to the public registry once, or copy their "
            f"jars into '{spark_jars()}'."
        )


def _put(jars: Path, folder: Path) -> None:
    try:
        os.replace(jars, folder)
    except OSError:
        if not folder.is_dir():  # else another process was faster
            raise


def _reason(told: str) -> str:
    """What the resolver said, in a few words."""
    lines = [line.strip(" \t:") for line in told.splitlines()]
    missing = [line for line in lines if line.endswith(": not found")]
    hosts = "no such host" if any("UnknownHost" in x or "Host " in x for x in lines) else ""
    short = [line for line in lines if line and "://" not in line]
    return hosts or next(iter([*missing, *short[-1:]]), "no reason given")


def _module(coordinates: Sequence[str], transitive: bool) -> str:
    """A module that depends on the packages, in the resolver's own language."""
    lines = ['<ivy-module version="2.0">', '  <info organisation="skewless" module="jars"/>']
    lines += ['  <configurations><conf name="default"/></configurations>', "  <dependencies>"]
    for coordinate in coordinates:
        group, artifact, version = (quoteattr(part) for part in coordinate.split(":"))
        lines.append(
            f"    <dependency org={group} name={artifact} rev={version} "
            f'conf="default->{"default" if transitive else "master"}" '
            f'transitive="{str(transitive).lower()}"/>'
        )
    return "\n".join([*lines, "  </dependencies>", "</ivy-module>", ""])
