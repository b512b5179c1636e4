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
    """
    CREATE TABLE jobs (
        job TEXT PRIMARY KEY, user TEXT NOT NULL, account TEXT NOT NULL, partition TEXT NOT NULL,
        mode TEXT NOT NULL, request TEXT NOT NULL, own TEXT NOT NULL, filtered TEXT NOT NULL,
        answered INTEGER NOT NULL, seen_s REAL NOT NULL, submit_s REAL NOT NULL,
        state TEXT NOT NULL, tasks INTEGER NOT NULL, array INTEGER NOT NULL,
        shape TEXT NOT NULL, molded TEXT NOT NULL,
        would TEXT NOT NULL, would_s REAL NOT NULL, expected_s REAL NOT NULL,
        start_s REAL NOT NULL, run INTEGER NOT NULL, run_s REAL NOT NULL, gpus REAL NOT NULL,
        own_gpus REAL NOT NULL, gpu_s REAL NOT NULL, own_gpu_s REAL NOT NULL,
        end_s REAL NOT NULL, exit TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX jobs_of_end ON jobs (end_s);
    CREATE INDEX jobs_of_user ON jobs (user);
    ALTER TABLE runs ADD COLUMN end_s REAL NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN gpus REAL NOT NULL DEFAULT 0;
    CREATE TABLE hours (
        hour_s REAL NOT NULL, partition TEXT NOT NULL, answered INTEGER NOT NULL,
        unanswered INTEGER NOT NULL, refused INTEGER NOT NULL, starts INTEGER NOT NULL,
        molded INTEGER NOT NULL, updates INTEGER NOT NULL, failures INTEGER NOT NULL,
        flagged_gpu_s REAL NOT NULL, other_gpu_s REAL NOT NULL, idle_gpu_s REAL NOT NULL,
        avoidable_gpu_s REAL NOT NULL, down_gpu_s REAL NOT NULL,
        PRIMARY KEY (hour_s, partition)) WITHOUT ROWID;
    """,
    """
    ALTER TABLE handovers ADD COLUMN made INTEGER NOT NULL DEFAULT 0;
    """,
    """
    ALTER TABLE handovers ADD COLUMN guest_asks TEXT NOT NULL DEFAULT '';
    """,
)
"""Each brings the file from one version (PRAGMA user_version) to the next; only ever append."""
