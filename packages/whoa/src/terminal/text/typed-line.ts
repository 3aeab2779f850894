import { createInterface } from 'node:readline/promises';

/** The parts of standard input that a question needs. */
export type TypedInput = NodeJS.ReadableStream & {
  readonly isTTY?: boolean;
  readonly setRawMode?: (isRaw: boolean) => unknown;
};

const CTRL_C = '\u0003';
/** How many turns of the event loop without input show that there is none. The first may end before the loop has looked. */
const QUIET_TURNS = 3;
const MAX_TURNS = 1_000;

interface Asking {
  readonly input: TypedInput;
  readonly output: NodeJS.WritableStream;
  readonly signal: AbortSignal;
}

/** Shows the prompt of a question that was printed, and reads the answer; `undefined` at the end of the input. */
export async function askForLine(
  showPrompt: () => void,
  { input, output, signal }: Asking,
): Promise<string | undefined> {
  await discardEarly(input);
  showPrompt();
  // Not a terminal to readline: the kernel edits the line, and Ctrl-C stays a signal.
  const lines = createInterface({ input, output, terminal: false });
  // At the end of the input no answer will ever come.
  const closed = Promise.withResolvers<undefined>();
  lines.once('close', () => closed.resolve(undefined));
  try {
    return (await Promise.race([lines.question('', { signal }), closed.promise]))?.trim();
  } finally {
    lines.close();
  }
}

/**
 * Throws away what was typed before a question was on the screen: nobody had seen it. A caller prints the question, then calls
 * this, and the prompt comes last, so that whoever answers the prompt is heard.
 */
async function discardEarly(input: TypedInput): Promise<void> {
  // Raw mode also brings up the line that was begun and not ended.
  input.setRawMode?.(true);
  try {
    await discardTyped(input);
  } finally {
    // This waits until the terminal has taken the question.
    input.setRawMode?.(false);
  }
  // What came while it waited was early as well.
  await discardTyped(input);
}

/** A Ctrl-C that falls into this moment is still one. */
async function discardTyped(input: TypedInput): Promise<void> {
  let quiet = 0;
  const onData = (chunk: Buffer | string): void => {
    quiet = 0;
    if (chunk.toString().includes(CTRL_C)) process.kill(process.pid, 'SIGINT');
  };
  input.on('data', onData);
  // After a pause, as at the end of every question, a listener alone gets nothing.
  input.resume();
  try {
    for (let turns = 0; quiet < QUIET_TURNS; turns++, quiet++) {
      if (turns > MAX_TURNS) throw new Error('the terminal does not stop sending; no one can be asked');
      await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    input.off('data', onData);
    input.pause();
  }
}
