import { expect, test } from 'vitest';
import { z } from 'zod';
import { createAgent } from '../run/agent.ts';
import { callTools, type Planner, reply } from '../run/planner.ts';
import { CancellationToken } from '../stop/token.ts';
import { checkHistory } from '../testing/checker.ts';
import { createRecorder } from '../testing/recorder.ts';
import { createVirtualWorld, letEverythingReact } from '../testing/virtual-world.ts';
import { textOf } from '../tool/result.ts';
import { defineTool } from '../tool/tool.ts';
import { type ConversationsOptions, createConversations, type Reply } from './conversations.ts';

/** An assistant that looks something up for 6 s and then repeats what it was asked. */
function setUp(options: Partial<ConversationsOptions> = {}, planner?: Planner) {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  let live = 0;
  const lookup = defineTool({
    name: 'lookup',
    description: 'Looks something up.',
    input: z.object({}),
    effects: 'read',
    execute: async () => {
      expect(++live).toBe(1);
      await new Promise<void>((resolve) => world.clock.setTimer(6_000, resolve));
      live--;
      return 'found';
    },
  });
  const echo: Planner = {
    next(history, { turn }) {
      if (turn === 1) return callTools([{ id: `${world.createId()}`, tool: 'lookup', input: {} }]);
      const asked = history.filter((message) => message.role === 'user').map(({ content }) => textOf(content));
      return reply(asked.join(' + '));
    },
  };
  const agent = createAgent({
    name: 'assistant',
    planner: planner ?? echo,
    tools: [recorder.tool(lookup)],
    world,
    hooks: recorder.hooks,
  });
  const sent: Reply[] = [];
  const conversations = createConversations({ agent, world, onReply: (one) => sent.push(one), ...options });
  const check = () => expect(checkHistory(recorder.history)).toEqual([]);
  return { ...world, conversations, recorder, sent, check };
}

test('a message is answered, and the history goes on', async () => {
  const { conversations, clock, sent, check } = setUp();
  const first = conversations.processMessage('c', 'one');
  await clock.advance(6_000);
  expect(await first).toMatchObject({ conversationId: 'c', status: 'answered', text: 'one' });
  const second = conversations.processMessage('c', 'two');
  await clock.advance(6_000);
  expect((await second).text).toBe('one + two');
  expect(conversations.history('c').map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'assistant',
    'user',
    'assistant',
    'tool',
    'assistant',
  ]);
  expect(conversations.history('other')).toEqual([]);
  expect(sent.map(({ text }) => text)).toEqual(['one', 'one + two']);
  check();
});

test('replace: a newer message cancels the run, which keeps what it has; only the newer one is answered', async () => {
  const { conversations, clock, sent, check } = setUp();
  const first = conversations.processMessage('c', '3 pm');
  await clock.advance(1_000);
  const second = conversations.processMessage('c', 'make it 4 pm instead');
  await clock.advance(5_000);
  expect(await first).toMatchObject({
    status: 'superseded',
    text: 'Stopped. Done so far: lookup.',
    outcome: {
      status: 'cancelled',
      reason: { kind: 'superseded', message: 'a newer message arrived' },
      calls: [{ state: 'finished' }],
    },
  });
  await clock.advance(6_000);
  expect((await second).text).toBe('3 pm + make it 4 pm instead');
  expect(sent.map(({ status }) => status)).toEqual(['answered']);
  check();
});

test('many rapid messages: one is answered, the others are superseded, never two runs at once', async () => {
  const { conversations, clock, check } = setUp();
  const replies = Array.from({ length: 50 }, (_, i) => conversations.processMessage('c', `${i}`));
  await clock.advance(12_000);
  const statuses = (await Promise.all(replies)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 'superseded')).toHaveLength(49);
  expect(statuses.at(-1)).toBe('answered');
  check();
});

test('queue, steer and reject do what they say', async () => {
  const { conversations, clock, check } = setUp();
  const first = conversations.processMessage('c', 'a');
  await letEverythingReact();
  const queued = conversations.processMessage('c', 'b', { policy: 'queue' });
  const steered = conversations.processMessage('c', 'c', { policy: 'steer' });
  expect((await conversations.processMessage('c', 'd', { policy: 'reject' })).status).toBe('rejected');
  await clock.advance(6_000);
  expect((await steered).status).toBe('steered');
  expect((await first).text).toBe('a + c');
  await clock.advance(6_000);
  expect((await queued).text).toBe('a + c + b');
  check();
});

test('a redelivered message is processed once', async () => {
  const { conversations, clock, sent } = setUp();
  const first = conversations.processMessage('c', 'a', { messageId: 'm1' });
  expect((await conversations.processMessage('c', 'a', { messageId: 'm1' })).status).toBe('duplicate');
  await clock.advance(6_000);
  expect((await first).status).toBe('answered');
  expect((await conversations.processMessage('c', 'a', { messageId: 'm1' })).status).toBe('duplicate');
  expect(sent).toHaveLength(1);
});

test('debounce: messages in quick succession become one run', async () => {
  const { conversations, clock, check } = setUp();
  const options = { debounceMs: 500 };
  const first = conversations.processMessage('c', 'a', options);
  await clock.advance(400);
  const second = conversations.processMessage('c', 'b', options);
  await clock.advance(499);
  expect(conversations.history('c')).toEqual([]);
  await clock.advance(1 + 6_000);
  expect((await first).status).toBe('merged');
  expect((await second).text).toBe('a + b');
  check();
});

test('cancel answers gracefully with what was done', async () => {
  const { conversations, clock, sent, check } = setUp();
  expect(conversations.cancel('c')).toBe(false);
  const first = conversations.processMessage('c', 'a');
  const second = conversations.processMessage('c', 'b', { policy: 'queue' });
  await clock.advance(1_000);
  expect(conversations.cancel('c', { kind: 'user', by: 'anna' })).toBe(true);
  expect((await second).status).toBe('cancelled');
  await clock.advance(5_000);
  expect(await first).toMatchObject({
    status: 'cancelled',
    text: 'Stopped. Done so far: lookup.',
    outcome: { reason: { by: 'anna' } },
  });
  expect(sent.map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
  expect(conversations.cancel('c')).toBe(false);
  check();
});

test('the next turn after a cancelled one runs to its end', async () => {
  const { conversations, clock } = setUp();
  const first = conversations.processMessage('c', 'a');
  await letEverythingReact();
  conversations.cancel('c');
  await clock.advance(6_000);
  await first;
  const next = conversations.processMessage('c', 'b');
  await clock.advance(6_000);
  expect((await next).status).toBe('answered');
});

test('what is not known is said, and how a cancel is described can be chosen', async () => {
  const deaf = createAgent({
    name: 'deaf',
    planner: { next: () => callTools([{ id: '1', tool: 'send', input: {} }]) },
    tools: [defineTool({ name: 'send', description: '', input: z.object({}), execute: () => new Promise(() => {}) })],
  });
  const ask = async (options: Partial<ConversationsOptions>) => {
    const conversations = createConversations({ agent: deaf, ...options });
    const result = conversations.processMessage('c', 'x');
    const token = new CancellationToken();
    await letEverythingReact();
    conversations.cancel('c');
    await conversations[Symbol.asyncDispose]();
    token[Symbol.dispose]();
    return (await result).text;
  };
  const quick = {
    ...deaf,
    run: (...[input, options]: Parameters<typeof deaf.run>) => {
      const run = deaf.run(input, options);
      return Object.assign(Object.create(run) as typeof run, {
        cancel: (reason: object) => run.cancel(reason, { how: 'kill' }),
        outcome: run.outcome,
      });
    },
  };
  expect(await ask({ agent: quick })).toBe('Stopped. Nothing was done. Not known whether it took effect: send.');
  expect(await ask({ agent: quick, describeCancel: ({ reason }) => `ok (${reason.kind})` })).toBe('ok (user)');
});

test('a token or signal given with a message withdraws that message and nothing else', async () => {
  const { conversations, clock, check } = setUp();
  const token = new CancellationToken({ clock });
  const controller = new AbortController();
  const first = conversations.processMessage('c', 'a', { token });
  const second = conversations.processMessage('c', 'b', { policy: 'queue', signal: controller.signal });
  const third = conversations.processMessage('c', 'c', { policy: 'queue' });
  await letEverythingReact();
  controller.abort();
  expect((await second).status).toBe('cancelled');
  token.cancel({ kind: 'disconnect' });
  await clock.advance(6_000);
  expect(await first).toMatchObject({ status: 'cancelled', outcome: { reason: { kind: 'disconnect' } } });
  await clock.advance(6_000);
  expect(await third).toMatchObject({ status: 'answered', text: 'a + c' });
  expect(token.statistics).toEqual({ children: 0, listeners: 0 });
  check();
});

test('a second cancel may stop the run harder; its first reason stays', async () => {
  const { conversations, clock, check } = setUp();
  const answering = conversations.processMessage('c', 'a');
  await letEverythingReact();
  expect(conversations.cancel('c', { message: 'enough' })).toBe(true);
  expect(conversations.cancel('c', { message: 'now!' }, { how: 'kill' })).toBe(true);
  await letEverythingReact();
  expect(await answering).toMatchObject({ status: 'cancelled', outcome: { reason: { message: 'enough' } } });
  expect(conversations.cancel('c')).toBe(false);
  await clock.advance(6_000);
  check();
});

test('a message that was withdrawn before it came starts nothing and supersedes nothing', async () => {
  const { conversations, clock, recorder, check } = setUp();
  const live = conversations.processMessage('c', 'a');
  await letEverythingReact();
  const token = new CancellationToken({ clock });
  token.cancel();
  const withdrawn = { status: 'cancelled', text: 'Stopped. Nothing was done.' };
  expect(await conversations.processMessage('c', 'b', { token })).toMatchObject(withdrawn);
  expect(await conversations.processMessage('c', 'b', { signal: AbortSignal.abort() })).toMatchObject(withdrawn);
  await clock.advance(6_000);
  expect(await live).toMatchObject({ status: 'answered', text: 'a' });
  expect(recorder.history.filter((one) => one.seen === 'event' && one.event.type === 'run-start')).toHaveLength(1);
  expect(token.statistics).toEqual({ children: 0, listeners: 0 });
  check();
});

test('a message is withdrawn as hard as its token or signal says, and harder later', async () => {
  const { conversations, clock, check } = setUp();
  const controller = new AbortController();
  const first = conversations.processMessage('c', 'a', { signal: controller.signal });
  await letEverythingReact();
  controller.abort();
  // A plain signal means now: the lookup of 6 s is not waited for.
  await clock.advance(2_000);
  expect((await first).status).toBe('cancelled');
  await clock.advance(4_000);

  const token = new CancellationToken({ clock });
  const second = conversations.processMessage('c', 'b', { token });
  await letEverythingReact();
  token.cancel({ kind: 'disconnect' });
  await clock.advance(1_000);
  token.cancel({ kind: 'user' }, { how: 'kill' });
  await letEverythingReact();
  expect(await second).toMatchObject({ status: 'cancelled', outcome: { reason: { kind: 'disconnect' } } });
  await clock.advance(5_000);
  check();
});

test('a run that fails is answered without frightening anybody', async () => {
  const { conversations } = setUp({}, { next: () => Promise.reject(new Error('secret stack')) });
  expect(await conversations.processMessage('c', 'a')).toMatchObject({
    status: 'failed',
    text: 'Something went wrong; nothing more is running.',
    outcome: { error: { message: 'secret stack' } },
  });
});

test('conversations do not touch each other', async () => {
  const { conversations } = setUp({}, { next: (history) => reply(`${history.length}`) });
  const replies = await Promise.all(['a', 'b', 'c'].map((id) => conversations.processMessage(id, 'x')));
  expect(replies.map(({ text }) => text)).toEqual(['1', '1', '1']);
});

test('idle conversations are forgotten when there are too many, or when told', async () => {
  const { conversations } = setUp({ conversationsMax: 2 }, { next: () => reply('ok') });
  for (const id of ['a', 'b', 'c']) await conversations.processMessage(id, 'x');
  expect(['a', 'b', 'c'].map((id) => conversations.history(id).length)).toEqual([0, 2, 2]);
  conversations.forget('b');
  expect(conversations.history('b')).toEqual([]);
});

test('a throwing onReply harms nobody and is reported', async () => {
  const errors: unknown[] = [];
  const { conversations } = setUp(
    {
      onReply: () => {
        throw new Error('gateway down');
      },
      hooks: { 'hook-error': ({ error }) => errors.push(error) },
    },
    { next: () => reply('ok') },
  );
  expect((await conversations.processMessage('c', 'x')).status).toBe('answered');
  expect(errors).toEqual([new Error('gateway down')]);
});

test('disposing stops every run and waits for its end; what comes later is cancelled at once', async () => {
  const { conversations, clock } = setUp();
  const first = conversations.processMessage('c', 'a');
  const gathering = conversations.processMessage('d', 'b', { debounceMs: 60_000 });
  await letEverythingReact();
  const disposed = conversations[Symbol.asyncDispose]();
  await clock.advance(6_000);
  await disposed;
  expect(await first).toMatchObject({ status: 'cancelled', outcome: { reason: { kind: 'shutdown' } } });
  expect((await gathering).status).toBe('cancelled');
  expect((await conversations.processMessage('c', 'late')).status).toBe('cancelled');
  expect(clock.pending).toBe(0);
});
