"""Why a job waits, from its state and PBS's comment, in the words that the table of gates knows.

=============================================  =======================================
PBS                                            reason
=============================================  =======================================
state W; H with depend; H                      BeginTime; Dependency; JobHeldUser
Not Running: Insufficient amount of resource   Resources
… Not enough …; No available resources …
… Placement set … has too few free resources
… PBS Error: pliant: … (kept for a moment)
… conflict with reservation or top job         Priority
Can Never Run                                  BadConstraints, where it carries a shape of ours
… limit … resource …                           AssocGrpGRES
nothing yet, or what it said of an earlier run None
everything else                                the comment itself
=============================================  =======================================

The comments are the scheduler's (src/scheduler/constant.h and job_info.cpp of OpenPBS 23.06).
"""

from __future__ import annotations

from pliant.batch import HELD_FOR_SHAPE
from pliant.batch.pbs.job_rows import JobRow

LONGEST = 200
_RESOURCES = (
    "not running: insufficient amount of resource",
    "not running: not enough",
    "not running: no available resources on nodes",
    "not running: nodes",
    "not running: host",
    "not running: pbs error: pliant: ",
)
_SET, _SET_IS_FULL = "not running: placement set ", " has too few free resources"
_EARLIER = ("job run at", "job array began", "job was")


def reason(row: JobRow) -> str:
    """Return why a waiting job waits."""
    if row.state == "W":
        return "BeginTime"
    if row.state == "H":
        return "Dependency" if row.depend and row.holds in ("", "s") else "JobHeldUser"
    words = row.comment.lower()
    here = "server" not in words and "queue" not in words  # else another shape may not fit either
    checks = (
        (not words or words.startswith(_EARLIER), "None"),
        (words.startswith("can never run"), HELD_FOR_SHAPE),
        (words.startswith(_SET) and _SET_IS_FULL in words, "Resources"),  # its name is the site's
        ("limit" in words and "resource" in words, "AssocGrpGRES"),
        ("conflict with" in words or "starving" in words, "Priority"),
        (words.startswith(_RESOURCES) and here and "limit" not in words, "Resources"),
    )
    return next((said for holds, said in checks if holds), row.comment[:LONGEST])


def blocked(row: JobRow) -> str:
    """Return PBS's words where a job of another shape may start: a limit, or no node ever."""
    return row.comment[:LONGEST] if reason(row) in (HELD_FOR_SHAPE, "AssocGrpGRES") else ""
