"""The submit filter: a submission and what is known of the cluster in, field changes out. Pure.

A submission is what ``plugins/slurm/pliant.lua`` packs: the fields of Slurm's job descriptor under
their own names (numbers in decimal, unset ones left out), the words of the SPANK options as
``option.<name>``, and ``comment``. The answer names changed fields the same way.

::

    decide.py     all of it, in order
    words.py      what the owner said to Pliant
    fields.py     a submission's numbers and generic resources
    movable.py    which submissions keep their shape, and what their partition adds to them
    constraint.py what a constraint asks of nodes
    written.py    what the owner wrote: own shape, footprint
    spread.py     the numbers of nodes that Slurm itself may choose from
    case.py       the shapes: allowed by the owner, possible here
    choose.py     the one that fits right now, or the one to wait with
    requeue.py    whether Slurm may requeue it, for a resize or a preemption
    trials.py     whether it may be a trial job
    normal.py     a shape as fields, in the form that every release changes correctly
    remarks.py    what the owner is told
    inventory.py  what stands at a site whatever runs there
    view.py       what is known when a job is submitted
    answer.py     what is said back
    alike.py      which submissions are answered alike
"""

from pliant.filter.alike import alike_to_mib
from pliant.filter.answer import Answer
from pliant.filter.decide import filter_submission
from pliant.filter.inventory import Inventory
from pliant.filter.trials import Trials
from pliant.filter.view import FreeLike, View

__all__ = ["Answer", "FreeLike", "Inventory", "Trials", "View", "alike_to_mib", "filter_submission"]
