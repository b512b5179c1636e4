"""The tables of the history, and how an older file comes to have them."""

from __future__ import annotations

MIGRATIONS = (
    """
    CREATE TABLE intentions (
        id INTEGER PRIMARY KEY, at_s REAL NOT NULL, job TEXT NOT NULL, before TEXT NOT NULL,
        after TEXT NOT NULL, reason TEXT NOT NULL, done_s REAL, outcome TEXT);
    CREATE INDEX intentions_of_job ON intentions (job);
    CREATE TABLE decisions (
        id INTEGER PRIMARY KEY, at_s REAL NOT NULL, job TEXT NOT NULL, what TEXT NOT NULL,
        shape TEXT NOT NULL, reason TEXT NOT NULL);
    CREATE INDEX decisions_of_job ON decisions (job);
    CREATE TABLE refused (
        job TEXT NOT NULL, shape TEXT NOT NULL, times INTEGER NOT NULL, until_s REAL NOT NULL,
        PRIMARY KEY (job, shape));
    """,
    """
    CREATE TABLE handovers (
        id INTEGER PRIMARY KEY, at_s REAL NOT NULL, job TEXT NOT NULL, user TEXT NOT NULL,
        account TEXT NOT NULL, run INTEGER NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
        guest TEXT NOT NULL, reason TEXT NOT NULL, until_s REAL NOT NULL,
        saved_s REAL NOT NULL DEFAULT 0, done_s REAL, outcome TEXT);
    CREATE INDEX handovers_of_job ON handovers (job);
    CREATE TABLE runs (
        job TEXT NOT NULL, run INTEGER NOT NULL, user TEXT NOT NULL, account TEXT NOT NULL,
        shape TEXT NOT NULL, nodes TEXT NOT NULL, submit_s REAL NOT NULL, start_s REAL NOT NULL,
        at_s REAL NOT NULL, launched_s REAL NOT NULL DEFAULT 0,
        step INTEGER NOT NULL DEFAULT 0, rate REAL NOT NULL DEFAULT 0, saved_took_s REAL NOT NULL
        DEFAULT 0, code INTEGER, PRIMARY KEY (job, run));
    """,
    """
    ALTER TABLE runs ADD COLUMN name TEXT NOT NULL DEFAULT '';
    CREATE INDEX runs_of_name ON runs (user, name);
    ALTER TABLE handovers ADD COLUMN end_s REAL NOT NULL DEFAULT 0;
    """,
    """
    CREATE TABLE speeds (
        key TEXT PRIMARY KEY, weight_s REAL NOT NULL, total REAL NOT NULL, end_s REAL NOT NULL);
    """,
    """
    ALTER TABLE handovers ADD COLUMN asked TEXT NOT NULL DEFAULT '';
    """,
)
"""Each brings the file from one version (PRAGMA user_version) to the next; only ever append."""
