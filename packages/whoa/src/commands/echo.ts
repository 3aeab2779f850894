import { serveEcho } from '@whoa/acp';
import { type Command, EXIT, type Own, readArguments, UsageError } from '../command.ts';
import { listenForEnd } from '../terminal/interrupts.ts';
import { explainSilence } from '../terminal/silence.ts';

const help = `whoa echo [--delay SECONDS]

Serves the simplest agent there is to an editor, over the Agent Client Protocol on standard input and output: it waits, then says
what it was told. Good for learning what a cancel does.

  --delay SECONDS   how long it waits; 1 unless given`;

export const echoCommand: Command = { help, run };

async function run(args: readonly string[], own: Own): Promise<number> {
  const { values } = readArguments(args, { delay: { type: 'string', default: '1' } });
  const delaySeconds = Number(values.delay);
  if (!(delaySeconds >= 0)) throw new UsageError(`--delay: '${values.delay}' is no number of seconds`);
  const connection = own(serveEcho({ delaySeconds }));
  explainSilence('echo');
  own(listenForEnd((reason) => connection.close(reason)));
  const { error } = await connection.closed;
  if (error !== undefined) throw error;
  return EXIT.success;
}
