import type { Command, Own } from './command.ts';
import { version } from './version.ts';

// Load each command only when it runs, so that no command pays for the imports of another.
const COMMANDS: Readonly<Record<string, { readonly summary: string; readonly load: () => Promise<Command> }>> = {
  run: {
    summary: 'give an agent a prompt; Ctrl-C stops it',
    load: async () => (await import('./commands/run.ts')).runCommand,
  },
  tasks: {
    summary: 'list running and recent tasks',
    load: async () => (await import('./commands/tasks.ts')).tasksCommand,
  },
  watch: {
    summary: 'follow a task',
    load: async () => (await import('./commands/watch.ts')).watchCommand,
  },
  cancel: {
    summary: 'stop a task, from any terminal',
    load: async () => (await import('./commands/cancel.ts')).cancelCommand,
  },
  demo: {
    summary: 'open a page with a working agent and a Stop button; needs no key',
    load: async () => (await import('./commands/demo.ts')).demoCommand,
  },
  serve: {
    summary: 'serve tasks and a chat over HTTP',
    load: async () => (await import('./commands/serve.ts')).serveCommand,
  },
  worker: {
    summary: 'run the tasks of a shared store',
    load: async () => (await import('./commands/worker.ts')).workerCommand,
  },
  acp: {
    summary: 'serve an agent to an editor (Agent Client Protocol)',
    load: async () => (await import('./commands/acp.ts')).acpCommand,
  },
  echo: {
    summary: 'serve an agent that repeats your prompt, to learn what a cancel does',
    load: async () => (await import('./commands/echo.ts')).echoCommand,
  },
  new: {
    summary: 'create a tool and the test that proves it stops',
    load: async () => (await import('./commands/new.ts')).newCommand,
  },
  doctor: {
    summary: 'check what works on this machine, and what to do about the rest',
    load: async () => (await import('./commands/doctor.ts')).doctorCommand,
  },
};

/** Upper bound for closing everything a command opened. */
const CLOSE_MS = 120_000;

/** Runs the command line and returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const [name = '', ...rest] = args;
  if (name === '--version' || name === '-v') return print(version());
  if (name === '' || name === 'help' || name === '--help' || name === '-h') return print(overview());
  const format = { asJson: rest.includes('--json') };
  try {
    if (!Object.hasOwn(COMMANDS, name)) {
      const said = `unknown command '${name}'; use one of ${Object.keys(COMMANDS).join(', ')}`;
      return await complain(Object.assign(new Error(said), { name: 'UsageError', code: 'USAGE' }), {
        name: '',
        ...format,
      });
    }
    const command = await COMMANDS[name]!.load();
    return wantsHelp(rest) ? print(command.help) : await runOwning(command, rest);
  } catch (error) {
    return complain(error, { name, ...format });
  }
}

async function runOwning(command: Command, args: readonly string[]): Promise<number> {
  const [{ createCleanupList }, { reportCleanup }] = await Promise.all([
    import('@whoa/core/embed'),
    import('./terminal/report-cleanup.ts'),
  ]);
  const cleanups = createCleanupList({ name: 'the command', boundMs: CLOSE_MS, onError: reportCleanup });
  const own: Own = (thing) => {
    cleanups.defer(() => (Symbol.asyncDispose in thing ? thing[Symbol.asyncDispose]() : thing[Symbol.dispose]()));
    return thing;
  };
  try {
    return await command.run(args, own);
  } finally {
    await cleanups[Symbol.asyncDispose]();
  }
}

function overview(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const lines = Object.entries(COMMANDS).map(([name, { summary }]) => `  whoa ${name.padEnd(width)}   ${summary}`);
  return [
    'Whoa runs AI agents that stop when told.',
    '',
    ...lines,
    '',
    "'whoa COMMAND --help' lists the options of a command. With --json, every command prints one JSON object per line.",
  ].join('\n');
}

function wantsHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).some((arg) => arg === '--help' || arg === '-h');
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

async function complain(error: unknown, { name, asJson }: { name: string; asJson: boolean }): Promise<number> {
  const { jsonLine, rendered } = await import('./terminal/boundary.ts');
  const { message, code } = error as { message?: string; code?: string };
  const said = message ?? String(error);
  if (asJson) process.stdout.write(`${jsonLine({ type: 'error', message: said, ...(code && { code }) })}\n`);
  else process.stderr.write(`${rendered(`${`whoa ${name}`.trim()}: ${said}`)}\n`);
  return (error as Error).name === 'UsageError' ? 2 : 1;
}
