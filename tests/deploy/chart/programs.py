"""Install the programs that check the chart into `.helm/`: Helm, and the models of the Prometheus operator.

Needs Go 1.26 and Node.js 22. A Helm in the PATH is not used, because the rendered manifests depend on its version.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.deploy.chart.paths import ROOT

FOLDER: Final = ROOT / ".helm"
_SOURCES: Final = Path(__file__).parent / "operator"
_HELM: Final = "helm.sh/helm/v3/cmd/helm@v3.21.4"
_VERSION: Final = "helm.sh/helm/v3/pkg/chartutil.k8sVersion"
_OF_KUBERNETES: Final = f"-X {_VERSION}Major=1 -X {_VERSION}Minor=31"
"""The Kubernetes version for which Helm renders. Official builds set it in the same way. No template depends on it."""


@functools.cache
def helm() -> Path:
    """Return the path of Helm. The first call builds it, which takes several minutes."""
    if not (FOLDER / "bin" / "helm").exists():
        environment = {**os.environ, "GOBIN": str(FOLDER / "bin"), "GOFLAGS": "-buildvcs=false"}
        subprocess.run(["go", "install", "-ldflags", _OF_KUBERNETES, _HELM], check=True, env=environment)
    return FOLDER / "bin" / "helm"


@functools.cache
def field_checker() -> Path:
    """Return the program that refuses fields which the Prometheus operator's Go types do not have."""
    program = FOLDER / "bin" / "fields"
    subprocess.run(["go", "build", "-buildvcs=false", "-o", program, "."], check=True, cwd=_SOURCES)
    return program


@functools.cache
def value_checker() -> Path:
    """Return the script that refuses values which the Prometheus operator's schemas do not allow. Run it with node."""
    into = FOLDER / "node"
    into.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "values.mjs"):
        shutil.copyfile(_SOURCES / name, into / name)
    install = ["npm", "install", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"]
    subprocess.run(install, check=True, cwd=into)
    return into / "values.mjs"
