// Where a promise is tried: a model behind a socket that refuses what vendors refuse, a folder, the record of what tools
// really did, and looks at the machine from outside.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type Answer, type LoopbackProvider, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import type { HistoryEntry } from '@whoa/core/testing';
import type { Effect } from '../../packages/core/src/testing/history.ts';
import { createHome, type Home } from '../command/terminal.ts';
import { findMarked } from '../process-escapes/round.ts';
import { EFFECTS } from './test-agent.ts';

export interface Fixture extends AsyncDisposable {
  readonly provider: LoopbackProvider;
  readonly home: Home;
  /** The folder the tools work in. */
  readonly folder: string;
  /** Stands among the arguments of every process that a command of `tree` starts. */
  readonly mark: string;
  /** A command that starts five processes, two of them out of reach of a process group. */
  readonly tree: string;
  /** What tools really did so far, in every process. */
  effects(): readonly TimedEffect[];
  /** Resolves when a tool has begun. */
  started(tool: string, times?: number): Promise<void>;
  /** The marked processes that run now. */
  processes(): number[];
  at(name: string): string;
}

export interface TimedEffect extends Effect {
  readonly at: number;
  readonly pid: number;
}

/** What the model was asked: the last thing a person said, and how many results it has been given since. */
interface Asked {
  readonly index: number;
  readonly said: string;
  readonly results: number;
}

/** One answer after the other, or by what was asked. */
export type Answers = readonly Answer[] | ((asked: Asked) => Answer | undefined);

/** What the model says when it has nothing else to say. */
export const DONE = 'All done.';

const LOOK_MS = 5;
const WAIT_MS = 30_000;
let fixtures = 0;

/** Opens a scene whose model answers so, and then says that it is done. */
export async function openFixture(answers: Answers = []): Promise<Fixture> {
  const provider = await startLoopbackProvider({
    script: ({ index, body }) =>
      (typeof answers === 'function' ? answers({ index, ...lastOf(body) }) : answers[index]) ?? {
        parts: [{ text: DONE }],
      },
  });
  const home = createHome({ 'config/whoa/whoa.config.mjs': configFor(provider.url) });
  const folder = home.folder.path;
  const mark = `4${String(++fixtures).padStart(3, '0')}.${process.pid}`;
  const effects = (): TimedEffect[] => linesOf(join(folder, EFFECTS)).map((line) => JSON.parse(line) as TimedEffect);
  return {
    provider,
    home,
    folder,
    mark,
    tree: `echo begun; setsid sleep ${mark} & timeout ${mark} sleep ${mark} | tail -s ${mark}`,
    effects,
    started: (tool, times = 1) =>
      until(() => effects().filter((effect) => effect.tool === tool && effect.phase === 'begin').length >= times),
    processes: () => findMarked(mark),
    at: (name) => join(folder, name),
    async [Symbol.asyncDispose]() {
      await provider.close();
      home[Symbol.dispose]();
    },
  };
}

/** Reads a chat request. */
function lastOf(body: Readonly<Record<string, unknown>>): Omit<Asked, 'index'> {
  const messages = (body['messages'] ?? []) as readonly { readonly role: string; readonly content: unknown }[];
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const { content = '' } = messages[at] ?? {};
  return {
    said: typeof content === 'string' ? content : JSON.stringify(content),
    results: messages.slice(at).filter(({ role }) => role === 'tool').length,
  };
}

/** The cast as an agent of the command and of editors. */
function configFor(url: string): string {
  const testAgent = JSON.stringify(join(import.meta.dirname, 'test-agent.ts'));
  return `import { createTestAgent } from ${testAgent};
export default { agents: { cast: ({ cwd, tools }) => createTestAgent({ url: '${url}', folder: cwd, tools }).agent } };
`;
}

/** The lines of a file that somebody may be writing. */
export function linesOf(path: string): string[] {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
}

/** Looks until it is so: nobody tells when a stranger's process or file has come or gone. */
export async function until(condition: () => boolean | Promise<boolean>, withinMs: number = WAIT_MS): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not so after ${withinMs} ms: ${condition.toString()}`);
    await wait(LOOK_MS);
  }
}

/** What clients saw and what tools did, as one history in the order of time. */
export function merged(
  seen: readonly { readonly at: number; readonly entry: HistoryEntry }[],
  effects: readonly TimedEffect[],
): HistoryEntry[] {
  const done = effects.map(({ at, callId, tool, phase }) => ({
    at,
    entry: { seen: 'effect' as const, callId, tool, phase },
  }));
  return [...done, ...seen].toSorted((a, b) => a.at - b.at).map(({ entry }) => entry);
}
