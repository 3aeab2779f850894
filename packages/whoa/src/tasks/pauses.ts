import type { PauseTarget, TaskStore } from '@whoa/tasks';
import { UsageError } from '../command.ts';
import { commandName } from '../terminal/command-name.ts';
import type { Screen } from '../terminal/screen.ts';
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
  const isOf = (target: PauseTarget): boolean =>
    'all' in target || ('agent' in target ? target.agent === agent : target.tenant === tenant);
  return paused.find(isOf);
}

export function describeTarget(target: PauseTarget): string {
  const [kind, name] = toPair(target);
  return name === undefined ? 'all agents and tenants' : `${kind} ${oneLine(name, MAX_NAME_CHARACTERS)}`;
}

/** The command that ends a pause, to be pasted into a shell. */
export function describeResume(target: PauseTarget, env: NodeJS.ProcessEnv, { server, config }: SourceNames): string {
  const [kind, name] = toPair(target);
  const from = server !== undefined ? ` --server ${quoted(server)}` : config ? ` --config ${quoted(config)}` : '';
  return `${commandName(env)} resume --${kind}${name === undefined ? '' : ` ${quoted(name, MAX_NAME_CHARACTERS)}`}${from}`;
}

/** Tells a user which pauses there are when a program starts whose tasks wait for them. */
export async function notePauses(
  store: Pick<TaskStore, 'queues'>,
  screen: Screen,
  { env, ...from }: SourceNames & { env: NodeJS.ProcessEnv },
): Promise<void> {
  if (screen.asJson) return;
  for (const target of await listPauses(store).catch(() => [])) screen.note(explainPause(target, env, from));
}

/** Explains to a user why their task does not start. */
export function explainPause(target: PauseTarget, env: NodeJS.ProcessEnv, from: SourceNames): string {
  const what =
    'all' in target
      ? 'everything is paused, so no task starts'
      : `${describeTarget(target)} is paused, so no task of it starts`;
  return `${what}; to end the pause: ${describeResume(target, env, from)}`;
}

/** Reads which deliveries a command is about; `undefined` if it says none. */
export function readTarget(asked: {
  readonly all?: boolean | undefined;
  readonly agent?: string | undefined;
  readonly tenant?: string | undefined;
}): PauseTarget | undefined {
  const { all = false, agent, tenant } = asked;
  if (agent === '' || tenant === '') throw new UsageError('expected a name');
  const given = [all && '--all', agent !== undefined && '--agent', tenant !== undefined && '--tenant'].filter(Boolean);
  if (given.length > 1) throw new UsageError(`${given.join(' and ')} cannot be combined`);
  if (all) return { all: true };
  if (agent !== undefined) return { agent };
  return tenant === undefined ? undefined : { tenant };
}

function toPair(target: PauseTarget): readonly [kind: string, name?: string] {
  if ('all' in target) return ['all'];
  return 'agent' in target ? ['agent', target.agent] : ['tenant', target.tenant];
}

function quoted(text: string, max = MAX_PATH_CHARACTERS): string {
  return /^[\w.@:/-]+$/.test(text) ? text : `'${oneLine(text, max).replaceAll("'", "'\\''")}'`;
}
