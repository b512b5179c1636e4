"""PBS hooks: one file each for the Python of PBS (3.6 or later), made from Pliant's own modules.

::

    plugins/pbs/NAME.py    a hook: what it does with PBS's objects
    plugins/pbs/prelude.py what Python 3.6 lacks
    reading.py             what hooks read, with care: configuration, state file, attributes
    typed.py               resources as PBS's objects take them
    bundle.py              a hook and all that it uses, as one text
    older.py               a module of Pliant in the words of Python 3.6

A hook imports Pliant like any other program; :func:`hook_text` puts in what it imports. So there is
one grammar, and the hook has it. ``python -m pliant.hooks DIRECTORY`` writes them all.
"""

from pliant.hooks.bundle import FORMER, HOOKS, hook_text

__all__ = ["FORMER", "HOOKS", "hook_text"]
