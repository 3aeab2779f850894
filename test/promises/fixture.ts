// The environment for a promise: a model behind a socket that rejects what vendors reject, a folder, a record of the
// tools' real effects, and checks of the machine from outside.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type LoopbackProvider, type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
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
  /** An argument of every process that a command of `tree` starts. */
  readonly mark: string;
  /** A command that starts five processes, two of them outside its process group. */
  readonly tree: string;
  /** The tools' real effects so far, in every process. */
  effects(): readonly TimedEffect[];
  /** Resolves when a tool has started. */
  started(tool: string, times?: number): Promise<void>;
  /** The marked processes that run now. */
  processes(): number[];
  at(name: string): string;
}

export interface TimedEffect extends Effect {
  readonly at: number;
  readonly pid: number;
}

/** A request to the model: the user's last message, and how many results came after it. */
interface Asked {
  readonly index: number;
  readonly said: string;
  readonly results: number;
}

/** Responses in order, or chosen by the request. */
export type Answers = readonly ScriptedResponse[] | ((asked: Asked) => ScriptedResponse | undefined);

/** The model's text when nothing else is scripted. */
export const DONE = 'All done.';

const POLL_INTERVAL_MS = 5;
const WAIT_MS = 60_000;
let fixtures = 0;

/** Opens a fixture whose model gives these responses, and then ends. */
export async function openFixture(answers: Answers = []): Promise<Fixture> {
  const provider = await startLoopbackProvider({
    script: ({ index, body }) =>
      (typeof answers === 'function' ? answers({ index, ...getLast(body) }) : answers[index]) ?? {
        parts: [{ text: DONE }],
      },
  });
  const home = createHome({ 'config/whoa/whoa.config.mjs': configFor(provider.url) });
  const folder = home.folder.path;
  const mark = `4${String(++fixtures).padStart(3, '0')}.${process.pid}`;
  const effects = (): TimedEffect[] => readLines(join(folder, EFFECTS)).map((line) => JSON.parse(line) as TimedEffect);
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
function getLast(body: Readonly<Record<string, unknown>>): Omit<Asked, 'index'> {
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

/** The lines of a file that may still be growing. */
export function readLines(path: string): string[] {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
}

/** Polls until the condition holds: there is no event for another process's exits and files. */
export async function until(condition: () => boolean | Promise<boolean>, withinMs: number = WAIT_MS): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not so after ${withinMs} ms: ${condition.toString()}`);
    await wait(POLL_INTERVAL_MS);
  }
}

/** Merges what clients saw and what tools did into one history, in order of time. */
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
