import {
  type AppContext,
  CancellationToken,
  createAgent,
  createConversations,
  defineTool,
  type Message,
  type Reply,
  sleep,
} from '@whoa/core';
import { callTools, type Planner, reply } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import type { CancelledWork } from '../../../core/src/conversation/describe.ts';
import type { HookError } from '../../../core/src/stop/hooks.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import { createCancelMessage, createEventChannel } from '../run/channel.ts';
import { createRunner } from '../run/store-runner.ts';
import type { TaskStore } from '../store.ts';
import { createStoreConversations, type StoreConversationsOptions } from './conversations.ts';
import type { StoreReply } from './reply.ts';

/** Repeats its input after a while. */
const echo: Planner = {
  async next(history, { token }) {
    await sleep(1_000, { clock: token.clock, token });
    return reply(`heard ${toReplyText(history).join('+')}`);
  },
};

const toReplyText = (history: readonly Message[]): string[] =>
  history.flatMap((message) => (message.role === 'user' ? [String(message.content as string)] : []));

function setUp(options: Partial<StoreConversationsOptions> = {}) {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  const sent: StoreReply[] = [];
  const agent = createAgent({ name: 'echo', planner: echo, world });
  const open = () => createStoreConversations({ agent, store, world, onReply: (said) => sent.push(said), ...options });
  return { world, store, sent, open, conversations: open() };
}

test('a message is answered, sent once and kept in the history', async () => {
  const { conversations, world, sent } = setUp();
  const answering = conversations.processMessage('c', 'hi');
  await world.clock.advance(1_000);
  expect(await answering).toMatchObject({ status: 'answered', text: 'heard hi' });
  expect(sent).toHaveLength(1);
  expect(await conversations.history('c')).toMatchObject([{ role: 'user', content: 'hi' }, { role: 'assistant' }]);
  await conversations[Symbol.asyncDispose]();
});

test('the next message’s model sees the history, even in another instance', async () => {
  const { conversations, open, world } = setUp();
  const first = conversations.processMessage('c', 'one');
  await world.clock.advance(1_000);
  await first;
  const second = open().processMessage('c', 'two');
  await world.clock.advance(1_000);
  expect((await second).text).toBe('heard one+two');
});

test('a newer message supersedes the one under way in another instance', async () => {
  const { conversations, open, world, sent } = setUp();
  const first = conversations.processMessage('c', 'one');
  await flushMicrotasks();
  const second = open().processMessage('c', 'two');
  await world.clock.advance(2_000);
  expect((await first).status).toBe('superseded');
  expect(await second).toMatchObject({ status: 'answered', text: 'heard one+two' });
  expect(sent.map(({ text }) => text)).toEqual(['heard one+two']);
});

test('a message that is delivered twice, to two instances, is processed once', async () => {
  const { conversations, open, world, sent } = setUp();
  const first = conversations.processMessage('c', 'one', { messageId: 'm1' });
  const again = open().processMessage('c', 'one', { messageId: 'm1' });
  await world.clock.advance(1_000);
  expect((await again).status).toBe('duplicate');
  expect((await first).status).toBe('answered');
  expect(sent).toHaveLength(1);
});

test('a stored message can be acknowledged before it is answered, and again when it is delivered again', async () => {
  const { conversations, store, world } = setUp();
  const stored: string[] = [];
  const onStored = ({ id }: { readonly id: string }) => stored.push(id);
  const first = conversations.processMessage('c', 'one', { messageId: 'm1', onStored });
  await flushMicrotasks();
  expect(await store.get({ tenant: 'default', id: stored[0]! })).toMatchObject({ key: 'm1', status: 'running' });
  await conversations.processMessage('c', 'one', { messageId: 'm1', onStored });
  expect(stored).toEqual([stored[0], stored[0]]);
  await world.clock.advance(1_000);
  expect((await first).status).toBe('answered');
  expect(stored).toHaveLength(2);
});

test('a message that the store did not take is not acknowledged', async () => {
  const world = createVirtualWorld();
  const store = alterStore(createMemoryStore({ world }), (name, call) =>
    name === 'create' ? Promise.reject(new Error('The store is away')) : call(),
  );
  const { conversations } = setUp({ store, world });
  const stored: unknown[] = [];
  const onStored = (task: unknown) => stored.push(task);
  await expect(conversations.processMessage('c', 'one', { onStored })).rejects.toThrow('The store is away');
  using token = new CancellationToken();
  token.cancel();
  expect((await conversations.processMessage('c', 'two', { token, onStored })).status).toBe('cancelled');
  expect(stored).toEqual([]);
});

test('an acknowledgement that fails is reported, and the message is answered', async () => {
  const errors: HookError[] = [];
  const { conversations, world } = setUp({ hooks: { 'hook-error': (event) => errors.push(event) } });
  const gone = () => Promise.reject(new Error('The connection is gone'));
  const first = conversations.processMessage('c', 'one', { onStored: gone });
  await world.clock.advance(1_000);
  expect((await first).status).toBe('answered');
  expect(errors).toMatchObject([{ hook: 'onStored', error: { message: 'The connection is gone' } }]);
});

test('queued messages are answered in turn', async () => {
  const { conversations, world } = setUp();
  const replies = ['one', 'two', 'three'].map((text) => conversations.processMessage('c', text, { policy: 'queue' }));
  await world.clock.advance(3_000);
  expect((await Promise.all(replies)).map(({ text }) => text)).toEqual([
    'heard one',
    'heard one+two',
    'heard one+two+three',
  ]);
});

test('a message that may not wait is rejected', async () => {
  const { conversations, world } = setUp();
  const first = conversations.processMessage('c', 'one');
  await flushMicrotasks();
  expect((await conversations.processMessage('c', 'two', { policy: 'reject' })).status).toBe('rejected');
  await world.clock.advance(1_000);
  expect((await first).status).toBe('answered');
});

test('messages that follow each other closely are taken as one', async () => {
  const { conversations, world, sent } = setUp();
  const first = conversations.processMessage('c', 'one', { debounceMs: 500 });
  await world.clock.advance(300);
  const second = conversations.processMessage('c', 'two', { debounceMs: 500 });
  await world.clock.advance(3_000);
  expect((await first).status).toBe('merged');
  expect(await second).toMatchObject({ status: 'answered', text: 'heard one+two' });
  expect(sent).toHaveLength(1);
});

test('a steered message is read by the run under way, or answered on its own', async () => {
  const { conversations, world } = setUp();
  const first = conversations.processMessage('c', 'one');
  await flushMicrotasks();
  const second = conversations.processMessage('c', 'two', { policy: 'steer' });
  await world.clock.advance(3_000);
  expect(await first).toMatchObject({ status: 'answered', text: 'heard one\n\nheard one+two' });
  expect((await second).status).toBe('steered');
});

test('a steered message that is withdrawn before the run has read it is not delivered', async () => {
  const { conversations, world } = setUp();
  const first = conversations.processMessage('c', 'one');
  await flushMicrotasks();
  const token = new CancellationToken();
  const second = conversations.processMessage('c', 'two', { policy: 'steer', token });
  const third = conversations.processMessage('c', 'three', { policy: 'steer' });
  await flushMicrotasks();
  token.cancel({}, { mode: 'now' });
  await flushMicrotasks();
  await world.clock.advance(3_000);
  expect(await first).toMatchObject({ status: 'answered', text: 'heard one\n\nheard one+three' });
  expect([(await second).status, (await third).status]).toEqual(['cancelled', 'steered']);
});

test('a cancel stops the run under way and drops what waits', async () => {
  const { conversations, open, world, sent } = setUp();
  const first = conversations.processMessage('c', 'one');
  await flushMicrotasks();
  const second = conversations.processMessage('c', 'two', { policy: 'queue' });
  await flushMicrotasks();
  expect(await open().cancel('c', { by: 'ann' })).toMatchObject({ result: 'accepted' });
  await world.clock.advance(2_000);
  expect([(await first).status, (await second).status]).toEqual(['cancelled', 'cancelled']);
  expect(sent).toHaveLength(2);
  expect(await conversations.cancel('c')).toEqual({ result: 'not-found' });
});

test('a signal withdraws its own message and nothing else', async () => {
  const { conversations, world } = setUp();
  const controller = new AbortController();
  const first = conversations.processMessage('c', 'one');
  await flushMicrotasks();
  const second = conversations.processMessage('c', 'two', { policy: 'queue', signal: controller.signal });
  await flushMicrotasks();
  controller.abort();
  await world.clock.advance(2_000);
  expect([(await first).status, (await second).status]).toEqual(['answered', 'cancelled']);
});

test('a message that was withdrawn before it came makes no task and supersedes nothing', async () => {
  const { conversations, world, store } = setUp();
  const first = conversations.processMessage('c', 'one');
  await flushMicrotasks();
  const token = new CancellationToken({ clock: world.clock });
  token.cancel();
  expect((await conversations.processMessage('c', 'two', { token })).status).toBe('cancelled');
  expect((await conversations.processMessage('c', 'two', { signal: AbortSignal.abort() })).status).toBe('cancelled');
  await world.clock.advance(1_000);
  expect(await first).toMatchObject({ status: 'answered', text: 'heard one' });
  expect((await store.list({ tenant: 'default' })).tasks).toHaveLength(1);
});

test('a message whose instance was shut down is answered by another', async () => {
  const { conversations, open, world, sent } = setUp();
  const first = conversations.processMessage('c', 'one');
  await flushMicrotasks();
  await conversations[Symbol.asyncDispose]();
  expect((await first).status).toBe('released');
  const other = open();
  await other.serve();
  await world.clock.advance(3_000);
  expect(await other.history('c')).toHaveLength(2);
  expect(sent).toMatchObject([{ conversationId: 'c', status: 'answered', text: 'heard one' }]);
  await other[Symbol.asyncDispose]();
});

test('the store gets only new messages, no matter how long a conversation is', async () => {
  const { world, store } = setUp();
  const told: number[] = [];
  const counting = alterStore(store, (name, call, args) => {
    if (name === 'finish') told.push(JSON.stringify(args[1]).length);
    return call();
  });
  const agent = createAgent({ name: 'brief', planner: { next: () => reply('yes') }, world });
  await using conversations = createStoreConversations({ agent, store: counting, world });
  for (let i = 100; i < 130; i++) await conversations.processMessage('c', `message ${i}`);
  expect(await conversations.history('c')).toHaveLength(60);
  expect(Math.max(...told)).toBe(Math.min(...told));
});

test('a history that the agent made shorter replaces the old one', async () => {
  const { world, store } = setUp();
  const planner: Planner = { next: (history) => reply(`${history.length}`) };
  const compact = (messages: readonly Message[]): readonly Message[] =>
    messages.length > 4 ? [{ role: 'user', content: 'in short' }] : messages;
  const agent = createAgent({ name: 'brief', planner, compact, world });
  await using conversations = createStoreConversations({ agent, store, world });
  for (let i = 0; i < 3; i++) await conversations.processMessage('c', `message ${i}`);
  expect(await conversations.history('c')).toMatchObject([{ content: 'in short' }, { role: 'assistant' }]);
});

/** An assistant that books immediately and then thinks for a long time. */
function setUpBooking(options: Partial<StoreConversationsOptions> = {}) {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  const sent: StoreReply[] = [];
  const book = defineTool({ name: 'book', description: '', inputSchema: z.object({}), execute: () => 'booked' });
  const planner: Planner = {
    async next(history, { token }) {
      if (history.at(-1)?.role === 'user') return callTools([{ id: '1', tool: 'book', input: {} }]);
      await sleep(60_000, { clock: token.clock, token });
      return reply('done');
    },
  };
  const agent = createAgent({ name: 'booking', planner, tools: [book], world });
  const open = () => createStoreConversations({ agent, store, world, onReply: (one) => sent.push(one), ...options });
  return { world, store, sent, open, conversations: open() };
}

test('a cancel returns the calls so far, even from an instance that took the task over', async () => {
  const { conversations, open, world, sent, store } = setUpBooking();
  const first = conversations.processMessage('c', 'book it');
  await flushMicrotasks();
  expect(await conversations.cancel('c')).toMatchObject({ result: 'accepted' });
  expect(await first).toMatchObject({ status: 'cancelled', text: 'Stopped. Done so far: book.' });
  // A worker that dies immediately: only the store knows what it did.
  await using dead = createRunner({
    store: failingOperation('finish', store),
    world,
    agents: { booking: hang },
    leaseMs: 3_000,
  });
  const lost = dead.run({ tenant: 'default', agent: 'booking', input: 'x', conversation: 'd' }).catch(() => 'lost');
  await flushMicrotasks();
  await store.cancel({ tenant: 'default', conversation: 'd' });
  await using other = open();
  await other.serve();
  await world.clock.advance(30_000);
  expect(await lost).toBe('lost');
  expect(sent.map(({ text }) => text)).toEqual(['Stopped. Done so far: book.', 'Stopped. Nothing was done.']);
});

const hang = () => new Promise<undefined>(() => {});

/** A store that fails at one operation, and at keeping the lease. */
const failingOperation = (operation: string, store: TaskStore): TaskStore =>
  alterStore(store, (name, call) =>
    name === operation || name === 'renew' ? Promise.reject(new Error('no route')) : call(),
  );

test('how a cancel is described can be chosen; one that fails is reported, and the default text is used', async () => {
  const errors: unknown[] = [];
  const ask = async (describeCancel: (work: CancelledWork) => string) => {
    const hooks = { 'hook-error': ({ hook, error }: HookError) => errors.push([hook, error]) };
    const { conversations } = setUpBooking({ describeCancel, hooks });
    const answering = conversations.processMessage('c', 'book it');
    await flushMicrotasks();
    await conversations.cancel('c', { by: 'ann' });
    return (await answering).text;
  };
  const words = ({ reason, calls }: CancelledWork) =>
    `${reason.by}: ${calls.map(({ tool, state }) => tool + state).join()}`;
  expect(await ask(words)).toBe('ann: bookfinished');
  expect(errors).toEqual([]);
  const broken = (): string => {
    throw new Error('no words');
  };
  expect(await ask(broken)).toBe('Stopped. Done so far: book.');
  expect(errors).toEqual([['describeCancel', new Error('no words')]]);
});

test('a throwing onReply harms no message and is reported', async () => {
  const errors: unknown[] = [];
  const { conversations } = setUpBooking({
    onReply: () => Promise.reject(new Error('gateway down')),
    hooks: { 'hook-error': ({ error }) => errors.push(error) },
  });
  const answering = conversations.processMessage('c', 'book it');
  await flushMicrotasks();
  await conversations.cancel('c');
  expect((await answering).status).toBe('cancelled');
  expect(errors).toEqual([new Error('gateway down')]);
});

test('a conversation is cancelled by a message on a channel, and by a checker, including those added later', async () => {
  const channel = createEventChannel();
  const wanted = new Set(['a', 'b', 'c']);
  const { conversations, world } = setUpBooking({
    channel,
    cancellationChecker: (_id, { conversation = '' }) => !wanted.has(conversation),
  });
  const statuses = ['a', 'b', 'c'].map((id) => conversations.processMessage(id, 'x').then(({ status }) => status));
  await flushMicrotasks();
  channel.emit(createCancelMessage({ tenant: 'default', conversation: 'a' }, { msg: 'stop' }));
  expect(await statuses[0]).toBe('cancelled');
  wanted.delete('b');
  await world.clock.advance(1_000);
  expect(await statuses[1]).toBe('cancelled');
  conversations.setCancellationChecker(undefined);
  const later = createEventChannel();
  const listening = conversations.listen(later);
  later.emit(createCancelMessage({ tenant: 'default', all: true }));
  expect(await statuses[2]).toBe('cancelled');
  listening[Symbol.dispose]();
  await conversations[Symbol.asyncDispose]();
});

test('the events of the run that answers a message can be followed as they happen', async () => {
  const { conversations, world } = setUp();
  const seen: Record<string, string[]> = { one: [], two: [] };
  const send = (text: string) =>
    conversations.processMessage('c', text, { policy: 'queue', onEvent: ({ type }) => seen[text]!.push(type) });
  const replies = [send('one'), send('two')];
  await world.clock.advance(500);
  expect(seen['one']).toContain('turn-start');
  expect(seen['two']).toEqual([]);
  await world.clock.advance(2_000);
  await Promise.all(replies);
  expect([seen['one']!.at(-1), seen['two']!.at(0), seen['two']!.at(-1)]).toEqual(['run-end', 'run-start', 'run-end']);
});

test('replies of one conversation are sent one at a time, in order', async () => {
  const { promise: sentFirst, resolve: finishSending } = Promise.withResolvers<void>();
  const sent: string[] = [];
  const { conversations, world } = setUp({
    policy: 'queue',
    onReply: async ({ messageId }) => {
      sent.push(`sending ${messageId}`);
      if (messageId === 'one') await sentFirst;
      sent.push(`sent ${messageId}`);
    },
  });
  const both = ['one', 'two'].map((messageId) => conversations.processMessage('c', messageId, { messageId }));
  for (let i = 0; i < 5; i++) await world.clock.advance(1_000);
  expect(sent).toEqual(['sending one']);
  finishSending();
  await Promise.all(both);
  expect(sent).toEqual(['sending one', 'sent one', 'sending two', 'sent two']);
});

test('hooks get the same messages and cancels as those of conversations in memory', async () => {
  type Heard = (string | undefined)[];
  const story = async (kind: 'memory' | 'store') => {
    const heard: Heard[] = [];
    const world = createVirtualWorld();
    const hooks = {
      any: (event: { readonly type: string }, { context }: { context?: AppContext | undefined }) => {
        if (!('conversationId' in event)) return;
        const { conversationId, type, ...rest } = event as { conversationId: string; type: string } & Partial<
          Record<'messageId' | 'policy' | 'receipt' | 'level', string>
        > & { reply?: Reply; runId?: string };
        const what = [rest.messageId, rest.policy, rest.receipt, rest.level, rest.reply?.messageId, rest.reply?.status];
        heard.push([
          conversationId,
          type,
          ...what.filter((one) => one !== undefined),
          (context as { user?: string } | undefined)?.user,
        ]);
      },
    };
    const pay = defineTool({
      name: 'pay',
      description: '',
      inputSchema: z.object({}),
      whenCancelled: 'finish',
      timeoutMs: 10_000,
      execute: () => new Promise<string>((resolve) => world.clock.setTimer(5_000, () => resolve('paid'))),
    });
    const planner: Planner = {
      next: (_, { turn }) => (turn === 1 ? callTools([{ id: 'c', tool: 'pay', input: {} }]) : reply('done')),
    };
    const agent = createAgent({ name: 'payer', planner, tools: [pay], world });
    await using conversations =
      kind === 'memory'
        ? createConversations({ agent, world, hooks })
        : createStoreConversations({ agent, world, hooks, store: createMemoryStore({ world }) });
    const say = (id: string, messageId: string, options: object = {}) =>
      conversations.processMessage(id, 'x', { messageId, context: { user: messageId }, ...options });
    const [one, two] = [say('c', 'one'), say('c', 'two', { policy: 'queue' })];
    await flushMicrotasks();
    await say('c', 'three', { policy: 'reject' });
    await conversations.cancel('c', { message: 'enough' });
    await flushMicrotasks();
    await conversations.cancel('c', { message: 'enough' });
    await flushMicrotasks();
    await conversations.cancel('c', { message: 'now' }, { mode: 'now' });
    await world.clock.advance(5_000);
    await Promise.all([one, two]);
    await conversations.cancel('c', { message: 'too late' });
    await conversations.cancel('nowhere');
    const four = say('d', 'four');
    await flushMicrotasks();
    const five = say('d', 'five');
    await world.clock.advance(10_000);
    await Promise.all([four, five]);
    return heard;
  };
  const [memory, store] = [await story('memory'), await story('store')];
  const sorted = (heard: Heard[]) => heard.map((one) => one.join(' ')).toSorted();
  expect(sorted(store)).toEqual(sorted(memory));
  expect(memory.map((one) => one.join(' '))).toEqual(
    expect.arrayContaining([
      'c message-received one replace one',
      'c cancel-requested accepted one',
      'c level-changed drain one',
      'c call-waiting drain one',
      'c cancel-requested escalated one',
      'c message-answered one cancelled one',
      'c message-answered two cancelled two',
      'c message-answered three rejected three',
      'c cancel-requested too-late ',
      'd message-answered four superseded four',
      'd message-answered five answered five',
    ]),
  );
});

test('hooks get the cancel and the answer of a message that was taken over', async () => {
  const heard: string[] = [];
  const any = (event: { readonly type: string; readonly conversationId?: string }): void => {
    if (event.conversationId !== undefined) heard.push(`${event.conversationId} ${event.type}`);
  };
  const { conversations, store } = setUpBooking({ hooks: { any } });
  // As an instance would have left it that crashed.
  await store.create({ tenant: 'default', agent: 'booking', input: 'x', conversation: 'd' });
  await conversations.serve();
  await flushMicrotasks();
  await store.cancel({ tenant: 'default', conversation: 'd' }, { by: 'ann' }, { mode: 'now' });
  await expect.poll(() => heard).toContain('d message-answered');
  expect(heard).toEqual(['d cancel-requested', 'd level-changed', 'd message-answered']);
  await conversations[Symbol.asyncDispose]();
});
