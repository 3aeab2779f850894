/** Files from before the first release have only a `user_version`; ours also have an `application_id`. */
export const APPLICATION_ID = 0x77686f61;

/**
 * The record is authoritative; the other columns are for lookups, each through an index. `stage` and its related
 * columns change often, so partial indexes keep ended tasks out.
 */
export const SCHEMA = `
CREATE TABLE IF NOT EXISTS tasks (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, conversation TEXT, status TEXT NOT NULL, createdAt REAL NOT NULL, endedAt REAL,
  stage TEXT, readyQueue TEXT, priority INTEGER, stageAt REAL, session TEXT, hasPendingOrders INTEGER, agent TEXT, deadline REAL, record TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tasks_by_tenant ON tasks (tenant, createdAt, id);
CREATE INDEX IF NOT EXISTS tasks_by_status ON tasks (tenant, status, createdAt, id);
CREATE INDEX IF NOT EXISTS tasks_by_conversation ON tasks (tenant, conversation, createdAt, id) WHERE conversation IS NOT NULL;
CREATE INDEX IF NOT EXISTS tasks_ended ON tasks (endedAt) WHERE endedAt IS NOT NULL;
CREATE INDEX IF NOT EXISTS tasks_ready ON tasks (tenant, readyQueue, priority DESC, stageAt, id) WHERE stage = 'ready';
CREATE INDEX IF NOT EXISTS tasks_delayed ON tasks (stageAt) WHERE stage = 'delayed';
CREATE INDEX IF NOT EXISTS tasks_overdue ON tasks (deadline, id) WHERE status = 'init' AND deadline IS NOT NULL;
CREATE INDEX IF NOT EXISTS tasks_held ON tasks (session, hasPendingOrders) WHERE stage = 'held';
CREATE INDEX IF NOT EXISTS held_tasks_by_tenant ON tasks (tenant) WHERE stage = 'held';
CREATE INDEX IF NOT EXISTS tasks_parked ON tasks (deadline, id) WHERE stage = 'parked' AND deadline IS NOT NULL;
CREATE INDEX IF NOT EXISTS held_tasks_by_agent ON tasks (agent) WHERE stage = 'held';
CREATE TABLE IF NOT EXISTS ready_queues (
  agent TEXT NOT NULL, tenant TEXT NOT NULL, tick INTEGER NOT NULL, PRIMARY KEY (agent, tenant)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ready_queues_by_tick ON ready_queues (agent, tick);
CREATE TABLE IF NOT EXISTS worker_sessions (id TEXT PRIMARY KEY, expiresAt REAL, lastHeldAt REAL NOT NULL, record TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS worker_sessions_by_expiry ON worker_sessions (expiresAt) WHERE expiresAt IS NOT NULL;
CREATE TABLE IF NOT EXISTS waiters (worker TEXT NOT NULL, agent TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (agent, at, worker)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS waiters_by_worker ON waiters (worker);
CREATE TABLE IF NOT EXISTS paused (target TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS store_state (id INTEGER PRIMARY KEY CHECK (id = 0), tick INTEGER NOT NULL, state TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS inputs (
  owner TEXT NOT NULL, position INTEGER NOT NULL, input TEXT NOT NULL, PRIMARY KEY (owner, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS journal (
  id TEXT NOT NULL, position INTEGER NOT NULL, epoch INTEGER NOT NULL, at REAL NOT NULL, event TEXT NOT NULL,
  claimHash TEXT NOT NULL, said INTEGER NOT NULL, PRIMARY KEY (id, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS questions (
  task TEXT NOT NULL, id TEXT NOT NULL, tenant TEXT NOT NULL, state TEXT NOT NULL, askedAt REAL NOT NULL, expiresAt REAL, record TEXT NOT NULL,
  PRIMARY KEY (task, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS questions_open ON questions (tenant, askedAt, id) WHERE state = 'open';
CREATE INDEX IF NOT EXISTS questions_by_expiry ON questions (expiresAt, task) WHERE state = 'open' AND expiresAt IS NOT NULL;
CREATE TABLE IF NOT EXISTS command_nonces (
  id TEXT NOT NULL, nonce TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (id, nonce)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS conversations (
  tenant TEXT NOT NULL, conversation TEXT NOT NULL, idleSince REAL, record TEXT NOT NULL,
  PRIMARY KEY (tenant, conversation)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS history (
  tenant TEXT NOT NULL, conversation TEXT NOT NULL, position INTEGER NOT NULL, message TEXT NOT NULL,
  PRIMARY KEY (tenant, conversation, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS conversations_idle ON conversations (idleSince) WHERE idleSince IS NOT NULL;
CREATE TABLE IF NOT EXISTS inboxes (inbox TEXT PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS inboxes_by_expiry ON inboxes (until);
CREATE TABLE IF NOT EXISTS interests (name TEXT NOT NULL, inbox TEXT NOT NULL, PRIMARY KEY (name, inbox)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS interests_by_inbox ON interests (inbox);
CREATE TABLE IF NOT EXISTS sessions (
  id TEXT PRIMARY KEY, cwd TEXT NOT NULL, updatedAt REAL NOT NULL, head TEXT NOT NULL, messages TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS sessions_by_update ON sessions (updatedAt, id);
CREATE INDEX IF NOT EXISTS sessions_by_cwd ON sessions (cwd, updatedAt, id)
`;
