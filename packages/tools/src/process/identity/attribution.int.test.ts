import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { Attribution } from './attribution.ts';
import { identify } from './identity.ts';
import { Scope } from './scope.ts';
import { createHostTag, tagEnvironment, tagKey } from './tags.ts';

function watchNobody() {
  const tag = createHostTag();
  const scope = new Scope(tagKey(tag, 1), { roots: [], since: identify(process.pid)!.startTime });
  const attribution = new Attribution();
  attribution.add(scope);
  return { attribution, scope, env: tagEnvironment({}, tag, 1) };
}

async function sleep(env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const child = spawn('/bin/sleep', ['60'], { env, stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'spawn');
  return child;
}

const pids = ({ members }: Scope): readonly number[] => members.map(({ pid }) => pid);

test('a process of the scope that starts after a look makes it incomplete, and the next look finds it', async () => {
  const { attribution, scope, env } = watchNobody();
  const look = attribution.look();
  expect(pids(scope)).toEqual([]);
  const child = await sleep(env);
  expect(look.isComplete()).toBe(false);
  attribution.look();
  expect(pids(scope)).toEqual([child.pid]);
  child.kill('SIGKILL');
  await once(child, 'exit');
  attribution.refresh();
  expect(pids(scope)).toEqual([]);
});

test('what others start and end after a look leaves it complete', async () => {
  const { attribution, scope } = watchNobody();
  const look = attribution.look();
  const other = await sleep({});
  const short = spawn('/bin/true');
  await once(short, 'close');
  expect(look.isComplete()).toBe(true);
  attribution.look();
  expect(pids(scope)).not.toContain(other.pid);
});
