import type { Json } from '@whoa/core';
import { type ApprovalQuestion, formatQuestion } from '@whoa/core/approval';
import { describeSchema, parseAnswer } from '@whoa/core/internal';
import type { Output } from './boundary.ts';
import { type TypedInput, TypedLines } from './input/typed-lines.ts';
import type { Screen } from './screen.ts';
import { wrapLine } from './text/wrap.ts';

type AnswerSchema = { readonly [key: string]: Json | undefined };

interface AskedAnswer {
  readonly question: ApprovalQuestion;
  readonly schema?: AnswerSchema | undefined;
}

interface AnswerPrompt {
  readonly screen: Screen;
  readonly input: TypedInput;
  readonly output: Output;
  /** Returns what is wrong with an answer. */
  readonly findFault: (answer: Json) => Promise<string | undefined>;
  readonly signal: AbortSignal;
}

const GUTTER = '  │ ';
const NOTE = '  · ';

/**
 * Asks the user at the terminal for the answer to a question, until it is one that counts. Returns `undefined` at the end
 * of the input, or when the signal aborts.
 */
export async function askForAnswer(
  { question, schema = {} }: AskedAnswer,
  { screen, input, output, findFault, signal }: AnswerPrompt,
): Promise<{ readonly answer: Json } | undefined> {
  const held = screen.hold();
  const reader = new TypedLines({}, input, output);
  const show = (prefix: string, text: string): void => {
    const width = screen.columns - prefix.length - 1;
    for (const line of wrapLine(text.replaceAll('\n', ' ⏎ '), width)) held.note(prefix + line);
  };
  try {
    held.note(`${screen.style('magenta', '?')} ${screen.style('bold', question.tool)} asks:`);
    for (const line of formatQuestion(question)) show(GUTTER, line);
    show(NOTE, describeExpected(schema));
    for (;;) {
      const typed = await reader.ask('  your answer: ', { held, signal });
      if (typed === undefined || signal.aborted) return undefined;
      const answer = readTyped(typed, schema);
      const fault = typed === '' ? 'the answer is empty; Ctrl-C leaves the question open' : await findFault(answer);
      if (fault === undefined) return { answer };
      show(NOTE, `not sent: ${fault}`);
    }
  } finally {
    reader[Symbol.dispose]();
    held[Symbol.dispose]();
  }
}

export function describeExpected(schema: AnswerSchema): string {
  const { enum: choices, type } = schema;
  if (Array.isArray(choices)) return `one of: ${choices.map(toChoice).join(', ')}`;
  if (type === 'boolean') return 'yes or no';
  if (type === 'string') return 'text';
  if (type === 'number' || type === 'integer') return type === 'integer' ? 'a whole number' : 'a number';
  return Object.keys(schema).length === 0 ? 'text or JSON' : `JSON: ${describeSchema(schema as Json)}`;
}

/** Reads an answer as it was typed. A choice and a yes need not be typed as JSON. */
function readTyped(typed: string, schema: AnswerSchema): Json {
  const { enum: choices, type } = schema;
  const chosen = Array.isArray(choices) && (choices as Json[]).find((choice) => toChoice(choice) === typed.trim());
  if (chosen !== undefined && chosen !== false) return chosen;
  if (type === 'boolean' && /^(y(es)?|n(o)?)$/i.test(typed.trim())) return /^y/i.test(typed.trim());
  return parseAnswer(typed, schema);
}

function toChoice(choice: Json): string {
  return typeof choice === 'string' ? choice : JSON.stringify(choice);
}
