import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createAgent } from '../run/agent.ts';
import type { Message } from '../run/history/message.ts';
import { callTools, type Planner, reply } from '../run/reply/planner.ts';
import { CancellationToken } from '../stop/token/token.ts';
import { sleep } from '../stop/wait.ts';
import { checkHistory } from '../testing/checker.ts';
import { createRecorder } from '../testing/recorder.ts';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import { toText } from '../tool/result.ts';
import { defineTool } from '../tool/tool.ts';
import { type ConversationsOptions, createConversations } from './conversations.ts';
import type { ConversationEvent, Reply } from './events.ts';
import { MAX_SEEN_MESSAGES } from './policy.ts';

/** An assistant that looks something up for 6 s and then repeats its input. */
function setUp(options: Partial<ConversationsOptions> = {}, planner?: Planner) {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  let live = 0;
  const lookup = defineTool({
    name: 'lookup',
    description: 'Looks something up.',
    inputSchema: z.object({}),
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
      const asked = history.filter((message) => message.role === 'user').map(({ content }) => toText(content));
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

test('a message is answered, and the history continues', async () => {
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

test('many rapid messages: one is answered, the others are superseded, never two runs at the same time', async () => {
  const { conversations, clock, check } = setUp();
  const replies = Array.from({ length: 50 }, (_, i) => conversations.processMessage('c', `${i}`));
  await clock.advance(12_000);
  const statuses = (await Promise.all(replies)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 'superseded')).toHaveLength(49);
  expect(statuses.at(-1)).toBe('answered');
  check();
});

test('queue, steer and reject handle a newer message as named', async () => {
  const { conversations, clock, check } = setUp();
  const first = conversations.processMessage('c', 'a');
  await flushMicrotasks();
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

test('a graceful cancel resolves with the finished calls', async () => {
  const { conversations, clock, sent, check } = setUp();
  expect(conversations.cancel('c')).toEqual({ result: 'too-late' });
  const first = conversations.processMessage('c', 'a');
  const second = conversations.processMessage('c', 'b', { policy: 'queue' });
  await clock.advance(1_000);
  expect(conversations.cancel('c', { kind: 'user', by: 'anna' })).toMatchObject({ result: 'accepted', level: 'drain' });
  expect((await second).status).toBe('cancelled');
  await clock.advance(5_000);
  expect(await first).toMatchObject({
    status: 'cancelled',
    text: 'Stopped. Done so far: lookup.',
    outcome: { reason: { by: 'anna' } },
  });
  expect(sent.map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
  expect(conversations.cancel('c')).toEqual({ result: 'too-late' });
  check();
});

test('the next turn after a cancelled one runs to its end', async () => {
  const { conversations, clock } = setUp();
  const first = conversations.processMessage('c', 'a');
  await flushMicrotasks();
  conversations.cancel('c');
  await clock.advance(6_000);
  await first;
  const next = conversations.processMessage('c', 'b');
  await clock.advance(6_000);
  expect((await next).status).toBe('answered');
});

test('unknown results are reported, and how a cancel is described can be chosen', async () => {
  const deaf = createAgent({
    name: 'deaf',
    planner: { next: () => callTools([{ id: '1', tool: 'send', input: {} }]) },
    tools: [
      defineTool({ name: 'send', description: '', inputSchema: z.object({}), execute: () => new Promise(() => {}) }),
    ],
  });
  const ask = async (options: Partial<ConversationsOptions>) => {
    const conversations = createConversations({ agent: deaf, ...options });
    const result = conversations.processMessage('c', 'x');
    const token = new CancellationToken();
    await flushMicrotasks();
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
        cancel: (reason: object) => run.cancel(reason, { mode: 'kill' }),
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
  await flushMicrotasks();
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
  await flushMicrotasks();
  expect(conversations.cancel('c', 'enough')).toMatchObject({ result: 'accepted', reason: { message: 'enough' } });
  expect(conversations.cancel('c', 'now!', { mode: 'kill' })).toMatchObject({
    result: 'escalated',
    level: 'kill',
    reason: { message: 'enough' },
  });
  expect(conversations.cancel('c', 'still?')).toMatchObject({ result: 'unchanged' });
  await flushMicrotasks();
  expect(await answering).toMatchObject({ status: 'cancelled', outcome: { reason: { message: 'enough' } } });
  expect(conversations.cancel('c')).toEqual({ result: 'too-late' });
  await clock.advance(6_000);
  check();
});

test('a message that was withdrawn before it came starts nothing and supersedes nothing', async () => {
  const { conversations, clock, recorder, check } = setUp();
  const live = conversations.processMessage('c', 'a');
  await flushMicrotasks();
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

test('a message is withdrawn with the level of its token or signal, and at a higher level later', async () => {
  const { conversations, clock, check } = setUp();
  const controller = new AbortController();
  const first = conversations.processMessage('c', 'a', { signal: controller.signal });
  await flushMicrotasks();
  controller.abort();
  // A plain signal means now: the lookup of 6 s is not waited for.
  await clock.advance(2_000);
  expect((await first).status).toBe('cancelled');
  await clock.advance(4_000);

  const token = new CancellationToken({ clock });
  const second = conversations.processMessage('c', 'b', { token });
  await flushMicrotasks();
  token.cancel({ kind: 'disconnect' });
  await clock.advance(1_000);
  token.cancel({ kind: 'user' }, { mode: 'kill' });
  await flushMicrotasks();
  expect(await second).toMatchObject({ status: 'cancelled', outcome: { reason: { kind: 'disconnect' } } });
  await clock.advance(5_000);
  check();
});

test('a run that fails gets a calm reply without error details', async () => {
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

test('idle conversations are forgotten when there are too many, or on request', async () => {
  const { conversations } = setUp({ maxConversations: 2 }, { next: () => reply('ok') });
  for (const id of ['a', 'b', 'c']) await conversations.processMessage(id, 'x');
  expect(['a', 'b', 'c'].map((id) => conversations.history(id).length)).toEqual([0, 2, 2]);
  conversations.remove('b');
  expect(conversations.history('b')).toEqual([]);
});

test('a throwing onReply affects nothing else and is reported', async () => {
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

test('an answer that was complete when a steering message arrived is part of the reply', async () => {
  const { promise: streamed, resolve: finish } = Promise.withResolvers<void>();
  const answers = ['Paris.', 'And of Spain, Madrid.'];
  const { conversations, sent } = setUp(
    { policy: 'steer' },
    {
      async next(_, { turn, emit }) {
        const answer = answers[turn - 1]!;
        emit({ type: 'text', text: answer });
        await streamed;
        return reply(answer);
      },
    },
  );
  const first = conversations.processMessage('c', 'Capital of France?');
  await flushMicrotasks();
  const second = conversations.processMessage('c', 'And Spain?');
  await flushMicrotasks();
  finish();
  expect(await first).toMatchObject({ status: 'answered', text: 'Paris.\n\nAnd of Spain, Madrid.' });
  expect((await second).status).toBe('steered');
  expect(sent.map(({ text }) => text)).toEqual(['Paris.\n\nAnd of Spain, Madrid.']);
});

test('replies of one conversation are sent one at a time, in order; another conversation does not wait', async () => {
  const { promise: sentFirst, resolve: finishSending } = Promise.withResolvers<void>();
  const sent: string[] = [];
  const { conversations } = setUp(
    {
      policy: 'queue',
      onReply: async ({ messageId }) => {
        sent.push(`sending ${messageId}`);
        if (messageId === 'one') await sentFirst;
        sent.push(`sent ${messageId}`);
      },
    },
    { next: () => reply('ok') },
  );
  const say = (id: string, messageId: string) => conversations.processMessage(id, messageId, { messageId });
  await Promise.all([say('c', 'one'), say('c', 'two'), say('d', 'other')]);
  expect(sent).toEqual(['sending one', 'sending other', 'sent other']);
  const disposed = conversations[Symbol.asyncDispose]();
  finishSending();
  await disposed;
  expect(sent.slice(3)).toEqual(['sent one', 'sending two', 'sent two']);
});

test('a reply that is never sent holds up the next ones for 10 s', async () => {
  const sent: string[] = [];
  const { conversations, clock } = setUp(
    {
      policy: 'queue',
      onReply: ({ messageId }) => (sent.push(messageId) === 1 ? new Promise(() => {}) : undefined),
    },
    { next: () => reply('ok') },
  );
  await Promise.all(['one', 'two'].map((messageId) => conversations.processMessage('c', 'x', { messageId })));
  await clock.advance(9_999);
  expect(sent).toEqual(['one']);
  await clock.advance(1);
  expect(sent).toEqual(['one', 'two']);
});

test('disposing stops every run and waits for its end; later messages are cancelled immediately', async () => {
  const { conversations, clock } = setUp();
  const first = conversations.processMessage('c', 'a');
  const debouncing = conversations.processMessage('d', 'b', { debounceMs: 60_000 });
  await flushMicrotasks();
  const disposed = conversations[Symbol.asyncDispose]();
  await clock.advance(6_000);
  await disposed;
  expect(await first).toMatchObject({ status: 'cancelled', outcome: { reason: { kind: 'shutdown' } } });
  expect((await debouncing).status).toBe('cancelled');
  expect((await conversations.processMessage('c', 'late')).status).toBe('cancelled');
  expect(clock.pending).toBe(0);
});

test('debounced messages can be cancelled, and the cancel has a receipt', async () => {
  const { conversations, clock } = setUp();
  const debouncing = conversations.processMessage('c', 'a', { debounceMs: 500 });
  expect(conversations.cancel('c', 'no')).toMatchObject({
    result: 'accepted',
    reason: { message: 'no' },
    killAt: clock.now(),
  });
  expect((await debouncing).status).toBe('cancelled');
  expect(clock.pending).toBe(0);
  expect(conversations.cancel('c')).toEqual({ result: 'too-late' });
});

test('a describeCancel that throws is reported; the message gets the default text, and so do later ones', async () => {
  const errors: unknown[] = [];
  const { conversations, clock } = setUp({
    describeCancel: () => {
      throw new Error('no words');
    },
    hooks: { 'hook-error': ({ hook, error }) => errors.push([hook, error]) },
  });
  const first = conversations.processMessage('c', 'a');
  await flushMicrotasks();
  conversations.cancel('c');
  await clock.advance(6_000);
  expect(await first).toMatchObject({ status: 'cancelled', text: 'Stopped. Done so far: lookup.' });
  expect(errors).toEqual([['describeCancel', new Error('no words')]]);
  const second = conversations.processMessage('c', 'b');
  await clock.advance(6_000);
  expect((await second).status).toBe('answered');
});

test('an agent that throws when it is started fails the message, is reported, and later messages are processed', async () => {
  const errors: unknown[] = [];
  const { conversations, clock } = setUp({ hooks: { 'hook-error': ({ error }) => errors.push(error) } });
  const fine = createAgent({ name: 'fine', planner: { next: () => reply('yes') } });
  let isBroken = true;
  const agent = {
    ...fine,
    run: (...args: Parameters<typeof fine.run>) => {
      if (isBroken) throw new Error('two tools are named alike');
      return fine.run(...args);
    },
  };
  const broken = createConversations({ agent, hooks: { 'hook-error': ({ error }) => errors.push(error) } });
  expect((await broken.processMessage('c', 'one')).status).toBe('failed');
  expect(errors).toEqual([new Error('two tools are named alike')]);
  isBroken = false;
  expect((await broken.processMessage('c', 'two')).status).toBe('answered');
  expect(broken.history('c').map(({ role }) => role)).toEqual(['user', 'user', 'assistant']);
  await conversations[Symbol.asyncDispose]();
  expect(clock.pending).toBe(0);
});

test('too many conversations never forget one that is new or busy: no two runs of one live at the same time', async () => {
  const { conversations, clock, check } = setUp({ maxConversations: 1, policy: 'queue' }, sleeper());
  const replies = ['a', 'b', 'b', 'c'].map((id) => conversations.processMessage(id, id));
  await flushMicrotasks();
  expect(conversations.cancel('b', {}, { mode: 'now' })).toMatchObject({ result: 'accepted' });
  expect((await Promise.all(replies.slice(1, 3))).map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
  await clock.advance(1_000);
  expect((await replies[0])!.status).toBe('answered');
  expect((await replies[3])!.status).toBe('answered');
  await conversations.processMessage('d', 'd', { signal: AbortSignal.abort() });
  expect(['a', 'b', 'c', 'd'].filter((id) => conversations.history(id).length > 0).length).toBeLessThan(3);
  check();
});

/** Thinks for a second, and then repeats its last input. */
function sleeper(): Planner {
  return {
    async next(history, { token }) {
      await sleep(1_000, { clock: token.clock, token });
      return reply(wordsSaid(history).at(-1)!);
    },
  };
}

const wordsSaid = (history: readonly Message[]): string[] =>
  history.flatMap((message) => (message.role === 'user' ? [toText(message.content)] : []));

test('a conversation is not forgotten while its answer is being sent', async () => {
  let second: Promise<Reply> | undefined;
  const { conversations } = setUp(
    {
      maxConversations: 1,
      onReply: ({ conversationId }) => {
        if (conversationId === 'a') second = conversations.processMessage('b', 'x');
      },
    },
    { next: (history) => reply(`${history.length}`) },
  );
  expect((await conversations.processMessage('a', 'x')).text).toBe('1');
  expect((await second!).text).toBe('1');
  expect((await conversations.processMessage('b', 'y')).text).toBe('3');
});

test('a steered message that is withdrawn is neither delivered nor run', async () => {
  const { conversations, clock, recorder, check } = setUp();
  const [heard, handedBack] = [new CancellationToken({ clock }), new AbortController()];
  const first = conversations.processMessage('c', 'a');
  await flushMicrotasks();
  const steered = conversations.processMessage('c', 'b', { policy: 'steer', token: heard });
  heard.cancel();
  expect((await steered).status).toBe('cancelled');
  await clock.advance(6_000);
  expect((await first).text).toBe('a');

  const second = conversations.processMessage('c', 'c');
  await flushMicrotasks();
  const late = conversations.processMessage('c', 'd', { policy: 'steer', signal: handedBack.signal });
  const kept = conversations.processMessage('c', 'e', { policy: 'steer' });
  conversations.cancel('c', {}, { mode: 'now' });
  handedBack.abort();
  expect((await late).status).toBe('cancelled');
  expect((await kept).status).toBe('cancelled');
  await clock.advance(12_000);
  expect((await second).status).toBe('cancelled');
  expect(wordsSaid(conversations.history('c'))).toEqual(['a', 'c']);
  expect(recorder.history.filter((one) => one.seen === 'event' && one.event.type === 'run-start')).toHaveLength(2);
  expect(heard.statistics).toEqual({ children: 0, listeners: 0 });
  check();
});

test('a steered message that is withdrawn after its run failed is not run', async () => {
  const failing: Planner = {
    async next(_history, { token }) {
      await sleep(1_000, { clock: token.clock, token });
      throw new Error('no model');
    },
  };
  const { conversations, clock, recorder } = setUp({}, failing);
  const first = conversations.processMessage('c', 'a');
  await flushMicrotasks();
  const token = new CancellationToken({ clock });
  const steered = conversations.processMessage('c', 'b', { policy: 'steer', token });
  await clock.advance(500);
  token.cancel({}, { mode: 'kill' });
  expect((await steered).status).toBe('cancelled');
  await clock.advance(2_000);
  expect((await first).status).toBe('failed');
  expect(recorder.history.filter((one) => one.seen === 'event' && one.event.type === 'run-start')).toHaveLength(1);
});

test.each([false, true])(
  'undo asked for through the token of a message is carried out (asked for later: %s)',
  async (later) => {
    const world = createVirtualWorld();
    let undone = 0;
    const book = defineTool({
      name: 'book',
      description: '',
      inputSchema: z.object({}),
      execute: () => 'booked',
      undo: () => {
        undone++;
      },
    });
    const planner: Planner = {
      async next(history, { token }) {
        if (history.length === 1) return callTools([{ id: '1', tool: 'book', input: {} }]);
        await new Promise<void>((resolve) => token.clock.setTimer(1_000, resolve));
        return reply('done');
      },
    };
    const conversations = createConversations({
      agent: createAgent({ name: 'a', planner, tools: [book], world }),
      world,
    });
    const token = new CancellationToken({ clock: world.clock });
    const answering = conversations.processMessage('c', 'x', { token });
    await flushMicrotasks();
    token.cancel({ kind: 'user' }, { undo: !later });
    if (later) token.cancel({}, { undo: true });
    await world.clock.advance(20_000);
    expect(await answering).toMatchObject({
      status: 'cancelled',
      outcome: { stop: { calls: [{ tool: 'book', undo: 'undone' }] } },
    });
    expect(undone).toBe(1);
  },
);

test('a message delivered again is known while it has no answer, no matter how many came since', async () => {
  const { conversations, clock } = setUp({}, { next: () => reply('ok') });
  const send = (i: number) => conversations.processMessage('c', `${i}`, { messageId: `${i}`, debounceMs: 100 });
  const replies = Array.from({ length: MAX_SEEN_MESSAGES + 1 }, (_, i) => send(i));
  expect((await send(0)).status).toBe('duplicate');
  await clock.advance(100);
  const statuses = (await Promise.all(replies)).map(({ status }) => status);
  expect(statuses.at(-1)).toBe('answered');
  expect(new Set(statuses.slice(0, -1))).toEqual(new Set(['merged']));
});

test('a message can be held back for longer than a timer of the system lasts', async () => {
  const conversations = createConversations({
    agent: createAgent({ name: 'a', planner: { next: () => reply('ok') } }),
  });
  const held = conversations.processMessage('c', 'x', { debounceMs: 2 ** 31 });
  await new Promise((resolve) => setImmediate(resolve));
  expect(conversations.history('c')).toEqual([]);
  conversations.cancel('c');
  expect((await held).status).toBe('cancelled');
});

test('the events of the run that answers a message can be followed as they happen', async () => {
  const errors: unknown[] = [];
  const { conversations, clock, check } = setUp({ hooks: { 'hook-error': ({ hook }) => errors.push(hook) } });
  const seen: Record<string, string[]> = { a: [], b: [] };
  const send = (text: string) =>
    conversations.processMessage('c', text, {
      policy: 'queue',
      onEvent: ({ type }) => {
        seen[text]!.push(type);
        if (type === 'run-start') throw new Error('no reader');
      },
    });
  const replies = [send('a'), send('b')];
  await clock.advance(1_000);
  expect(seen['a']).toContain('call-start');
  expect(seen['b']).toEqual([]);
  await clock.advance(11_000);
  expect((await Promise.all(replies)).map(({ status }) => status)).toEqual(['answered', 'answered']);
  expect([seen['a']!.at(-1), seen['b']!.at(0), seen['b']!.at(-1)]).toEqual(['run-end', 'run-start', 'run-end']);
  expect(errors).toEqual(['onEvent', 'onEvent']);
  check();
});

test('hooks receive cancels: who asked, each level, calls that delay the stop, and cancels without a run', async () => {
  const events: ConversationEvent[] = [];
  const { conversations, clock } = setUp({ hooks: { any: (event) => events.push(event) } });
  const seen = () =>
    events.splice(0).flatMap((event) => {
      if (event.type === 'cancel-requested')
        return [`${event.receipt} ${event.reason.message} ${event.runId !== undefined}`];
      return event.type === 'level-changed' ? [event.level] : [];
    });
  const first = conversations.processMessage('c', 'a');
  await flushMicrotasks();
  conversations.cancel('c', 'one');
  conversations.cancel('c', 'two', { mode: 'now' });
  expect(seen()).toEqual(['accepted one true', 'drain', 'abort', 'escalated two true']);
  await clock.advance(2_000);
  expect(seen()).toEqual(['kill']);
  expect((await first).status).toBe('cancelled');
  conversations.cancel('c', 'three');
  expect(seen()).toEqual(['too-late three false']);
  const debouncing = conversations.processMessage('c', 'b', { debounceMs: 10 });
  conversations.cancel('c', 'four');
  expect(seen()).toEqual(['accepted four false']);
  await debouncing;
  await clock.advance(10_000);
});

test('a newer message that comes while the older run is being started replaces it', async () => {
  const { conversations, clock, check } = setUp();
  let newer: Promise<Reply> | undefined;
  const older = conversations.processMessage('c', 'old', {
    onEvent: ({ type }) => {
      if (type === 'run-start') newer = conversations.processMessage('c', 'new');
    },
  });
  await clock.advance(6_000);
  expect(await older).toMatchObject({ status: 'superseded', outcome: { turns: 0 } });
  expect((await newer!).text).toBe('old + new');
  check();
});

test('a message that comes while the answer before it is sent finds no run under way', async () => {
  let next: Promise<Reply> | undefined;
  const { conversations } = setUp(
    { policy: 'reject', onReply: () => (next ??= conversations.processMessage('c', 'next')) },
    { next: () => reply('ok') },
  );
  await conversations.processMessage('c', 'one');
  expect((await next!).status).toBe('answered');
});

/** Sending takes a while. */
function slowSender() {
  const sent: Reply[] = [];
  const onReply = async (reply: Reply): Promise<void> => {
    await flushMicrotasks();
    sent.push(reply);
  };
  return { sent, onReply };
}

describe('a conversation whose message is being received is not idle', () => {
  type Setup = ReturnType<typeof setUp>;
  function setUpHook(options: Partial<ConversationsOptions>, act: (setup: Setup) => unknown) {
    let once = true;
    const setup: Setup = setUp({
      ...options,
      hooks: {
        'message-received': ({ conversationId }) => {
          if (conversationId !== 'c' || !once) return;
          once = false;
          act(setup);
        },
      },
    });
    return setup;
  }

  test.each<[string, Partial<ConversationsOptions>, (setup: Setup) => unknown]>([
    ['its removal', {}, ({ conversations }) => conversations.remove('c')],
    [
      'a message to another, where there may be one',
      { maxConversations: 1 },
      ({ conversations }) => void conversations.processMessage('other', 'audit', { policy: 'queue' }),
    ],
  ])('%s in the hook does not forget it', async (_, options, act) => {
    const planner: Planner = {
      async next(_history, { token }) {
        await sleep(1_000, { token });
        return reply('done');
      },
    };
    const world = createVirtualWorld();
    const agent = createAgent({ name: 'a', planner, world });
    const { conversations } = setUpHook({ agent, world, ...options }, act);
    const one = conversations.processMessage('c', 'one');
    await world.clock.advance(500);
    const two = conversations.processMessage('c', 'two', { policy: 'queue' });
    expect(conversations.cancel('c')).toMatchObject({ result: 'accepted' });
    expect([(await one).status, (await two).status]).toEqual(['cancelled', 'cancelled']);
    expect(conversations.history('c')).toMatchObject([{ content: 'one' }]);
  });

  test('a cancel in the hook stops the message, and its receipt is true', async () => {
    const receipts: unknown[] = [];
    const { conversations, sent } = setUpHook({}, ({ conversations: all }) => receipts.push(all.cancel('c')));
    expect(await conversations.processMessage('c', 'one')).toMatchObject({ status: 'cancelled' });
    expect(receipts).toMatchObject([{ result: 'accepted' }]);
    expect(sent).toHaveLength(1);
    expect(conversations.cancel('c')).toEqual({ result: 'too-late' });
  });

  test('disposing them all in the hook cancels the message, and waits until its reply is sent', async () => {
    let disposing: PromiseLike<void> | undefined;
    const { sent, onReply } = slowSender();
    const { conversations } = setUpHook({ onReply }, ({ conversations: all }) => {
      disposing = all[Symbol.asyncDispose]();
    });
    const reply = conversations.processMessage('c', 'one');
    await disposing;
    expect(sent).toMatchObject([{ status: 'cancelled' }]);
    expect(await reply).toMatchObject({ status: 'cancelled' });
  });
});

test('disposing waits until the reply to a message that is held back is sent', async () => {
  const { sent, onReply } = slowSender();
  const { conversations } = setUp({ onReply });
  const reply = conversations.processMessage('c', 'one', { debounceMs: 1_000 });
  await flushMicrotasks();
  await conversations[Symbol.asyncDispose]();
  expect(sent).toMatchObject([{ status: 'cancelled' }]);
  await reply;
});
