"""The submit filter: a submission and what is known of the cluster in, field changes out. Pure.

A submission is what ``plugins/slurm/pliant.lua`` packs: the fields of Slurm's job descriptor under
their own names (numbers in decimal, unset ones left out), the words of the SPANK options as
``option.<name>``, and ``comment``. The answer names changed fields the same way.

::

    answer.py     what is said back
    view.py       what is known of the cluster
    written.py    what the owner wrote: own shape, footprint, or why its shape must stay
    normal.py     a shape as fields, in the form that every release changes correctly
    decide.py     which shape, in which mode, with which words
"""

from pliant.filter.answer import Answer
from pliant.filter.decide import filter_submission
from pliant.filter.view import FreeLike, View

__all__ = ["Answer", "FreeLike", "View", "filter_submission"]
