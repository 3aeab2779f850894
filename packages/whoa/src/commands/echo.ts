import { serveEcho } from '@whoa/acp';
import { type Command, readArguments, UsageError, type Use } from '../command.ts';
import { explainWaiting } from '../terminal/explain-waiting.ts';
import { waitForClose } from '../terminal/interrupts.ts';

const help = `whoa echo [--delay SECONDS]

Serves a minimal agent to an editor, over the Agent Client Protocol on standard input and output: it waits, then repeats the
prompt. Use it to try out cancels.

  --delay SECONDS   how long it waits; defaults to 1`;

const OPTIONS = { delay: { type: 'string', default: '1' } } as const;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const delaySeconds = Number(values.delay);
  if (!(delaySeconds >= 0)) throw new UsageError(`--delay: expected a number of seconds, got '${values.delay}'`);
  const connection = own(serveEcho({ delaySeconds }));
  explainWaiting('echo');
  return waitForClose(connection, own);
}
