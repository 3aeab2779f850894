import type { ApprovalRequest, Judge } from '@whoa/core/approval';
import { type CommandLine, readCommandLine } from './command-line.ts';
import { matchesPattern, realPathOf } from './path-pattern.ts';
import { type ProtectedPaths, whyProtected } from './protected-paths.ts';

type Ruling = ReturnType<Judge>;

/** Allows, asks about or denies the calls that match it. */
export interface ApprovalRule {
  readonly decision: 'allow' | 'ask' | 'deny';
  /** The name of a tool, or a prefix followed by `*`. Defaults to every tool. */
  readonly tool?: string;
  /** The first words of a command. `git status` matches `git status -s`, but not a line with another command in it. */
  readonly command?: string;
  /** A pattern for the real path of a file, such as `src/**` or `~/notes/*.md`. Relative to the folder of the agent. */
  readonly path?: string;
}

export interface JudgeOptions {
  readonly rules: readonly ApprovalRule[];
  /** Allow calls that no rule matches. */
  readonly yes: boolean;
  readonly cwd: string;
  readonly protectedPaths: ProtectedPaths;
}

/** The parts of a request that rules match. */
interface Subject {
  readonly tool: string;
  readonly path: string | undefined;
  readonly line: CommandLine | undefined;
}

/**
 * Decides calls by rules. `deny` always wins. Otherwise the most specific rule wins; of two equally specific ones, `ask` wins.
 * Calls on protected paths are asked about even if a rule allows them.
 */
export function createJudge({ rules, yes, cwd, protectedPaths }: JudgeOptions): Judge {
  return (request) => {
    const subject = subjectOf(request, cwd);
    const denied = rules.find((rule) => rule.decision === 'deny' && applies(rule, subject, cwd));
    if (denied !== undefined) return { decision: 'deny', why: `a rule denies ${describeRule(denied)}` };
    const base: Ruling = { decision: yes || request.effects === 'read' ? 'allow' : 'ask' };
    const ruling = judgeSubject(subject, { rules, base, cwd });
    if (ruling.decision !== 'allow') return ruling;
    const why = whyProtected(request, subject.path, protectedPaths);
    return why === undefined ? ruling : { decision: 'ask', why };
  };
}

function subjectOf({ tool, input }: ApprovalRequest, cwd: string): Subject {
  const { command, path } = (input ?? {}) as { readonly command?: unknown; readonly path?: unknown };
  return {
    tool: tool.name,
    path: typeof path === 'string' ? realPathOf(path, cwd) : undefined,
    line: typeof command === 'string' ? readCommandLine(command) : undefined,
  };
}

interface JudgeContext {
  readonly rules: readonly ApprovalRule[];
  readonly base: Ruling;
  readonly cwd: string;
}

function judgeSubject(subject: Subject, { rules, base, cwd }: JudgeContext): Ruling {
  const { line } = subject;
  const some = rules.filter((rule) => isTool(rule.tool, subject.tool));
  if (line === undefined) return strongest(some.filter((rule) => applies(rule, subject, cwd))) ?? base;
  const general = strongest(some.filter(({ command, path }) => command === undefined && path === undefined)) ?? base;
  if (!line.isCertain) {
    const isRestricted = some.some(({ decision, command }) => decision !== 'allow' && command !== undefined);
    return isRestricted ? { decision: 'ask', why: 'the command cannot be parsed with certainty' } : general;
  }
  const rulings = line.commands.map((words) => strongest(some.filter((rule) => beginsWith(words, rule))) ?? general);
  return rulings.find(({ decision }) => decision === 'ask') ?? rulings[0] ?? general;
}

/** Whether a rule matches a request or one of its commands. */
function applies({ tool, command, path }: ApprovalRule, subject: Subject, cwd: string): boolean {
  if (!isTool(tool, subject.tool)) return false;
  if (command !== undefined) return subject.line?.commands.some((words) => beginsWith(words, { command })) ?? false;
  return path === undefined || (subject.path !== undefined && matchesPattern(subject.path, path, cwd));
}

function isTool(pattern: string | undefined, name: string): boolean {
  if (pattern === undefined) return true;
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

function beginsWith(words: readonly string[], { command }: Pick<ApprovalRule, 'command'>): boolean {
  if (command === undefined) return false;
  return prefixOf(command).every((word, index) => words[index] === word);
}

function prefixOf(command: string): readonly string[] {
  return readCommandLine(command).commands[0] ?? [];
}

function strongest(rules: readonly ApprovalRule[]): Ruling | undefined {
  const [first] = rules.toSorted((a, b) => weightOf(b) - weightOf(a) || asks(b) - asks(a));
  return (
    first && {
      decision: first.decision,
      ...(first.decision === 'ask' && { why: `a rule asks about ${describeRule(first)}` }),
    }
  );
}

const asks = ({ decision }: ApprovalRule): number => (decision === 'ask' ? 1 : 0);

/** How specific a rule is. */
function weightOf({ tool = '', command, path }: ApprovalRule): number {
  const named = tool === '' ? 0 : tool.endsWith('*') ? 1 : 2;
  if (command !== undefined) return 10 * prefixOf(command).length + named;
  return path === undefined ? named : 10 * path.replace(/\*+/g, '').length + named;
}

function describeRule({ tool = 'every tool', command, path }: ApprovalRule): string {
  if (command !== undefined) return `${tool}: commands that start with '${command}'`;
  return path === undefined ? tool : `${tool}: ${path}`;
}
