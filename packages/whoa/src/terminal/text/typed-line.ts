import { createInterface } from 'node:readline/promises';

/** The parts of standard input that a question needs. */
export type TypedInput = NodeJS.ReadableStream & {
  readonly isTTY?: boolean;
  readonly setRawMode?: (isRaw: boolean) => unknown;
};

const CTRL_C = '\u0003';
/** Turns of the event loop without input after which there is none. One is not enough: it may end before the loop polls. */
const QUIET_TURNS = 3;
const MAX_TURNS = 1_000;

interface Asking {
  readonly input: TypedInput;
  readonly output: NodeJS.WritableStream;
  readonly signal: AbortSignal;
}

/** Prints the prompt of a question and reads a line. Returns `undefined` at the end of the input. */
export async function askForLine(
  showPrompt: () => void,
  { input, output, signal }: Asking,
): Promise<string | undefined> {
  await discardEarly(input);
  showPrompt();
  // Don't let readline use the terminal: the kernel edits the line, and Ctrl-C stays a signal.
  const lines = createInterface({ input, output, terminal: false });
  // Readline's question never settles at the end of the input.
  const closed = Promise.withResolvers<undefined>();
  lines.once('close', () => closed.resolve(undefined));
  try {
    return (await Promise.race([lines.question('', { signal }), closed.promise]))?.trim();
  } finally {
    lines.close();
  }
}

/**
 * Discards input that was typed before the question was on the screen. Print the question, call this, then print the prompt,
 * so that an answer to the prompt is never discarded.
 */
async function discardEarly(input: TypedInput): Promise<void> {
  // Raw mode also delivers an unfinished line.
  input.setRawMode?.(true);
  try {
    await discardTyped(input);
  } finally {
    // This waits until the terminal has received the question.
    input.setRawMode?.(false);
  }
  // Input that arrived during this wait was early too.
  await discardTyped(input);
}

/** Discards pending input, except Ctrl-C: in raw mode it is a character, so turn it back into a signal. */
async function discardTyped(input: TypedInput): Promise<void> {
  let quiet = 0;
  const onData = (chunk: Buffer | string): void => {
    quiet = 0;
    if (chunk.toString().includes(CTRL_C)) process.kill(process.pid, 'SIGINT');
  };
  input.on('data', onData);
  // Input is paused after every question, and a listener alone does not resume it.
  input.resume();
  try {
    for (let turns = 0; quiet < QUIET_TURNS; turns++, quiet++) {
      if (turns > MAX_TURNS) throw new Error('the terminal does not stop sending input, so the user cannot be asked');
      await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    input.off('data', onData);
    input.pause();
  }
}
