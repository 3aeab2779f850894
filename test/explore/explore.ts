// Explores schedules: events of a conversation, in any order, checked against the promises.
//   node --conditions=@whoa/source test/explore/explore.ts [--schedules N] [--seed N] [--core FOLDER]
// `--core` names a folder with the sources of another core, for example one with a planted bug.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import fc from 'fast-check';

type Core = typeof import('../../packages/core/src/index.ts') &
  typeof import('../../packages/core/src/embed/index.ts') &
  typeof import('../../packages/core/src/model/index.ts');
type Testing = typeof import('../../packages/core/src/testing/index.ts');
type Violation = ReturnType<Testing['checkHistory']>[number];

const { values } = parseArgs({
  options: {
    schedules: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    core: { type: 'string', default: join(import.meta.dirname, '../../packages/core/src') },
  },
});

const load = (file: string): Promise<object> => import(pathToFileURL(join(values.core, file)).href) as Promise<object>;
const core = Object.assign(
  {},
  ...(await Promise.all(['index.ts', 'embed/index.ts', 'model/index.ts'].map(load))),
) as Core;
const testing = (await load('testing/index.ts')) as Testing;

/** External events for the assistant. Each happens once, when it is scheduled. */
const actions = [
  'cancel',
  'escalate',
  'kill',
  'message',
  'queue',
  'cancel-call',
  'dispose',
  'tick',
  'tick',
  'tick',
] as const;
const story = fc.record({
  scheduler: fc.scheduler(),
  actions: fc.subarray([...actions], { minLength: 2 }),
  turns: fc.integer({ min: 1, max: 2 }),
});

const anything: import('../../packages/core/src/embed/index.ts').InputSchema = {
  '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) },
};

async function runSchedule(
  scheduler: fc.Scheduler,
  happens: readonly (typeof actions)[number][],
  turns: number,
): Promise<Violation[]> {
  const world = testing.createVirtualWorld();
  const recorder = testing.createRecorder();
  const root = new core.CancellationToken({ name: 'root', clock: world.clock });
  const plain = { description: '', inputSchema: anything, effects: 'read' as const };
  const later = (label: string) => scheduler.schedule(Promise.resolve(), label);
  const tools = [
    core.defineTool({ ...plain, name: 'finishes', execute: () => later('finish').then(() => 'a') }),
    core.defineTool({
      ...plain,
      name: 'fails',
      execute: () => later('fail').then(() => Promise.reject(new Error('b'))),
    }),
    core.defineTool({
      ...plain,
      name: 'obeys',
      execute: (_input, { signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
        ),
    }),
    core.defineTool({
      ...plain,
      name: 'pays',
      whenCancelled: 'finish',
      timeoutMs: 5_000,
      execute: () => later('pay').then(() => 'paid'),
    }),
    core.defineTool({ ...plain, name: 'deaf', timeoutMs: 20_000, execute: () => later('deaf').then(() => 'late') }),
  ];
  let calls = 0;
  const call = (tool: string, dependsOn: string[] = []) => ({ id: `${tool}-${++calls}`, tool, input: {}, dependsOn });
  const agent = core.createAgent({
    name: 'assistant',
    world,
    hooks: recorder.hooks,
    tools: tools.map((tool) => recorder.tool(tool)),
    planner: {
      next(_history, { turn }) {
        if (turn > turns) return later('plan').then(() => core.reply('done'));
        const first = call('finishes');
        return core.callTools([
          first,
          call('fails'),
          call('obeys'),
          call('pays', [first.id]),
          call('deaf', [first.id]),
        ]);
      },
    },
  });
  const live: import('../../packages/core/src/index.ts').Run[] = [];
  const conversations = core.createConversations({
    world,
    agent: {
      ...agent,
      run(input, options) {
        const run = recorder.run(agent.run(input, { ...options, token: root }));
        live.push(run);
        return run;
      },
    },
  });
  const replies = [conversations.processMessage('c', 'first', { token: root })];
  const onlooker = core.waitUntilLevel(later('wait'), root, 'kill');
  const act: Record<(typeof actions)[number], () => unknown> = {
    cancel: () => live.at(-1)?.cancel({ message: 'cancel' }),
    escalate: () => live.at(-1)?.cancel({ message: 'escalate' }, { mode: 'now' }),
    kill: () => live[0]?.cancel({ message: 'kill' }, { mode: 'kill' }),
    message: () => replies.push(conversations.processMessage('c', 'newer', { token: root })),
    queue: () => replies.push(conversations.processMessage('c', 'queued', { policy: 'queue' })),
    'cancel-call': () => live.at(-1)?.cancelCall('obeys-3'),
    dispose: () => root[Symbol.dispose](),
    // Time passes only after all reactions to earlier events.
    tick: () => testing.flushMicrotasks().then(() => world.clock.fireNext()),
  };
  const deferred = happens.map((action) => later(action).then(() => act[action]()));
  let settled = false;
  const done = Promise.all([...deferred, ...replies, onlooker])
    .then(() => Promise.all(replies))
    .then(() => (settled = true));
  while (scheduler.count() > 0) await scheduler.waitNext(1);
  // No more events are pending: let time pass until everything has ended.
  for (let step = 0; !settled && step < 200; step++) {
    await testing.flushMicrotasks();
    while (scheduler.count() > 0) await scheduler.waitNext(1);
    // Work that waits only for an external signal gets it.
    if (!settled && !world.clock.fireNext()) for (const run of live) run.cancel({ message: 'end' }, { mode: 'kill' });
  }
  if (settled) await done;
  await testing.flushMicrotasks();
  recorder.recordToken(root);
  return testing.checkHistory(recorder.history);
}

let schedules = 0;
const result = await fc.check(
  fc.asyncProperty(story, async ({ scheduler, actions: happens, turns }) => {
    schedules++;
    const violations = await runSchedule(scheduler, happens, turns);
    if (violations.length > 0) throw new Error(violations.map(({ promise, what }) => `${promise} ${what}`).join('\n'));
  }),
  { numRuns: Number(values.schedules), seed: Number(values.seed), endOnFailure: true },
);
console.log(
  JSON.stringify({
    schedules,
    violation: result.failed ? String(result.errorInstance) : undefined,
    story: result.failed ? fc.stringify(result.counterexample) : undefined,
  }),
);
process.exitCode = result.failed ? 1 : 0;
