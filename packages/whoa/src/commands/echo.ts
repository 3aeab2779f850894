import { serveEcho } from '@whoa/acp';
import { type Command, readArguments, readDuration, type Use } from '../command.ts';
import { explainWaiting } from '../terminal/explain-waiting.ts';
import { waitForClose } from '../terminal/interrupts.ts';

const help = `whoa echo [--delay DURATION]

Serves a minimal agent to an editor, over the Agent Client Protocol on standard input and output: it waits, then repeats the
prompt. Use it to try out cancels.

  --delay DURATION  how long it waits; defaults to 1s`;

const OPTIONS = { delay: { type: 'string', default: '1s' } } as const;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const connection = own(serveEcho({ delaySeconds: readDuration('--delay', values.delay, { min: 0 }) / 1_000 }));
  explainWaiting('echo');
  return waitForClose(connection, own);
}
