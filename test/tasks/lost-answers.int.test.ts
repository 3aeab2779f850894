import { createAgent } from '@whoa/core';
import { reply } from '@whoa/core/model';
import { createStoreConversations, type TaskRecord, type TaskStore, UnknownOutcomeError } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import type { ClaimRef } from '@whoa/tasks/store';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { borrowPostgres } from '../servers/borrow.ts';
import { type Proxy as LossyNetwork, startProxy } from '../servers/proxy.ts';

const TENANT = 'acme';
const LEASE_MS = 600_000;
const CONVERSATION = { tenant: TENANT, conversation: 'c' };
const WANTED = { tenant: TENANT, agent: 'a', input: 'hello' };
const STEER = { type: 'steer', message: 'be brief' } as const;

interface Servers extends AsyncDisposable {
  /** A store whose responses can be lost, and one that gets them all. */
  open(): Promise<{ store: TaskStore; direct: TaskStore; proxy: LossyNetwork } & AsyncDisposable>;
}

let storeKinds = 0;

async function startPostgresServers(): Promise<Servers> {
  const server = await borrowPostgres();
  const { hostname, port } = new URL(server.url);
  return {
    async open() {
      const schema = `lost_${storeKinds++}`;
      const proxy = await startProxy({ host: hostname, port: Number(port) });
      const direct = createPostgresStore({ url: server.url, schema });
      const store = createPostgresStore({ url: server.url.replace(port, `${proxy.port}`), schema });
      // One connection notifies while another sends the next request: open both before any response is lost.
      await Promise.all([store.sweep(), store.sweep(), store.sweep()]);
      return { store, direct, proxy, [Symbol.asyncDispose]: () => disposeAll([store, direct, proxy]) };
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function disposeAll(owned: readonly AsyncDisposable[]): Promise<void> {
  for (const one of owned) await one[Symbol.asyncDispose]();
}

/** Sends a request over a network that loses the response after the server has done the work. */
async function lose(proxy: LossyNetwork, ask: () => Promise<unknown>): Promise<UnknownOutcomeError> {
  proxy.swallowAnswers();
  const failure = ask().then(
    () => undefined,
    (error: unknown) => error,
  );
  await proxy.swallowed;
  proxy.cut();
  const error = await failure;
  expect(error).toBeInstanceOf(UnknownOutcomeError);
  return error as UnknownOutcomeError;
}

/**
 * Does everything once, because a server that does not know a script yet reports that first, and we do not want to lose
 * that response.
 */
async function runTask(store: TaskStore): Promise<void> {
  const { ref, by } = await running(store);
  const { id, session } = by;
  await store.heartbeat({ session, count: 1 });
  await store.send(ref, STEER);
  await store.append(by, { after: 0, events: [] });
  await store.release(by);
  const again = await claimOne(store, id);
  await store.cancel(ref);
  await store.finish(again, { status: 'cancelled' });
  await store.take({ ...REQUEST, session: 'take', claim: 'take', takeNumber: 1, agents: ['a'], limit: 1 });
}

const REQUEST = { worker: 'w', leaseMs: LEASE_MS };
let claims = 0;

/** Claims a task for a separate session, or fails. */
async function claimOne(store: TaskStore, id: string): Promise<ClaimRef> {
  const name = `claim ${++claims}`;
  const answer = await store.claim(id, { ...REQUEST, session: name, claim: name });
  return answer.result === 'claimed' ? answer.claim : expect.unreachable(answer.result);
}

const getTask = (receipt: unknown): TaskRecord => (receipt as { task: TaskRecord }).task;

async function running(
  store: TaskStore,
  rest: object = {},
): Promise<{ id: string; ref: { tenant: string; id: string }; by: ClaimRef }> {
  const { id } = getTask(await store.create({ ...WANTED, ...rest }));
  return { id, ref: { tenant: TENANT, id }, by: await claimOne(store, id) };
}

describe('an answer of Postgres that is lost after the deed', () => {
  let servers: Servers;
  beforeAll(async () => {
    servers = await startPostgresServers();
    await using location = await servers.open();
    await runTask(location.direct);
  });
  afterAll(() => servers[Symbol.asyncDispose]());

  test('create: with the nonce of the error it is answered as the first time, and there is one task', async () => {
    await using location = await servers.open();
    const { store, direct, proxy } = location;
    const old = await running(store, { conversation: 'c' });
    const ask = (nonce?: string) => store.create({ ...WANTED, ...CONVERSATION }, nonce === undefined ? {} : { nonce });
    const { nonce, operation } = await lose(proxy, ask);
    expect(operation).toBe('create');
    const [done] = (await direct.list({ ...CONVERSATION, status: 'init' })).tasks;
    expect(await ask(nonce)).toMatchObject({ result: 'created', task: done, superseded: [old.id] });
    expect((await direct.list({ tenant: TENANT })).tasks).toHaveLength(2);
  });

  test('create under a key: a retry by its creator returns `created`', async () => {
    await using location = await servers.open();
    const { store, direct, proxy } = location;
    await store.sweep();
    const ask = (nonce: string) => store.create({ ...WANTED, key: 'k' }, { nonce });
    expect((await lose(proxy, () => ask('mine'))).nonce).toBe('mine');
    expect(await ask('mine')).toMatchObject({ result: 'created' });
    expect(await direct.create({ ...WANTED, key: 'k' })).toMatchObject({ result: 'duplicate' });
  });

  test('send: with the nonce of the error the command is there once, even when it has been carried out', async () => {
    await using location = await servers.open();
    const { store, direct, proxy } = location;
    const { ref, by } = await running(store);
    const { nonce } = await lose(proxy, () => store.send(ref, STEER));
    const again = () => store.send(ref, STEER, { nonce: nonce! });
    expect(await again()).toEqual({ result: 'accepted', number: 1 });
    expect((await direct.get(ref))?.commands).toHaveLength(1);
    await direct.append(by, { after: 0, events: [], done: [1] });
    expect(await again()).toEqual({ result: 'accepted', number: 1 });
    expect((await direct.get(ref))?.commands).toEqual([]);
  });

  test('append: the batch is written once', async () => {
    await using location = await servers.open();
    const { store, direct, proxy } = location;
    const { ref, by } = await running(store);
    await store.send(ref, STEER);
    const ask = () => store.append(by, { after: 0, events: ['one', 'two'], done: [1] });
    await lose(proxy, ask);
    expect(await ask()).toMatchObject({ commands: [] });
    await store.append(by, { after: 2, events: ['three'] });
    expect((await direct.read(ref)).map(({ event }) => event)).toEqual(['one', 'two', 'three']);
  });

  test('append that replaces: a retry replaces once, and the journal has the recorded size', async () => {
    await using location = await servers.open();
    const { store, direct, proxy } = location;
    const { ref, by } = await running(store);
    await store.append(by, { after: 0, events: ['Hel', 'lo', 'kept'] });
    const ask = () => store.append(by, { after: 3, events: ['Hello'], replaces: [1, 2] });
    await lose(proxy, ask);
    await ask();
    expect((await direct.read(ref)).map(({ position, event }) => [position, event])).toEqual([
      [3, 'kept'],
      [4, 'Hello'],
    ]);
    expect(await direct.get(ref)).toMatchObject({ position: 4, journalBytes: 13 });
  });

  test('claim: asked again it is the same claim, counted once', async () => {
    await using location = await servers.open();
    const { store, direct, proxy } = location;
    const { id } = getTask(await store.create(WANTED));
    const ask = () => store.claim(id, { ...REQUEST, session: 'one', claim: 'one' });
    await lose(proxy, ask);
    expect(await ask()).toMatchObject({ result: 'claimed', claim: { epoch: 1 } });
    expect(await direct.get({ tenant: TENANT, id })).toMatchObject({ epoch: 1, attempts: 1, worker: 'w' });
  });

  test('take: asked again it hands out the same tasks, and no others', async () => {
    await using location = await servers.open();
    const { store, direct, proxy } = location;
    for (let i = 0; i < 3; i++) await store.create(WANTED);
    const request = { ...REQUEST, session: 'one', claim: 'one', agents: [WANTED.agent], limit: 2 };
    await lose(proxy, () => store.take({ ...request, takeNumber: 1 }));
    const held = await direct.held({ session: 'one' });
    expect(held).toHaveLength(2);
    const again = await store.take({ ...request, takeNumber: 1 });
    expect(again).toMatchObject({ result: 'taken', isRepeat: true });
    const ids = again.result === 'taken' ? again.tasks.map(({ task }) => task.id) : [];
    expect(ids.toSorted()).toEqual(held.map(({ id }) => id).toSorted());
    expect(await store.take({ ...request, takeNumber: 2 })).toMatchObject({ result: 'taken', tasks: [{}] });
  });

  test('heartbeat: the session is kept, and its orders come again', async () => {
    await using location = await servers.open();
    const { store, proxy } = location;
    const { ref, by } = await running(store);
    await store.cancel(ref, { by: 'ann' });
    const ask = () => store.heartbeat({ session: by.session, count: 1 });
    await lose(proxy, ask);
    expect(await ask()).toMatchObject({ result: 'alive', orders: [{ stop: { reason: { by: 'ann' } } }] });
  });

  test('cancel: the first reason stays, and the deadlines do not move', async () => {
    await using location = await servers.open();
    const { store, direct, proxy } = location;
    const { ref } = await running(store);
    const ask = () => store.cancel(ref, { by: 'ann' });
    await lose(proxy, ask);
    const { stop } = (await direct.get(ref))!;
    expect(await ask()).toMatchObject({ result: 'unchanged', reason: { by: 'ann' }, killAt: stop!.killAt });
    expect((await direct.get(ref))!.stop).toEqual(stop);
  });

  test('cancel before the start: the task has ended, once', async () => {
    await using location = await servers.open();
    const { store, direct, proxy } = location;
    const { id } = getTask(await store.create(WANTED));
    const ask = () => store.cancel({ tenant: TENANT, id }, { by: 'ann' });
    await lose(proxy, ask);
    const ended = await direct.get({ tenant: TENANT, id });
    expect(await ask()).toEqual({ result: 'too-late', status: 'cancelled' });
    expect(await direct.get({ tenant: TENANT, id })).toEqual(ended);
  });

  test('release: the task is free, and has lost no attempt', async () => {
    await using location = await servers.open();
    const { store, direct, proxy } = location;
    const { ref, by } = await running(store);
    await lose(proxy, () => store.release(by));
    expect(await store.release(by)).toEqual({ result: 'unchanged' });
    expect(await direct.get(ref)).toMatchObject({ status: 'init', attempts: 0 });
  });

  test('a message whose creation was not answered is answered all the same, here and once', async () => {
    await using location = await servers.open();
    const { store, direct, proxy } = location;
    await store.sweep();
    const agent = createAgent({ name: 'echo', planner: { next: () => reply('heard') } });
    const sent: string[] = [];
    const onReply = ({ messageId }: { messageId: string }): void => void sent.push(messageId);
    await using conversations = createStoreConversations({ agent, store, tenant: TENANT, onReply });
    proxy.swallowAnswers();
    const replying = conversations.processMessage('c', 'hello', { messageId: 'm1' });
    await proxy.swallowed;
    proxy.cut();
    expect(await replying).toMatchObject({ status: 'answered', text: 'heard' });
    expect(await conversations.processMessage('c', 'hello', { messageId: 'm1' })).toMatchObject({
      status: 'duplicate',
    });
    expect(sent).toEqual(['m1']);
    expect((await direct.list(CONVERSATION)).tasks).toHaveLength(1);
  });

  test('finish: it has ended once, and one successor was woken', async () => {
    await using location = await servers.open();
    const { store, direct, proxy } = location;
    const { ref, by } = await running(store, { conversation: 'c' });
    const next = getTask(await store.create({ ...WANTED, ...CONVERSATION }, { policy: 'queue' }));
    const third = getTask(await store.create({ ...WANTED, ...CONVERSATION }, { policy: 'queue' }));
    const ask = () => store.finish(by, { status: 'success', answer: 'done', history: ['said'] });
    await lose(proxy, ask);
    expect(await ask()).toEqual({ result: 'unchanged', status: 'success' });
    expect(await direct.get(ref)).toMatchObject({ status: 'success', outcome: { answer: 'done' } });
    expect(await direct.conversation(CONVERSATION)).toMatchObject({
      current: next.id,
      waiting: [third.id],
      history: ['said'],
    });
  });
});
