import type { PauseTarget, TaskStore } from '@whoa/tasks';
import { commandName } from '../terminal/command-name.ts';
import { oneLine } from '../terminal/text/plain-text.ts';

const MAX_NAME_CHARACTERS = 80;
const MAX_PATH_CHARACTERS = 4_096;
/** The most pauses that a store lists. */
const MAX_PAUSES = 100;

/** Where a command found its tasks. */
export interface SourceNames {
  readonly server?: string | undefined;
  readonly config?: string | undefined;
}

type Deliverable = Readonly<Record<'agent' | 'tenant', string>>;

export async function listPauses(store: Pick<TaskStore, 'queues'>): Promise<readonly PauseTarget[]> {
  return (await store.queues({ limit: MAX_PAUSES })).paused;
}

/** Returns the pause that keeps a task from starting. */
export function findPause(paused: readonly PauseTarget[], { agent, tenant }: Deliverable): PauseTarget | undefined {
  return paused.find((target) => ('agent' in target ? target.agent === agent : target.tenant === tenant));
}

export function describeTarget(target: PauseTarget): string {
  const [kind, name] = toPair(target);
  return `${kind} ${oneLine(name, MAX_NAME_CHARACTERS)}`;
}

/** The command that ends a pause, to be pasted into a shell. */
export function describeResume(target: PauseTarget, env: NodeJS.ProcessEnv, { server, config }: SourceNames): string {
  const [kind, name] = toPair(target);
  const from = server !== undefined ? ` --server ${quoted(server)}` : config ? ` --config ${quoted(config)}` : '';
  return `${commandName(env)} resume --${kind} ${quoted(name, MAX_NAME_CHARACTERS)}${from}`;
}

/** Explains to a user why their task does not start. */
export function explainPause(target: PauseTarget, env: NodeJS.ProcessEnv, from: SourceNames): string {
  return `${describeTarget(target)} is paused, so no task of it starts; to end the pause: ${describeResume(target, env, from)}`;
}

function toPair(target: PauseTarget): readonly [kind: string, name: string] {
  return 'agent' in target ? ['agent', target.agent] : ['tenant', target.tenant];
}

function quoted(text: string, max = MAX_PATH_CHARACTERS): string {
  return /^[\w.@:/-]+$/.test(text) ? text : `'${oneLine(text, max).replaceAll("'", "'\\''")}'`;
}
