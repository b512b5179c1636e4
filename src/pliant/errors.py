"""Pliant's exceptions.

::

    PliantError              one clear line for a person; the command line prints it and exits 2
    ├── BadInput             what was written is wrong: what, the value, what would be right
    │   ├── BadSpec          ... in a job's request (--moldable=..., a shape, a comment)
    │   └── BadConfig        ... in pliant.toml
    ├── Unavailable          not there now: the daemon, munge, a command, a package
    │   └── StandsBy         ... here: another host does it
    └── BatchError           the batch system refused or did not understand
        ├── Refused          ... an update, in its own words
        │   ├── NotNow       ... any update now
        │   ├── TooLate      ... the job is not any more as it was looked at
        │   └── Infeasible   ... this one, whenever it is asked
        └── BadAnswer        ... its output is not what this adapter knows
"""


class PliantError(Exception):
    """One clear line for a person."""


class BadInput(PliantError):
    """What was written is wrong; the message says what would be right."""


class BadSpec(BadInput):
    """A job's request does not follow the grammar."""


class BadConfig(BadInput):
    """pliant.toml does not say what it should."""


class Unavailable(PliantError):
    """Something that Pliant needs is not there now."""


class StandsBy(Unavailable):
    """Another host does it now, which the message names; this one waits for its turn."""


class BatchError(PliantError):
    """The batch system refused or did not understand."""


class Refused(BatchError):
    """The batch system refused an update, in its own words."""


class NotNow(Refused):
    """The batch system changes nothing of a job now, whatever is asked, and will later."""


class TooLate(Refused):
    """The job is not any more as it was looked at: nothing was done of the update.

    It has started or ended since, its owner has changed or held it: nobody's fault.
    """


class Closed(Refused):
    """The batch system would not start a job any more where it runs."""


class Infeasible(Refused):
    """The batch system would refuse the same update whenever it is asked."""


class BadAnswer(BatchError):
    """The batch system's output is not what this adapter knows."""
