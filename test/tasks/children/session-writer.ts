// Saves its own sessions and a shared one, and reports which it has saved.
import { createSqliteSessions } from '@whoa/tasks/internal';
import type { StoredSession } from '../../../packages/tasks/src/ledger/sqlite-sessions.ts';

const [file = '', name = '', count = '0'] = process.argv.slice(2);
await using sessions = createSqliteSessions<StoredSession>({ file });
const messages = Array.from({ length: 20 }, (_, i) => ({ role: 'user', content: `${name} ${i} ${'x'.repeat(1_000)}` }));
for (let i = 0; i < Number(count); i++) {
  await sessions.save({ id: `${name}-${i}`, cwd: '/', updatedAt: i, messages });
  await sessions.save({ id: 'shared', cwd: '/', updatedAt: i, messages });
  await new Promise((resolve) => process.send!(`${name}-${i}`, resolve));
}
process.disconnect();
