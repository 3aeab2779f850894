import { UsageError } from '../../command.ts';

/** More than any model reads in one request. */
const MAX_INPUT_BYTES = 10_000_000;

interface PromptOptions {
  /** What it is called, and how it is given. */
  readonly what?: string;
  readonly use?: string;
  readonly input?: NodeJS.ReadableStream & { readonly isTTY?: boolean };
}

/** Returns the prompt: the argument, followed by what is piped in. */
export async function readPrompt(
  positionals: readonly string[],
  { what = 'prompt', use = 'whoa run "prompt"', input = process.stdin }: PromptOptions = {},
): Promise<string> {
  if (positionals.length > 1) throw new UsageError(`expected one ${what}; put it in quotes`);
  const piped = input.isTTY ? '' : (await readAll(input)).trimEnd();
  const prompt = [positionals[0] ?? '', piped].filter((part) => part.trim() !== '').join('\n\n');
  if (prompt === '') throw new UsageError(`missing ${what}; use: ${use}`);
  return prompt;
}

async function readAll(input: NodeJS.ReadableStream): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    const read = Buffer.from(chunk as Buffer | string);
    bytes += read.length;
    if (bytes > MAX_INPUT_BYTES)
      throw new UsageError(`standard input has more than ${MAX_INPUT_BYTES} bytes; put it into a file in this folder`);
    chunks.push(read);
  }
  return Buffer.concat(chunks).toString();
}
