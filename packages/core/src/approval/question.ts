import { isPlain } from '../stop/app-context.ts';
import type { ApprovalRequest } from '../tool/call/call.ts';
import type { Effects } from '../tool/result.ts';
import type { CallPreview } from '../tool/tool.ts';
import { toVisibleLine, toVisibleText } from './visible.ts';

/**
 * An approval question as data: every field and every line of what would run, with invisible characters made visible.
 * Show all of it before you accept an answer.
 */
export interface ApprovalQuestion {
  readonly callId: string;
  readonly tool: string;
  readonly effects: Effects;
  /** One line. If it is cut, it says how much is missing. */
  readonly title: string;
  /** The folder it would run in, if the tool says. */
  readonly cwd?: string;
  readonly sandbox?: string;
  /** What it would do to a file. `fields` leaves out the fields that the diff replaces. */
  readonly change?: { readonly path: string; readonly isNew: boolean; readonly diff: readonly string[] };
  readonly fields: readonly QuestionField[];
  /** What `always` would cover, and for how long. */
  readonly alwaysScope: string;
  /** Why the user is asked, if a rule gives a reason. */
  readonly why?: string;
}

interface QuestionField {
  readonly name: string;
  readonly lines: readonly string[];
}

/** The calls covered by an `always`. */
export interface Coverage {
  readonly key: string;
  readonly words: string;
}

const MAX_TITLE_CHARACTERS = 120;
/** The fields that best describe a call. */
const SUBJECTS = ['command', 'path', 'pattern', 'glob', 'question'] as const;

/**
 * Describes a call in one line: the tool, and what it is about.
 *
 * @returns The line, at most `maxCharacters` long.
 */
export function formatCallTitle(tool: string, input: unknown, maxCharacters: number = MAX_TITLE_CHARACTERS): string {
  const subject = SUBJECTS.map((name) => findField(input, name)).find((value) => value !== undefined);
  return toVisibleLine(subject === undefined ? tool : `${tool}: ${subject}`, maxCharacters);
}

/**
 * Describes a request and its tool's preview of it.
 *
 * @returns The question, without what an `always` covers.
 */
export function describeRequest(
  request: ApprovalRequest,
  preview: CallPreview = {},
): Omit<ApprovalQuestion, 'alwaysScope'> {
  const { call, effects } = request;
  const tool = toToolPath(request);
  const { cwd, sandbox, change } = preview;
  const input = shownInput(request);
  const shownByDiff = change === undefined || change.diff === null ? [] : change.fields;
  return {
    callId: call.id,
    tool: toVisibleText(tool),
    effects,
    title: formatCallTitle(tool, input),
    fields: toFields(input).filter(({ name }) => !shownByDiff.includes(name)),
    ...(cwd !== undefined && { cwd: toVisibleText(cwd) }),
    ...(sandbox !== undefined && { sandbox: toVisibleText(sandbox) }),
    ...(change !== undefined && {
      change: {
        path: toVisibleText(change.path),
        isNew: change.isNew,
        diff: change.diff === '' ? ['(no lines differ)'] : splitLines((change.diff ?? '').replace(/\n$/, '')),
      },
    }),
  };
}

/**
 * Describes where a call would run.
 *
 * @returns The text, or `undefined` when the tool does not say.
 */
export function describeLocation({ cwd, sandbox }: Pick<ApprovalQuestion, 'cwd' | 'sandbox'>): string | undefined {
  const confined = sandbox === 'none' ? 'without a sandbox' : sandbox && `in the sandbox '${sandbox}'`;
  const words = [cwd && `in ${cwd}`, confined].filter(Boolean);
  return words.length === 0 ? undefined : words.join(', ');
}

/**
 * Formats the question as lines. Lines of a field are indented, so that they cannot be mistaken for another field or
 * for our own text.
 *
 * @returns The lines.
 */
export function formatQuestion({ change, fields }: ApprovalQuestion): string[] {
  const lines: string[] = [];
  if (change !== undefined) {
    lines.push(`${change.isNew ? 'creates' : 'changes'} ${change.path}`);
    if (change.diff.length === 0) lines.push('too large to compare; this is all of it:');
    lines.push(...change.diff.map((line) => `  ${line}`));
  }
  for (const { name, lines: values } of fields) {
    if (values.length === 1) lines.push(`${name}: ${values[0]}`);
    else lines.push(`${name}:`, ...values.map((line) => `  ${line}`));
  }
  return lines;
}

/** Returns what an `always` for this call would cover. Only calls that can be compared exactly are covered. */
export function findAlwaysScope(
  { input, ...request }: Pick<ApprovalRequest, 'tool' | 'input' | 'within'>,
  { change }: CallPreview = {},
): Coverage | undefined {
  const name = toToolPath(request);
  const called = toVisibleText(name);
  if (change !== undefined) {
    return {
      key: JSON.stringify([name, 'file', change.path]),
      words: `every ${called} of ${toVisibleText(change.path)}`,
    };
  }
  if (findField(input, 'command') === undefined && findField(input, 'path') === undefined) {
    return { key: JSON.stringify([name]), words: `every call of ${called}, with any input` };
  }
  if (!isPlain(input)) return undefined;
  return { key: JSON.stringify([name, 'call', input]), words: `this call of ${called} with exactly this input` };
}

/** A sub-agent's tool is another tool than its parent's, even if they have the same name. */
function toToolPath({ within = [], tool }: Pick<ApprovalRequest, 'tool' | 'within'>): string {
  return [...within, tool.name].join(' › ');
}

/** The parsed input may not be plain data; the model's input always is. */
function shownInput({ call, input }: Pick<ApprovalRequest, 'call' | 'input'>): unknown {
  return isPlain(input) ? input : call.input;
}

function toFields(input: unknown): QuestionField[] {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    return [{ name: 'input', lines: valueLines(input) }];
  }
  return Object.entries(input)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => {
      // Quote a name that could be mistaken for another field and its value.
      const shown = /^[\w-]+$/.test(name) ? name : toVisibleText(JSON.stringify(name));
      return { name: shown, lines: valueLines(value) };
    });
}

function valueLines(value: unknown): string[] {
  return splitLines(typeof value === 'string' ? value : (JSON.stringify(value, undefined, 2) ?? String(value)));
}

function splitLines(text: string): string[] {
  return text === '' ? [] : toVisibleText(text).split('\n');
}

function findField(input: unknown, name: string): string | undefined {
  const value = typeof input === 'object' && input !== null ? (input as Record<string, unknown>)[name] : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}
