"""The tables of the store, rows of some of them, and how a store of an earlier version becomes one of this version."""

from __future__ import annotations

from dataclasses import dataclass

from eunomia.service.store.row_sums import ADDED

APPLICATION_ID = 0x45554E4F  # "EUNO" in the header of the file

BASE = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE clock (one INTEGER PRIMARY KEY CHECK (one = 1), at REAL NOT NULL, boot TEXT NOT NULL,
    monotonic REAL NOT NULL, wall REAL NOT NULL);
CREATE TABLE moments (seq INTEGER PRIMARY KEY, at REAL NOT NULL, generation INTEGER NOT NULL, lines TEXT NOT NULL,
    digest TEXT);
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, digest TEXT NOT NULL, wake REAL, content BLOB NOT NULL);
CREATE TABLE jobs (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, state TEXT NOT NULL,
    live INTEGER NOT NULL, ended REAL, job_type TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX jobs_live ON jobs (live) WHERE live = 1;
CREATE INDEX jobs_by_state ON jobs (state, number);
CREATE TABLE labels (key TEXT NOT NULL, value TEXT NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (key, value, number)) WITHOUT ROWID;
CREATE TABLE keys (tenant TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, ids TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (tenant, key)) WITHOUT ROWID;
CREATE TABLE seats (seat INTEGER NOT NULL, lane INTEGER NOT NULL, job TEXT NOT NULL, epoch INTEGER NOT NULL,
    PRIMARY KEY (seat, lane)) WITHOUT ROWID;
CREATE INDEX seats_by_job ON seats (job);
CREATE TABLE nodes (node INTEGER PRIMARY KEY, reason TEXT NOT NULL);
CREATE TABLE outbox (number INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE news (seq INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, job TEXT NOT NULL, tenant TEXT NOT NULL,
    kind TEXT NOT NULL, detail TEXT NOT NULL);
CREATE TABLE tokens (id TEXT PRIMARY KEY, hash TEXT NOT NULL, "user" TEXT NOT NULL, tenant TEXT NOT NULL,
    role TEXT NOT NULL, created REAL NOT NULL, expires REAL, revoked REAL) WITHOUT ROWID;
CREATE TABLE audit (seq INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, "user" TEXT NOT NULL, role TEXT NOT NULL,
    source TEXT NOT NULL, action TEXT NOT NULL, object TEXT NOT NULL, hash TEXT NOT NULL);
"""

USAGE_HOURS = """
CREATE TABLE IF NOT EXISTS usage_hours (hour INTEGER NOT NULL, tenant TEXT NOT NULL, "user" TEXT NOT NULL,
    type TEXT NOT NULL, accelerator_s REAL NOT NULL, starts INTEGER NOT NULL, wait_s REAL NOT NULL,
    succeeded INTEGER NOT NULL, failed INTEGER NOT NULL, cancelled INTEGER NOT NULL, refused INTEGER NOT NULL,
    failures INTEGER NOT NULL, lost_s REAL NOT NULL, energy_j REAL NOT NULL, metered_s REAL NOT NULL,
    PRIMARY KEY (hour, tenant, "user", type)) WITHOUT ROWID;
"""

# What version n + 1 adds to version n, from 1 on; each runs in the transaction that also sets the version.
MIGRATIONS = (
    "CREATE INDEX jobs_by_tenant ON jobs (tenant, number);",
    "CREATE TABLE IF NOT EXISTS forecasts (number INTEGER PRIMARY KEY, job TEXT NOT NULL, tenant TEXT NOT NULL, "
    "said TEXT NOT NULL, latest REAL);",
    "CREATE TABLE IF NOT EXISTS tenant_hours (hour INTEGER NOT NULL, tenant TEXT NOT NULL, received REAL NOT NULL, "
    "deserved REAL NOT NULL, succeeded INTEGER NOT NULL, rho_sum REAL NOT NULL, rho_max REAL NOT NULL, "
    "PRIMARY KEY (hour, tenant)) WITHOUT ROWID;",
    "ALTER TABLE tokens ADD COLUMN parent TEXT;",
    'CREATE TABLE IF NOT EXISTS lists (tenant TEXT NOT NULL, key TEXT NOT NULL, "user" TEXT NOT NULL, '
    "role TEXT NOT NULL, source TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (tenant, key));",
    "CREATE INDEX IF NOT EXISTS news_by_job ON news (job);"
    "DROP INDEX IF EXISTS jobs_by_tenant;"
    "CREATE INDEX IF NOT EXISTS jobs_by_end ON jobs (ended, number) WHERE live = 0;"
    "CREATE INDEX IF NOT EXISTS jobs_by_tenant_state ON jobs (tenant, state, number);"
    "CREATE INDEX IF NOT EXISTS labels_by_number ON labels (number);"
    "CREATE INDEX IF NOT EXISTS keys_by_time ON keys (at);"
    "CREATE TABLE IF NOT EXISTS job_counts (tenant TEXT NOT NULL, state TEXT NOT NULL, jobs INTEGER NOT NULL, "
    "PRIMARY KEY (tenant, state)) WITHOUT ROWID;"
    'CREATE TABLE IF NOT EXISTS ended_hours (hour INTEGER NOT NULL, tenant TEXT NOT NULL, "user" TEXT NOT NULL, '
    "state TEXT NOT NULL, jobs INTEGER NOT NULL, accelerator_s REAL NOT NULL, waits INTEGER NOT NULL, "
    'wait_s REAL NOT NULL, PRIMARY KEY (hour, tenant, "user", state)) WITHOUT ROWID;'
    "DELETE FROM forecasts WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.number = forecasts.number);",
    "CREATE TABLE IF NOT EXISTS audit_parts (first INTEGER NOT NULL, last INTEGER PRIMARY KEY, begun REAL NOT NULL, "
    "ended REAL NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL, removed REAL, key TEXT NOT NULL, "
    "signature TEXT NOT NULL);",
    ADDED,
    "CREATE TABLE IF NOT EXISTS notices (seq INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, "
    "target TEXT NOT NULL, address TEXT NOT NULL, event TEXT NOT NULL, job TEXT NOT NULL, body TEXT NOT NULL);",
    "CREATE TABLE IF NOT EXISTS drains (node INTEGER NOT NULL, place INTEGER NOT NULL, reason TEXT NOT NULL, "
    '"user" TEXT NOT NULL, since REAL NOT NULL, until REAL, empty REAL, maintenance INTEGER NOT NULL, row_sum TEXT, '
    "PRIMARY KEY (node, place)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS maintenance (number INTEGER PRIMARY KEY, nodes TEXT NOT NULL, begins REAL NOT NULL, "
    'ends REAL NOT NULL, reason TEXT NOT NULL, "user" TEXT NOT NULL, state TEXT NOT NULL, row_sum TEXT);',
    USAGE_HOURS,
)
VERSION = 1 + len(MIGRATIONS)
SUMMED = 7  # the version in which counts and sums of jobs are kept: those of an older store are computed once
USAGE_SUMMED = 2 + MIGRATIONS.index(USAGE_HOURS)  # the same of usage


@dataclass(frozen=True, slots=True)
class StoredClock:
    """When the last turn was committed: service time, boot of the machine, its monotonic clock, wall clock."""

    at: float
    boot: str
    monotonic: float
    wall: float


@dataclass(frozen=True, slots=True)
class Token:
    """A credential as it is stored: never the secret, only its digest. It holds while that which made it holds."""

    id: str
    hash: str
    user: str
    tenant: str
    role: str
    created: float
    expires: float | None
    revoked: float | None
    parent: str | None = None  # id of the token that made it
