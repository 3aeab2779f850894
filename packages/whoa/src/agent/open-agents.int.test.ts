import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { createMemoryStore, createRunner } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { openAgents } from './open-agents.ts';

const write = [{ call: 'write', input: { path: 'a', content: 'new' } }];

/** An agent that writes a file and then calls `after`. */
async function openWriter(after: Parameters<typeof createScriptedModel>[0]) {
  const home = mkdtempSync(join(tmpdir(), 'whoa-forget-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const cwd = join(home, 'work');
  mkdirSync(cwd);
  writeFileSync(join(cwd, 'a'), 'old');
  const open = await openAgents({
    config: {
      approvals: [{ decision: 'ask', tool: 'bash' }],
      agents: {
        writer: ({ tools, approve }) =>
          createAgent({ name: 'writer', model: createScriptedModel([write, ...after]), tools, approve }),
      },
    },
    values: { sandbox: 'none', yes: true },
    surroundings: { env: { XDG_STATE_HOME: home, PATH: process.env['PATH'] }, cwd: () => cwd },
  });
  onTestFinished(() => open[Symbol.asyncDispose]());
  const undoFolder = join(home, 'whoa/undo');
  const kept = (): readonly string[] => (existsSync(undoFolder) ? readdirSync(undoFolder) : []);
  return { ...open, kept, content: () => readFileSync(join(cwd, 'a'), 'utf8') };
}

const TASK = { tenant: 'acme', agent: 'writer', input: 'go' };

test('the old contents of a task go when its worker has ended it', async () => {
  const { agents, approvals, hooks, kept, content } = await openWriter([['done']]);
  const store = createMemoryStore();
  await using runner = createRunner({ store, agents, approvals, hooks });
  const { response } = await runner.start(TASK);
  expect(await response).toMatchObject({ status: 'success' });
  expect(content()).toBe('new');
  await expect.poll(kept).toEqual([]);
});

test('the old contents of a task that another worker continues stay, and its undo uses them', async () => {
  const { agents, approvals, hooks, kept, content } = await openWriter([['wait ', { waitMs: 600_000 }]]);
  const store = createMemoryStore();
  const first = createRunner({ store, agents, approvals, hooks });
  const { id, response } = await first.start(TASK);
  await expect.poll(async () => JSON.stringify(await store.read({ tenant: 'acme', id }))).toContain('"call-end"');
  await first.stop('now');
  await response.catch(() => {});
  expect(kept()).toHaveLength(1);
  await store.cancel({ tenant: 'acme', id }, { kind: 'user' }, { undo: true });
  await using second = createRunner({ store, agents, approvals, hooks });
  await second.runExisting({ tenant: 'acme', id });
  expect(content()).toBe('old');
  await expect.poll(kept).toEqual([]);
});

test('the old contents of a task that waits for an answer stay, and its undo uses them', async () => {
  const { agents, approvals, hooks, kept, content } = await openWriter([
    [{ call: 'bash', input: { command: 'make' } }],
    ['done'],
  ]);
  const store = createMemoryStore();
  await using runner = createRunner({ store, agents, approvals, hooks });
  // Without a free slot, it does not wait in its worker.
  await runner.serve({ concurrency: 1 });
  const { task } = (await store.create(TASK)) as { task: { id: string } };
  const ref = { tenant: 'acme', id: task.id };
  await expect.poll(async () => (await store.get(ref))?.stage).toBe('parked');
  expect(content()).toBe('new');
  expect(kept()).toHaveLength(1);
  await store.cancel(ref, { kind: 'user' }, { undo: true });
  await expect.poll(async () => (await store.get(ref))?.status).toBe('cancelled');
  expect(content()).toBe('old');
  await expect.poll(kept).toEqual([]);
});

test('a run without a task keeps nothing when it has ended', async () => {
  const { agents, kept, content } = await openWriter([['done']]);
  await agents['writer']!.run('go').outcome;
  expect(content()).toBe('new');
  await expect.poll(kept).toEqual([]);
});
