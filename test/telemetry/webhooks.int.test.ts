// Webhooks on the stores that processes share, and by the command.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent, defineTool } from '@whoa/core';
import { callTools, reply } from '@whoa/core/model';
import {
  createRunner,
  createTaskApprovals,
  createTaskStore,
  type TaskRecord,
  type TaskStore,
  type TaskStoreConfig,
} from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { isGenuine } from '../../examples/verify-webhook.ts';
import { createWebhooks } from '../../packages/server/src/observe/webhooks/webhooks.ts';
import { startCommand } from '../command/process.ts';
import { createHome } from '../command/terminal.ts';
import { borrowPostgres } from '../servers/borrow.ts';
import { claimFor } from '../tasks/claimed.ts';
import { startHookReceiver } from './hook-receiver.ts';

const SECRET = `whsec_${Buffer.from('s'.repeat(32)).toString('base64')}`;
const TASK = { agent: 'assistant', input: 'hello' };

const STORES: readonly [string, () => Promise<TaskStoreConfig>][] = [
  ['sqlite', () => Promise.resolve({ backend: 'sqlite', file: join(openFolder(), 'tasks.db') })],
  ['postgres', async () => ({ backend: 'postgres', url: (await owned(borrowPostgres())).url })],
];

function openFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function owned<T extends AsyncDisposable>(starting: Promise<T>): Promise<T> {
  const thing = await starting;
  onTestFinished(() => thing[Symbol.asyncDispose]());
  return thing;
}

async function create(store: TaskStore, tenant = 'acme'): Promise<{ tenant: string; id: string }> {
  const receipt = await store.create({ ...TASK, tenant });
  return { tenant, id: (receipt as { task: TaskRecord }).task.id };
}

test.each(STORES)('%s notifies two processes of ends in a third, and each is reported once', async (_name, config) => {
  const receiver = await startHookReceiver();
  const given = await config();
  const open = (): Promise<TaskStore> => owned(Promise.resolve(createTaskStore(given)));
  const store = await open();
  // One that ended before anyone watched, also before the store was first used by the others.
  const before = await create(store);
  await store.cancel(before);
  const attempted = Promise.withResolvers<void>();
  let attempts = 0;
  for (let i = 0; i < 2; i++) {
    const webhooks = createWebhooks({
      store: await open(),
      webhooks: [{ url: receiver.url, secret: SECRET, allowPrivateAddresses: true }],
      onAttempt: () => ++attempts === 3 && attempted.resolve(),
    });
    onTestFinished(() => webhooks[Symbol.asyncDispose]());
    await webhooks.start();
  }
  const finished = await create(store);
  await store.finish(await claimFor(store, finished.id, { worker: 'w' }), { status: 'success' });
  // The first task of its tenant.
  const cancelled = await create(store, 'globex');
  await store.cancel(cancelled, { message: 'never mind' });
  await attempted.promise;
  expect(receiver.hooks).toHaveLength(3);
  const ids = new Set(receiver.hooks.map(({ event }) => event.data['id']));
  expect(ids).toEqual(new Set([before.id, finished.id, cancelled.id]));
});

test.each(STORES)('%s reports a question once, while a worker still holds its task', async (_name, config) => {
  const receiver = await startHookReceiver();
  const given = await config();
  const open = (): Promise<TaskStore> => owned(Promise.resolve(createTaskStore(given)));
  const store = await open();
  // Some stores are watched tenant by tenant: let this one be known from the start.
  await store.cancel(await create(store));
  const events = ['question.asked', 'question.answered', 'success'] as const;
  for (let i = 0; i < 2; i++) {
    const webhook = { url: receiver.url, secret: SECRET, allowPrivateAddresses: true, events };
    const webhooks = createWebhooks({ store: await open(), webhooks: [webhook] });
    onTestFinished(() => webhooks[Symbol.asyncDispose]());
    await webhooks.start();
  }
  const approvals = createTaskApprovals({ parkAfterMs: Infinity });
  const ask = defineTool({
    name: 'ask',
    description: 'Asks which day.',
    inputSchema: z.object({}),
    answeredBy: 'user',
    answerSchema: z.string(),
  });
  const agent = createAgent({
    name: 'assistant',
    tools: [ask],
    approve: approvals.approve,
    planner: {
      next: (history) =>
        history.some(({ role }) => role === 'tool')
          ? reply('Done.')
          : callTools([{ id: 'c1', tool: 'ask', input: {} }]),
    },
  });
  const runner = await owned(
    Promise.resolve(createRunner({ store: await open(), agents: { assistant: agent }, approvals })),
  );
  await runner.serve();
  const ref = await create(store);
  await receiver.received(1);
  const { stage, questions } = (await store.get(ref))!;
  const [question] = questions!;
  expect([stage, question!.answer]).toEqual(['held', undefined]);
  await store.answer({ tenant: ref.tenant, id: question!.id }, { value: { answer: 'Monday' }, by: 'ann' });
  await receiver.received(3);
  const sent = receiver.hooks.map(({ event: { type, data } }) => [type, data['id']]);
  expect(sent[0]).toEqual(['question.asked', question!.id]);
  expect(sent.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1))).toEqual([
    ['question.answered', question!.id],
    ['question.asked', question!.id],
    ['task.success', ref.id],
  ]);
});

test('a worker sends the webhooks of its configuration, and the example of the docs accepts them', async () => {
  const receiver = await startHookReceiver((index) => ({ status: index === 0 ? 503 : 204 }));
  const home = createHome({
    'script.json': JSON.stringify([['All is well.']]),
    'config/whoa/whoa.config.ts': `
      import { defineConfig } from 'whoa';
      export default defineConfig({
        webhooks: [{ url: '${receiver.url}?key=hidden', secret: process.env.HOOK_SECRET, allowPrivateAddresses: true }],
      });
    `,
  });
  onTestFinished(() => home[Symbol.dispose]());
  const args = ['--sandbox', 'none', '--yes', '--model', 'scripted:script.json'];
  const server = startCommand(home, ['serve', '--port', '0', '--work', ...args], { HOOK_SECRET: SECRET });
  const { url, token } = (await server.waitFor({ type: 'listening' })) as { url: string; token: string };
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ agent: 'assistant', input: 'Is all well?' });
  const response = await fetch(`${url}/v1/tasks`, { method: 'POST', headers, body });
  const { id } = ((await response.json()) as { task: TaskRecord }).task;
  const failed = await server.waitFor({ type: 'webhook', result: 'failed' });
  expect(failed).toMatchObject({
    taskId: id,
    attempt: 1,
    url: new URL(receiver.url).host,
    error: 'the response was 503',
  });
  await server.waitFor({ type: 'webhook', result: 'delivered' });
  const [, hook] = receiver.hooks;
  expect(hook!.event).toMatchObject({ type: 'task.success', data: { id } });
  expect(isGenuine(hook!.headers, hook!.body, SECRET)).toBe(true);
  expect(isGenuine(hook!.headers, `${hook!.body} `, SECRET)).toBe(false);
  expect(isGenuine(hook!.headers, hook!.body, `whsec_${Buffer.from('x'.repeat(32)).toString('base64')}`)).toBe(false);
  expect(isGenuine({ ...hook!.headers, 'webhook-timestamp': '1' }, hook!.body, SECRET)).toBe(false);
  const metrics = await (await fetch(`${url}/metrics`, { headers })).text();
  expect(metrics).toContain('whoa_webhook_attempts_total{result="failed"} 1\n');
  expect(metrics).toContain('whoa_webhook_attempts_total{result="delivered"} 1\n');
  server.kill('SIGTERM');
  expect(await server.closed).toEqual([0, null]);
});

test('a worker reports what is wrong with a webhook', async () => {
  const home = createHome({
    'script.json': '[["Hi."]]',
    'config/whoa/whoa.config.ts': `export default { webhooks: [{ url: 'https://example.com', secret: 'short' }] };`,
  });
  onTestFinished(() => home[Symbol.dispose]());
  const worker = startCommand(home, ['worker', '--sandbox', 'none', '--yes', '--model', 'scripted:script.json']);
  expect((await worker.closed)[0]).toBe(2);
  expect(JSON.stringify(worker.lines)).toContain('webhooks[0].secret: expected whsec_');
});
