import { resolve } from 'node:path';
import type { CallResult, Content, Json, Tool } from '@whoa/core';
import { type DiffHunk, type Effects, formatCallTitle, type PlanEntry } from '@whoa/core/internal';
import { type DetailsView, parseDiff, toDetailsView } from '@whoa/core/view';
import type { CallContent, CallKind, CallStatus, CallUpdate, Location } from './updates.ts';

const KINDS: Readonly<Record<string, CallKind>> = {
  read: 'read',
  ls: 'search',
  find: 'search',
  grep: 'search',
  bash: 'execute',
  fetch: 'fetch',
};
const KIND_OF_EFFECTS: Readonly<Record<Effects, CallKind>> = { read: 'read', write: 'edit', execute: 'execute' };

export function classifyTool(tool: string, effects: Effects | undefined): CallKind {
  return KINDS[tool] ?? (effects === undefined ? 'other' : KIND_OF_EFFECTS[effects]);
}

/** Describes a call for the user before it runs. */
export function announceCall(
  call: { readonly callId: string; readonly tool: string; readonly input?: unknown },
  context: { readonly cwd: string; readonly tools: readonly Tool[] },
): CallUpdate {
  const { callId, tool, input } = call;
  const effects = context.tools.find(({ name }) => name === tool)?.effects;
  const path = findField(input, 'path');
  return {
    type: 'call',
    callId,
    tool,
    title: formatCallTitle(tool, input),
    kind: classifyTool(tool, effects),
    status: 'pending',
    ...(path !== undefined && { locations: [{ path: resolve(context.cwd, path) }] }),
    ...(input !== undefined && { input }),
  };
}

/** Describes the end of a call. The client gets the whole `details`; file changes are shown as a diff. */
export function endCall(result: CallResult, { cwd }: { readonly cwd: string }): CallUpdate {
  const { callId, state, content, details, reason } = result;
  const view = toDetailsView(details);
  const path = findField(details, 'path');
  return {
    type: 'call',
    callId,
    status: toCallStatus(result),
    content: [...toDiffContent(view, result, cwd), { type: 'content', content: neverEmpty(content) }],
    isCancellable: false,
    ...(path !== undefined && { locations: toLocations(view, resolve(cwd, path)) }),
    ...(details !== undefined && { output: details }),
    ...(reason !== undefined && { stopped: { state, reason: reason.kind } }),
  };
}

/** Returns the plan in a tool's details, if there is one. */
export function findPlan(details: Json | undefined): readonly PlanEntry[] | undefined {
  const view = toDetailsView(details);
  return view.kind === 'plan' ? view.entries : undefined;
}

/** A cancel is reported as one, never as a failure. A call that could not start for its own reason has failed. */
function toCallStatus({ state, isError, reason }: CallResult): CallStatus {
  if (reason !== undefined && state !== 'finished') return 'cancelled';
  return state === 'finished' && !isError ? 'completed' : 'failed';
}

/** Some clients break on an end without text. */
function neverEmpty(content: Content): Content {
  const isEmpty = typeof content === 'string' ? content.trim() === '' : content.length === 0;
  return isEmpty ? '(no output)' : content;
}

function toDiffContent(view: DetailsView, { details }: CallResult, cwd: string): CallContent[] {
  if (view.kind !== 'diff' || view.hunks.length === 0) return [];
  const { path, isNew, hunks } = view;
  const patch = findField(details, 'diff');
  const sides = hunks.map(toSides);
  return [{ type: 'diff', path: resolve(cwd, path), isNew, ...(patch !== undefined && { patch }), hunks: sides }];
}

/** The file, at each line where a change begins. */
function toLocations(view: DetailsView, path: string): Location[] {
  if (view.kind !== 'diff' || view.hunks.length === 0) return [{ path }];
  return view.hunks.map(({ newStart, lines }) => ({
    path,
    line: newStart + lines.findIndex(({ kind }) => kind !== 'context'),
  }));
}

function findField(input: unknown, name: string): string | undefined {
  const value = typeof input === 'object' && input !== null ? (input as Record<string, unknown>)[name] : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns the two sides of each hunk of a unified diff. */
export function toHunks(diff: string): { oldText: string; newText: string }[] {
  return parseDiff(diff).map(toSides);
}

/** v1 clients compare texts and do not support patches. */
function toSides({ lines }: DiffHunk): { oldText: string; newText: string } {
  const side = (left: 'add' | 'remove'): string =>
    lines.map(({ kind, text }) => (kind === left ? '' : `${text}\n`)).join('');
  return { oldText: side('add'), newText: side('remove') };
}
