// The tools of a fuzzed run. Each notes what it really did, independently of what the run reports about it.
import { fromAiSdkTools } from '@whoa/ai-sdk';
import { createInterruptedError, defineTool, type Tool, type ToolContext } from '@whoa/core';
import type { ToolDefinition } from '@whoa/core/embed';
import type { VirtualClock } from '@whoa/core/testing';
import { z } from 'zod';
import type { Dice } from './dice.ts';
import type { Found } from './found.ts';

/** What one call really did. */
export interface Execution {
  readonly callId: string;
  readonly tool: string;
  readonly kind: Kind;
  readonly depth: number;
  readonly keys: readonly string[];
  readonly beganAt: number;
  readonly limitMs: number | undefined;
  state: 'running' | 'resolved' | 'rejected';
  endedAt: number;
  /** Its place among all ends. Deferred work belongs to its call. */
  order: number;
  undone: number;
}

const KINDS = [
  'quick',
  'obeys',
  'obeys',
  'deaf',
  'fails',
  'must-finish',
  'must-finish-deaf',
  'streams',
  'cleans-up',
  'reports',
  'partial',
  'plain-data',
  'never',
] as const;
type Kind = (typeof KINDS)[number];

/** What tools share: the clock, the dice, and where they note what they did. */
export interface Workshop {
  readonly clock: VirtualClock;
  readonly dice: Dice;
  readonly found: Found;
  readonly executions: Execution[];
  readonly undone: Execution[];
  /** Counts the ends of calls. */
  readonly ends: { count: number };
  /** Called where anything may happen. */
  act(where: string): void;
  /** Called before something starts. */
  starts(what: string): void;
}

export function wait(clock: VirtualClock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      timer[Symbol.dispose]();
      reject(signal!.reason as Error);
    };
    const timer = clock.setTimer(ms, () => {
      signal?.removeEventListener('abort', stop);
      resolve();
    });
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

const inputSchema = z.object({ n: z.number() });

/** Creates a tool of a random kind. */
export function createRandomTool(workshop: Workshop, depth: number, name: string): Tool {
  const { dice, found } = workshop;
  const kind = dice.pick(KINDS);
  found.count(kind);
  if (kind === 'streams') return createStreamingTool(workshop, depth, name);
  const mustFinish = kind.startsWith('must-finish');
  const limitMs = mustFinish ? dice.pick([100, 1_000, 3_000]) : dice.chance(0.1) ? 700 : undefined;
  const keys = dice.chance(0.2) ? dice.pick([['one'], ['two'], ['one', 'two']]) : [];
  const ms = dice.pick([0, 1, 10, 50, 200, 1_500]);
  const definition = {
    name,
    description: name,
    inputSchema,
    effects: dice.pick(['read', 'write', 'execute'] as const),
    ...(mustFinish && { whenCancelled: 'finish' as const }),
    ...(limitMs !== undefined && { timeoutMs: limitMs }),
    ...(keys.length > 0 && { exclusive: () => keys }),
    async execute(_input: unknown, context: ToolContext) {
      const execution = begin(workshop, context, { kind, depth, tool: name, keys, limitMs });
      if (kind === 'cleans-up')
        context.defer(async () => {
          await wait(workshop.clock, 100);
          execution.order = ++workshop.ends.count;
        });
      try {
        workshop.act(kind);
        const result = await work(kind, workshop, context, ms);
        workshop.act(`${kind}, at its end`);
        end(workshop, execution, 'resolved');
        return result;
      } catch (error) {
        end(workshop, execution, 'rejected');
        throw error;
      }
    },
    ...(dice.chance(0.3) && { undo: (_: unknown, { callId }: { callId: string }) => undo(workshop, depth, callId) }),
  };
  return defineTool(definition as ToolDefinition<unknown>);
}

async function work(kind: Kind, { clock }: Workshop, context: ToolContext, ms: number): Promise<ReturnType> {
  const { signal, token, update } = context;
  if (kind === 'never') await new Promise(() => {});
  if (kind === 'reports') update({ content: 'so far' });
  if (kind === 'partial')
    await wait(clock, ms, signal).catch(() => {
      throw createInterruptedError(token, { content: 'half' });
    });
  else if (kind === 'must-finish-deaf') await wait(clock, 4_000);
  else await wait(clock, ms, kind === 'deaf' || kind === 'must-finish' ? undefined : signal);
  if (kind === 'fails') throw new Error('it failed');
  return kind === 'plain-data' ? { done: [ms] } : { content: 'done', details: { ms } };
}

type ReturnType = Exclude<Awaited<globalThis.ReturnType<Tool['execute']>>, string>;

/** A generator that ignores its signal. Once that has fired, it must not be asked for another step. */
function createStreamingTool(workshop: Workshop, depth: number, name: string): Tool {
  const { clock, found } = workshop;
  async function* execute(
    _input: unknown,
    { toolCallId, abortSignal }: { toolCallId: string; abortSignal?: AbortSignal },
  ) {
    const about = { kind: 'streams', depth, tool: name, keys: [], limitMs: undefined } as const;
    const execution = begin(workshop, { callId: toolCallId }, about);
    let end_: 'resolved' | 'rejected' = 'rejected';
    try {
      for (let step = 0; step < 6; step++) {
        found.expect(abortSignal?.aborted !== true, 'a streaming tool was asked for a step after an abort');
        await wait(clock, 40);
        workshop.act('streams');
        yield `step ${step}`;
      }
      end_ = 'resolved';
    } finally {
      end(workshop, execution, end_);
    }
  }
  return fromAiSdkTools({ [name]: { inputSchema, execute } }, { settings: { [name]: { effects: 'read' } } })[0]!;
}

type About = Pick<Execution, 'kind' | 'depth' | 'tool' | 'keys' | 'limitMs'>;

function begin(
  workshop: Workshop,
  { callId, token }: Pick<ToolContext, 'callId'> & Partial<ToolContext>,
  about: About,
): Execution {
  const { clock, executions, found } = workshop;
  workshop.starts(`${about.kind} tool`);
  const isSame = (one: Execution): boolean => one.callId === callId && one.tool === about.tool;
  found.expect(!executions.some(isSame), `a ${about.kind} call ran twice`);
  const rivals = executions.filter(
    ({ state, keys }) => state === 'running' && keys.some((key) => about.keys.includes(key)),
  );
  found.expect(rivals.length === 0, 'two calls held one key');
  const beganAt = clock.now();
  const execution: Execution = { ...about, callId, beganAt, state: 'running', endedAt: 0, order: 0, undone: 0 };
  if (about.kind.startsWith('must-finish'))
    token?.onCancel(() => found.expect(clock.now() >= beganAt + about.limitMs!, 'a call that must finish was cut off'));
  executions.push(execution);
  return execution;
}

function end({ clock, ends }: Workshop, execution: Execution, state: 'resolved' | 'rejected'): void {
  Object.assign(execution, { state, endedAt: clock.now(), order: ++ends.count });
}

async function undo(
  { clock, dice, found, executions, undone }: Workshop,
  depth: number,
  callId: string,
): Promise<void> {
  const execution = executions.find((one) => one.callId === callId && one.depth === depth);
  found.count('undo');
  found.expect(execution?.state === 'resolved', `undo of a call that is ${execution?.state}`);
  if (execution === undefined) return;
  found.expect(execution.undone++ === 0, 'a call was undone twice');
  undone.push(execution);
  if (dice.chance(0.3)) await wait(clock, 50);
  if (dice.chance(0.1)) throw new Error('undo failed');
}
