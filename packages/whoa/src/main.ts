import type { Command, Use } from './command.ts';
import { COMMANDS } from './command-table.ts';
import type { System } from './system.ts';
import { version } from './version.ts';

/** Upper bound for closing everything a command opened. */
const CLOSE_MS = 120_000;

/** Runs the command line and returns the exit code. */
export async function main(args: readonly string[], system: System = process): Promise<number> {
  if (args[0] === '--version' || args[0] === '-v') return print(version(), system);
  const isHelp = args[0] === 'help' || wantsHelp(args.slice(0, 1));
  // 'whoa help run' means 'whoa run --help'.
  const [name = '', ...rest] = isHelp ? [...args.slice(1, 2), '--help'] : args;
  if (name === '' || name === '--help') return print(overview(), system);
  const known = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const asJson = has(rest, '--json') && known?.isProtocol === undefined;
  try {
    if (known === undefined) throw usage(`unknown command '${name}'; ${await suggestCommand(name)}`);
    const { command } = await known.load();
    if (wantsHelp(rest)) return print(command.help, system);
    if (known.isProtocol && has(rest, '--json')) throw usage('--json: its standard output is for the editor');
    return await runOwning(command, rest, system);
  } catch (error) {
    return printError(error, { name: known === undefined ? '' : name, asJson }, system);
  }
}

async function suggestCommand(typed: string): Promise<string> {
  const names = Object.keys(COMMANDS);
  const { settings } = await import('@whoa/core/internal');
  const closest = settings.findClosestName(typed, names);
  return closest === undefined ? `use one of ${names.join(', ')}` : `did you mean '${closest}'?`;
}

// The class is in command.ts, which imports more than help needs.
function usage(message: string): Error {
  return Object.assign(new Error(message), { name: 'UsageError', code: 'USAGE' });
}

async function runOwning(command: Command, args: readonly string[], system: System): Promise<number> {
  const [{ createCleanupList }, { reportCleanup }] = await Promise.all([
    import('@whoa/core/internal'),
    import('./terminal/report-cleanup.ts'),
  ]);
  const cleanups = createCleanupList({ name: 'the command', timeoutMs: CLOSE_MS, onError: reportCleanup });
  const own: Use = (thing) => {
    cleanups.defer(() => (Symbol.asyncDispose in thing ? thing[Symbol.asyncDispose]() : thing[Symbol.dispose]()));
    return thing;
  };
  try {
    return await command.run(args, own, system);
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
    "Run 'whoa help COMMAND' for a command's options. With --json, commands print one JSON object per line.",
  ].join('\n');
}

function wantsHelp(args: readonly string[]): boolean {
  return has(args, '--help') || has(args, '-h');
}

/** Returns whether an option is among the arguments. What follows `--` is not the command's own. */
function has(args: readonly string[], option: string): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).includes(option);
}

function print(text: string, { stdout }: System): number {
  stdout.write(`${text}\n`);
  return 0;
}

async function printError(
  error: unknown,
  { name, asJson }: { name: string; asJson: boolean },
  { stdout, stderr }: System,
): Promise<number> {
  const { jsonLine, rendered } = await import('./terminal/boundary.ts');
  const { message, code } = error as { message?: string; code?: string };
  const text = message ?? String(error);
  if (asJson) stdout.write(`${jsonLine({ type: 'error', message: text, ...(code && { code }) })}\n`);
  else stderr.write(`${rendered(`${`whoa ${name}`.trim()}: ${text}`)}\n`);
  return (error as Error).name === 'UsageError' ? 2 : 1;
}
