// Two users in one channel: whatever runs for a message sees the context of its sender, and of no one else.
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type AppContext,
  createAgent,
  createAgentTool,
  createConversations,
  defineTool,
  type Policy,
  type Tool,
  toText,
} from '@whoa/core';
import { callTools, type Planner, reply } from '@whoa/core/model';
import { createStoreConversations, createTaskStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createWorkspace } from './workspace.ts';

const current = new AsyncLocalStorage<string>();

/** Who sent the message that is being answered, whose context was given, and whose async context it is. */
interface Sighting {
  readonly where: string;
  readonly sender?: string;
  readonly context: unknown;
  readonly async: string | undefined;
}

/** An agent that tells, wherever it runs code of the app, for whom. Its first run waits until it is released. */
function setUp() {
  const seen: Sighting[] = [];
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const see = (where: string, context: AppContext | undefined, sender?: string): void => {
    seen.push({
      where,
      context: (context as { user?: unknown } | undefined)?.user,
      async: current.getStore(),
      ...(sender !== undefined && { sender }),
    });
  };
  const look = (where: string): Tool =>
    defineTool({
      name: 'look',
      description: 'Looks',
      inputSchema: z.object({ task: z.string() }),
      needsApproval(_, { context }) {
        see(`${where} needsApproval`, context);
        return true;
      },
      async execute({ task }, { context }) {
        see(where, context, task);
        await released;
        see(`${where}, later`, context, task);
        return 'seen';
      },
    }) as Tool;
  const calling = (...tools: string[]): Planner => ({
    next(history, { turn }) {
      if (turn > 1) return reply('ok');
      const last = history.findLastIndex(({ role }) => role !== 'user');
      const senders = new Set(history.slice(last + 1).map(({ content }) => toText(content as string).split(' ')[0]));
      const task = [...senders].join(' and ');
      return callTools(tools.map((tool) => ({ id: `${tool}${turn}`, tool, input: { task } })));
    },
  });
  const hooks = {
    'call-start': (_: unknown, { context }: { context?: AppContext | undefined }) => see('hook', context),
    'run-end': (_: unknown, { context }: { context?: AppContext | undefined }) => see('run-end', context),
  };
  const helper = createAgent({ name: 'helper', planner: calling('look'), tools: [look('sub-agent')] });
  const agent = createAgent({
    name: 'assistant',
    planner: calling('look', 'helper'),
    tools: [look('tool'), createAgentTool(helper, { description: 'Helps' }) as Tool],
    hooks,
    approve(_, { context }) {
      see('approve', context);
      return true;
    },
  });
  return { agent, seen, see, release };
}

const WHERE = [
  'approve',
  'hook',
  'onEvent',
  'onReply',
  'run-end',
  'sub-agent',
  'sub-agent needsApproval',
  'sub-agent, later',
  'tool',
  'tool needsApproval',
  'tool, later',
];

/** The fate of each message if none is held back. */
const EXPECTED: Readonly<Record<Policy, readonly string[]>> = {
  replace: ['ann superseded', 'bob superseded', 'bob superseded', 'ann superseded', 'bob answered'],
  queue: ['ann answered', 'bob answered', 'bob answered', 'ann answered', 'bob answered'],
  merge: ['ann answered', 'bob merged', 'bob answered', 'ann answered', 'bob answered'],
  steer: ['ann answered', 'bob answered', 'bob answered', 'ann steered', 'bob answered'],
  reject: ['ann answered', 'bob rejected', 'bob rejected', 'ann rejected', 'bob rejected'],
};

const CASES = (['replace', 'queue', 'merge', 'steer', 'reject'] as const).flatMap((policy) =>
  [0, 30].flatMap((debounceMs) =>
    (['memory', 'store in memory', 'store in SQLite'] as const).map((kind) => [policy, debounceMs, kind] as const),
  ),
);

test.each(CASES)('%s, debounced by %i ms, %s', async (policy, debounceMs, kind) => {
  using workspace = createWorkspace();
  const { agent, seen, see, release } = setUp();
  const sent: string[] = [];
  const onReply = ({ messageId }: { messageId: string }): void => {
    const [sender = ''] = messageId.split(' ');
    sent.push(messageId);
    see('onReply', { user: sender });
  };
  await using store = createTaskStore(
    kind === 'store in SQLite' ? { backend: 'sqlite', file: workspace.at('tasks.db') } : { backend: 'memory' },
  );
  await using conversations =
    kind === 'memory' ? createConversations({ agent, onReply }) : createStoreConversations({ agent, store, onReply });
  const say = async (user: string, text: string): Promise<string> => {
    const started = current.run(user, () =>
      conversations.processMessage('channel', `${user} ${text}`, {
        policy,
        debounceMs,
        messageId: `${user} ${text}`,
        context: { user, nested: { b: 1, a: [text.length] } },
        onEvent: (event) => {
          if (event.type === 'run-start') see('onEvent', { user });
        },
      }),
    );
    return `${user} ${(await started).status}`;
  };
  const first = say('ann', '1');
  await expect.poll(() => seen.some(({ where }) => where === 'tool')).toBe(true);
  const rest = [say('bob', '2'), say('bob', '3'), say('ann', '4'), say('bob', '5')];
  // All of them have arrived once the store has them; in memory, immediately.
  if (kind !== 'memory') {
    const arrived = async () => (await store.list({ tenant: 'default' })).tasks.length;
    await expect.poll(arrived).toBe(policy === 'reject' && debounceMs === 0 ? 1 : 5);
  }
  release();
  const statuses = await Promise.all([first, ...rest]);
  const wrong = seen.filter(({ context, async, sender = context }) => context !== async || sender !== context);
  expect(wrong).toEqual([]);
  expect([...new Set(seen.map(({ where }) => where))].sort()).toEqual(WHERE);
  expect(statuses.filter((status) => !/ (answered|superseded|merged|steered|rejected)$/.test(status))).toEqual([]);
  const expected = EXPECTED[policy];
  if (debounceMs === 0) expect(statuses).toEqual(expected);
});
