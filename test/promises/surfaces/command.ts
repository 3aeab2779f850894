import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { StoreCancelReceipt, TaskStore } from '@whoa/tasks';
import { createSqliteStore } from '@whoa/tasks/internal';
import { BIN } from '../../command/terminal.ts';
import { type Fixture, until } from '../fixture.ts';
import type { Receipt, RunningPrompt, Surface } from './surface.ts';
import { followTask } from './task.ts';

/** Whose the tasks of the command are. */
export const LOCAL = 'local';

/** `whoa run` in a separate process, stopped by `whoa cancel` in another. */
export const commandSurface: Surface = {
  name: 'the command',
  open(fixture) {
    const store = openLocal(fixture);
    const running = new Set<{ readonly kill: (signal: 'SIGKILL') => boolean; readonly over: Promise<unknown> }>();
    return Promise.resolve({
      async start(prompt) {
        const known = new Set((await store.list({ tenant: LOCAL })).tasks.map(({ id }) => id));
        const child = startCommand(fixture, ['run', '--json', '--yes', '--sandbox', 'none', prompt]);
        running.add(child);
        let id: string | undefined;
        await until(async () => {
          id = (await store.list({ tenant: LOCAL })).tasks.find((task) => !known.has(task.id))?.id;
          return id !== undefined;
        });
        return { ...toRunningPrompt(fixture, store, id!), readText: () => Promise.resolve(joinWords(child.lines)) };
      },
      async [Symbol.asyncDispose]() {
        for (const child of running) child.kill('SIGKILL');
        await Promise.all([...running].map(({ over }) => over));
        await store[Symbol.asyncDispose]();
      },
    });
  },
};

function joinWords(lines: readonly unknown[]): string {
  const events = lines as readonly { readonly type: string; readonly text?: string }[];
  return events.map(({ type, text }) => (type === 'text' ? text : '')).join('');
}

function toRunningPrompt(fixture: Fixture, store: TaskStore, id: string): RunningPrompt {
  const followed = followTask(store, { tenant: LOCAL, id }, fixture);
  return {
    ...followed,
    async cancel({ message } = {}, { mode = 'graceful', undo = false } = {}) {
      const args = ['cancel', id, '--json', '--no-wait', '--mode', mode, ...(undo ? ['--undo'] : [])];
      const child = startCommand(fixture, [...args, ...(message === undefined ? [] : ['--reason', message])]);
      const [receipt] = (await child.over).lines as [StoreCancelReceipt];
      return receipt satisfies Receipt;
    },
  };
}

/** The store that the terminals of this home share. */
export function openLocal(fixture: Fixture): TaskStore {
  return createSqliteStore({ file: fixture.at('state/whoa/tasks.db') });
}

/** Starts the command; `over` resolves with its exit code and output. */
export function startCommand({ home }: Fixture, args: readonly string[]) {
  const [file = '', ...rest] = BIN;
  const child = spawn(file, [...rest, ...args], {
    cwd: home.folder.path,
    env: home.env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: unknown[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)));
  const over = once(child, 'close').then(([code]) => ({ code: code as number | null, lines }));
  return { pid: child.pid!, lines, over, kill: (signal: NodeJS.Signals) => child.kill(signal) };
}
