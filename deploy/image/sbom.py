"""The software bill of materials of an image, as CycloneDX JSON: `python -m deploy.image.sbom`.

It lists what is installed where it runs: Python packages, the jars of Spark and of its connector to object stores, and
Debian's packages.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import distributions, version
from typing import Any
from urllib.parse import quote

from deploy.jars import OBJECT_STORE, locked_jars

Component = Mapping[str, Any]
PACKAGE = "galatea-platform"


def bill_of_materials() -> Mapping[str, Any]:
    """Return the document (CycloneDX 1.6)."""
    own = {"type": "application", "bom-ref": "galatea", "name": PACKAGE, "version": version(PACKAGE)}
    components = [*python_packages(), *jars(), *debian_packages()]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": sorted({each["purl"]: each for each in components}.values(), key=lambda each: each["purl"]),
    }


def python_packages() -> Iterator[Component]:
    """Yield the packages of this Python environment."""
    for each in distributions():
        name = each.metadata["Name"]
        if name != PACKAGE:
            yield _library(name, each.version, f"pkg:pypi/{name.lower().replace('_', '-')}@{quote(each.version)}")


def jars() -> Iterator[Component]:
    """Yield the jars of Spark and of its connector to object stores, with their hashes."""
    for jar in (*locked_jars("spark"), *locked_jars(OBJECT_STORE)):
        purl = f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}"
        purl += f"?classifier={jar.classifier}" if jar.classifier else ""
        hashes = [{"alg": "SHA-256", "content": jar.sha256}]
        yield {**_library(jar.artifact, jar.version, purl), "group": jar.group, "hashes": hashes}


def debian_packages() -> Iterator[Component]:
    """Yield Debian's packages; none on other systems."""
    if (dpkg := shutil.which("dpkg-query")) is None:
        return
    asked: Sequence[str] = (dpkg, "--show", "--showformat=${Package}\t${Version}\t${Architecture}\n")
    listed = subprocess.run(asked, capture_output=True, text=True, check=True)  # noqa: S603 - a fixed command
    for line in listed.stdout.splitlines():
        name, number, architecture = line.split("\t")
        yield _library(name, number, f"pkg:deb/debian/{quote(name)}@{quote(number)}?arch={architecture}")


def _library(name: str, number: str, purl: str) -> Component:
    return {"type": "library", "bom-ref": purl, "name": name, "version": number, "purl": purl}


if __name__ == "__main__":
    json.dump(bill_of_materials(), sys.stdout, indent=1)
