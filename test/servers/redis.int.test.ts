import { chmodSync, readFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import { expect, test } from 'vitest';
import { createWorkspace } from '../workspace.ts';
import { startRedisCluster } from './redis.ts';

/** A server that writes down its process, and does not start if it is the first. */
const FIRST_FAILS = `#!/bin/sh
here=$(dirname "$0")
echo $$ >> "$here/pids"
mkdir "$here/first" 2>/dev/null && exit 7
PATH=\${PATH#*:} exec redis-server "$@"
`;

test('a cluster of which one server does not start leaves none running', async () => {
  using folder = createWorkspace({ 'redis-server': FIRST_FAILS });
  chmodSync(folder.at('redis-server'), 0o755);
  const env = { ...process.env, PATH: `${folder.path}${delimiter}${process.env['PATH']}` };
  await expect(startRedisCluster({ env })).rejects.toThrow('redis-server ended with 7 before it answered');
  const pids = readFileSync(folder.at('pids'), 'utf8').trim().split('\n').map(Number);
  expect(pids).toHaveLength(3);
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});
