import { basename } from 'node:path';
import type { ApprovalRequest } from '@whoa/core/approval';
import type { DecideApproval } from '@whoa/core/internal';
import { type CommandLine, isWrapper, readCommandLine } from './command-line.ts';
import { createPathTest, expandHome, fixedPart, resolveRealPath } from './path-pattern.ts';
import { findProtectionReason } from './protected-paths.ts';

type ApprovalDecision = ReturnType<DecideApproval>;

/** Allows, asks about or denies the calls that match it. */
export interface ApprovalRule {
  readonly decision: 'allow' | 'ask' | 'deny';
  /** The name of a tool, or a prefix followed by `*`. Defaults to every tool. */
  readonly tool?: string | undefined;
  /** A program and its next words. `git status` matches `git status -s`, but not a line with another command in it. */
  readonly command?: string | undefined;
  /** A pattern for the real path of a file, such as `src/**` or `~/notes/*.md`. Relative to the folder of the agent. */
  readonly path?: string | undefined;
}

export interface JudgeOptions {
  readonly rules: readonly ApprovalRule[] | undefined;
  /** Allow calls that no rule matches. */
  readonly yes: boolean;
  readonly cwd: string;
  readonly ownFolders: readonly string[];
}

/** The parts of a request that rules match. */
interface Subject {
  readonly path: string | undefined;
  readonly line: CommandLine | undefined;
  /** What a call names besides its `path`: its texts, the words in them, and the real paths that these would be. */
  readonly mentions: readonly string[];
}

/**
 * Decides calls by rules. `deny` always wins. Otherwise the most specific rule wins; of two equally specific ones, `ask` wins.
 * Calls that may be what a rule restricts and calls on protected paths need approval even if a rule allows them.
 */
export function createJudge({ rules = [], yes, cwd, ownFolders }: JudgeOptions): DecideApproval {
  return (request) => {
    const subject = toSubject(request, cwd);
    const some = rules.filter(({ tool }) => isTool(tool, request.tool.name));
    const applying = some.filter((rule) => applies(rule, subject, cwd));
    const denied = applying.find(({ decision }) => decision === 'deny');
    if (denied !== undefined) return { decision: 'deny', why: `a rule denies ${describeRule(denied)}` };
    const possible = some.find((rule) => rule.decision !== 'allow' && mayApply(rule, subject, cwd));
    if (possible !== undefined)
      return { decision: 'ask', why: `a rule restricts ${describeRule(possible)}; this may be one` };
    const ruling = strongest(applying) ?? { decision: yes || request.effects === 'read' ? 'allow' : 'ask' };
    if (ruling.decision !== 'allow') return ruling;
    const why = findProtectionReason(request, subject, { ownFolders, cwd });
    return why === undefined ? ruling : { decision: 'ask', why };
  };
}

/** What separates the words that a text may contain. */
const SEPARATORS = /[\s@=:,;|&<>(){}$`'"]+/;
/** No system accepts a longer path. */
const MAX_PATH = 4_096;

function toSubject({ input, effects }: ApprovalRequest, cwd: string): Subject {
  const { command, path: named } = (input ?? {}) as { readonly command?: unknown; readonly path?: unknown };
  const line = typeof command === 'string' ? readCommandLine(command) : undefined;
  const path = typeof named === 'string' ? resolveRealPath(named, cwd) : undefined;
  // A tool that writes to its path has other texts for the file. One that executes may mean anything by them.
  const isPlain = effects === 'read' || (effects === 'write' && path !== undefined);
  if (line === undefined && isPlain) return { path, line, mentions: [] };
  const others = path === undefined ? input : { ...(input as object), path: undefined };
  const texts = [...findTexts(others), ...(line?.commands.flat() ?? [])];
  const words = new Set(texts.flatMap((text) => [text, ...text.split(SEPARATORS)]));
  const paths = [...words]
    .filter(({ length }) => length > 0 && length <= MAX_PATH)
    .map((word) => resolveRealPath(expandHome(word), cwd));
  return { path, line, mentions: [...words, ...paths] };
}

function findTexts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return Object.values((value ?? {}) as object).flatMap(findTexts);
}

/** Whether a call is plainly what a rule means. To deny one, it is enough that a command of a line is, or a word a path. */
function applies({ decision, command, path }: ApprovalRule, subject: Subject, cwd: string): boolean {
  const { path: own, line, mentions } = subject;
  if (command !== undefined) {
    const isPlain = line?.isCertain === true && line.commands.length === 1;
    if (!isPlain && decision !== 'deny') return false;
    return line?.commands.some((words) => beginsWith(words, command, decision)) ?? false;
  }
  if (path === undefined) return true;
  const matches = createPathTest(path, cwd);
  const isOwn = own !== undefined && matches(own);
  if (decision === 'allow') return isOwn && mentions.length === 0;
  return isOwn || mentions.some((word) => matches(word) || matches(`${word}/-`));
}

/** Whether a call that is not plain may still be what a rule means. */
function mayApply({ decision, command, path }: ApprovalRule, { line, mentions }: Subject, cwd: string): boolean {
  if (command === undefined && path === undefined) return false;
  if (line?.isCertain === false) return true;
  if (path !== undefined) {
    const [fixed, root] = [`${fixedPart(path, cwd)}/`, `${resolveRealPath(cwd, '/')}/`];
    return mentions.some((word) => word.startsWith(root) && fixed.startsWith(`${word}/`));
  }
  const commands = line?.commands ?? [];
  return commands.some(
    (words) => couldRun(words, command!) || (commands.length > 1 && beginsWith(words, command!, decision)),
  );
}

function isTool(pattern: string | undefined, name: string): boolean {
  if (pattern === undefined) return true;
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

/** Folders whose programs an `allow` of their name covers. */
const SYSTEM_FOLDER = /^\/(?:usr\/(?:local\/)?)?s?bin\//;

function beginsWith(words: readonly string[], command: string, decision: ApprovalRule['decision']): boolean {
  const [program = '', ...rest] = getCommandPrefix(command);
  const [name = '', ...others] = words;
  const isProgram =
    decision === 'allow'
      ? name === program || name.replace(SYSTEM_FOLDER, '') === program
      : basename(name) === basename(program);
  return isProgram && rest.every((word, index) => others[index] === word);
}

/** Whether a command may run another one: by a wrapper, behind options of the program, or because it names the program. */
function couldRun([name = '', ...others]: readonly string[], command: string): boolean {
  const [program = '', ...rest] = getCommandPrefix(command);
  if (isWrapper(name)) return true;
  const isNamed = (text: string): boolean => text.split(/[\s/=;|&()'"]+/).includes(basename(program));
  if (basename(name) !== basename(program)) return others.some(isNamed);
  return others[rest.findIndex((word, index) => others[index] !== word)]?.startsWith('-') ?? false;
}

function getCommandPrefix(command: string): readonly string[] {
  return readCommandLine(command).commands[0] ?? [];
}

function strongest(rules: readonly ApprovalRule[]): ApprovalDecision | undefined {
  const [rule] = rules.toSorted((a, b) => measureWeight(b) - measureWeight(a) || asks(b) - asks(a));
  if (rule?.decision === 'ask') return { decision: 'ask', why: `a rule asks about ${describeRule(rule)}` };
  return rule && { decision: rule.decision };
}

const asks = ({ decision }: ApprovalRule): number => (decision === 'ask' ? 1 : 0);

/** How specific a rule is. */
function measureWeight({ tool = '', command, path }: ApprovalRule): number {
  const named = tool === '' ? 0 : tool.endsWith('*') ? 1 : 2;
  if (command !== undefined) return 10 * getCommandPrefix(command).length + named;
  return path === undefined ? named : 10 * path.replace(/\*+/g, '').length + named;
}

function describeRule({ tool = 'every tool', command, path }: ApprovalRule): string {
  if (command !== undefined) return `${tool}: commands that start with '${command}'`;
  return path === undefined ? tool : `${tool}: ${path}`;
}
