"""The layers of every protocol as contributions to Scapy.

Importing this module lets Scapy find them as it finds its own::

    >>> import bentpipe_conformance.contrib
    >>> from scapy.main import load_contrib
    >>> load_contrib("bentpipe_stp")

after which ``ls(POLL)`` and ``explore("bentpipe_stp")`` know them. A protocol has such a module if
there is a ``scapy_layer`` in its folder.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import warnings
from collections.abc import Mapping
from types import ModuleType

from bentpipe_conformance import protocols

PREFIX = "bentpipe_"
"""What the names of the contributions begin with; the name of the protocol's folder follows."""


def _install() -> Mapping[str, ModuleType]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contrib = importlib.import_module("scapy.contrib")
        conf = importlib.import_module("scapy.config").conf
    found = {}
    for folder in pkgutil.iter_modules(protocols.__path__):
        name = f"{protocols.__name__}.{folder.name}.scapy_layer"
        if importlib.util.find_spec(name) is None:
            continue
        module = importlib.import_module(name)
        short = f"{PREFIX}{folder.name}"
        found[short] = module
        # One module under two names: a second copy would bind every layer twice.
        sys.modules[f"{contrib.__name__}.{short}"] = module
        setattr(contrib, short, module)
        conf.layers.ldict[f"{contrib.__name__}.{short}"] = conf.layers.ldict[name]
    return found


LAYERS: Mapping[str, ModuleType] = _install()
"""The modules by their names in ``scapy.contrib``."""
