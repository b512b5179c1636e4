"""`import pliant` for a program under `pliant run`, in whatever Python it has (3.6 or later).

`pliant run` puts the directory in which this stands last on PYTHONPATH; it holds nothing else. This
module becomes the first other pliant that is found: one of the program's own Python, else the
installation of that `pliant run`. Of that, programs need pliant.program, which takes the standard
library alone. The directory is not made anew for each job: a job that is submitted from within
another inherits PYTHONPATH, and anybody could make what is gone.
"""

import os
import sys
from importlib.machinery import PathFinder

_up = os.path.dirname
_data = _up(_up(_up(_up(os.path.abspath(__file__)))))  # pliant/_data as installed, or a checkout
_others = [place for place in sys.path if not str(place).endswith("/wrappers/python")]
__spec__ = PathFinder.find_spec("pliant", [*_others, os.path.join(_data, "src"), _up(_up(_data))])
if __spec__ is None or not __spec__.has_location:
    raise ModuleNotFoundError("No module named 'pliant'", name="pliant")
__file__ = __spec__.origin
__path__ = __spec__.submodule_search_locations or []
__loader__ = __spec__.loader
__loader__.exec_module(sys.modules[__name__])
