"""The submit filter for PBS: what its hooks decide, purely, and what pliantd tells them.

The hooks of ``plugins/pbs`` carry these modules inside them, translated for the Python of PBS (see
:mod:`pliant.hooks`), so they use little of what is newer than 3.6 (``pliant.hooks.older`` says what
may be).

::

    decide.py     a submission in; what to refuse or set out
    change.py     a change of a job likewise
    move.py       a move to another queue: whether it may go as Pliant has set it
    said.py       what the owner said to Pliant
    select.py     select, place and sizes, as PBS writes them
    defaults.py   what PBS adds to that
    places.py     whose place a job has
    written.py    what the owner wrote: own shape, footprint; and a shape back as select
    choose.py     the shape that fits right now, or the one to wait with
    state.py      the file by which pliantd tells what fits
    names.py      resources and variables
    schedulers.py who starts jobs, and what orders them
    launched.py   what a job really has, once it runs
"""
