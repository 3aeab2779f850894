import type { Json, ToolResult } from '@whoa/core';
import type { CleanupReport } from '../process/containment/contained.ts';
import { type CapturedOutput, conciseText } from '../process/output/capture.ts';
import type { ShellResult } from './run-shell.ts';

/** The most characters of an output that a model gets. */
export const MAX_CHARACTERS = 16_000;

/** The result of a command that ended by itself or took too long. */
export function shellResult(end: ShellResult, about: { command: string; timeoutMs: number | undefined }): ToolResult {
  const words = [headline(end, about.timeoutMs), toText(end), leftBehind(end)].filter((part) => part !== '');
  const isError = end.exit.code !== 0 || end.stopped !== undefined;
  return { content: words.join('\n'), details: toDetails(end, about.command), isError };
}

/** The partial result of a stopped command. */
export function partialResult(end: ShellResult, command: string): ToolResult {
  return { content: toText(end), details: toDetails(end, command) };
}

/** The output of a running command so far. */
export function progressResult(output: CapturedOutput): ToolResult {
  return { content: conciseText(output, MAX_CHARACTERS), details: { output } };
}

/** `details.cleanup` in the form that stop reports expect. */
export function cleanupDetails({ verified, ended, survivors }: CleanupReport): Json {
  return { verified, ended, survivors };
}

function headline({ exit, stopped }: ShellResult, timeoutMs: number | undefined): string {
  if (stopped === 'timeout') return `Stopped: it took longer than ${(timeoutMs ?? 0) / 1000} s. Output so far:`;
  if (exit.signal !== null) return `Ended by ${exit.signal}`;
  return exit.code === 0 ? '' : `Exit code ${exit.code ?? 'unknown'}`;
}

function toText({ output, logPath, logProblem }: ShellResult): string {
  const text = conciseText(output, MAX_CHARACTERS) || '(no output)';
  if (logPath === undefined) return text;
  const what =
    logProblem === undefined ? `everything is in ${logPath}` : `the first part is in ${logPath}: ${logProblem}`;
  return `${text}\n[${what}]`;
}

const GIT_REFUSED = /\.git\/index\.lock': Read-only file system/;
const GIT_HINT = '[.git is read-only for commands; a plain git command must be the whole command]';

/** Explains to a model that starts a server with `&` why it was ended. */
function leftBehind({ cleanup, stopped, removed, output }: ShellResult): string {
  const lines: string[] = [];
  if (stopped === undefined && cleanup.ended > 0) {
    lines.push(`[ended, because the command had returned: ${cleanup.ended} of its processes]`);
  }
  if (cleanup.survivors > 0) lines.push(`[could not be ended: ${cleanup.survivorPids.join(', ')}]`);
  if (GIT_REFUSED.test(output.tail)) lines.push(GIT_HINT);
  if (removed.length > 0) lines.push(`[removed, because git would run programs with it: ${removed.join(', ')}]`);
  return lines.join('\n');
}

function toDetails(end: ShellResult, command: string): Json {
  return {
    command,
    exitCode: end.exit.code,
    signal: end.exit.signal,
    durationMs: end.durationMs,
    ...(end.stopped === 'timeout' && { timedOut: true }),
    output: end.output,
    cleanup: cleanupDetails(end.cleanup),
    ...(end.cleanup.survivors > 0 && { survivorPids: end.cleanup.survivorPids }),
    ...(end.removed.length > 0 && { removed: end.removed }),
    ...(end.logPath !== undefined && { logPath: end.logPath }),
    ...(end.logProblem !== undefined && { logProblem: end.logProblem }),
  };
}
