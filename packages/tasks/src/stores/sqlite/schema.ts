/** Raise it when the tables change. */
export const SCHEMA_VERSION = 4;

/** The record is the truth; the columns beside it are there to be found by, each through an index. */
export const SCHEMA = `
CREATE TABLE IF NOT EXISTS tasks (
  id TEXT PRIMARY KEY, shard INTEGER NOT NULL, tenant TEXT NOT NULL, conversation TEXT, status TEXT NOT NULL,
  createdAt REAL NOT NULL, dueAt REAL, endedAt REAL, record TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tasks_of_tenant ON tasks (tenant, createdAt, id);
CREATE INDEX IF NOT EXISTS tasks_by_status ON tasks (tenant, status, createdAt, id);
CREATE INDEX IF NOT EXISTS tasks_of_conversation ON tasks (tenant, conversation, createdAt, id) WHERE conversation IS NOT NULL;
CREATE INDEX IF NOT EXISTS tasks_due ON tasks (dueAt) WHERE dueAt IS NOT NULL;
CREATE INDEX IF NOT EXISTS tasks_due_in_shard ON tasks (shard, dueAt) WHERE dueAt IS NOT NULL;
CREATE INDEX IF NOT EXISTS tasks_ended ON tasks (endedAt) WHERE endedAt IS NOT NULL;
CREATE TABLE IF NOT EXISTS journal (
  id TEXT NOT NULL, position INTEGER NOT NULL, epoch INTEGER NOT NULL, at REAL NOT NULL, event TEXT NOT NULL,
  PRIMARY KEY (id, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sent (
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
CREATE TABLE IF NOT EXISTS changes (number INTEGER PRIMARY KEY, hint TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (
  id TEXT PRIMARY KEY, cwd TEXT NOT NULL, updatedAt REAL NOT NULL, head TEXT NOT NULL, messages TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS sessions_latest ON sessions (updatedAt, id);
CREATE INDEX IF NOT EXISTS sessions_of_folder ON sessions (cwd, updatedAt, id)
`;

/** What a file of an older version needs besides: histories used to stand in the records of their conversations. */
export const UPGRADE = `
INSERT OR IGNORE INTO history (tenant, conversation, position, message)
SELECT c.tenant, c.conversation, said.key + 1, c.record -> said.fullkey
FROM conversations c, json_each(c.record, '$.history') said;
UPDATE conversations SET record = json_remove(record, '$.history') WHERE json_type(record, '$.history') IS NOT NULL
`;
