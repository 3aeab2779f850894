import type { Json } from '@whoa/core';
import { toText } from '@whoa/core';
import { type DetailsView, toDetailsView } from '@whoa/core/view';
import { formatDuration, plural } from './format.ts';
import type { CallModel } from './run-model.ts';

/** The field of an input that says best what a call is about. */
const SUBJECTS = ['command', 'pattern', 'path', 'query', 'prompt', 'task', 'url'] as const;

/** What a call is about, in one line. */
export function findSubject(input: unknown): string {
  if (typeof input === 'string') return input;
  if (typeof input !== 'object' || input === null) return '';
  const fields = input as Readonly<Record<string, unknown>>;
  const subjects = SUBJECTS.flatMap((name) => (typeof fields[name] === 'string' ? [fields[name]] : []));
  if (subjects.length > 0) return subjects.slice(0, 2).join(' ');
  const values = Object.values(fields).filter((value) => typeof value === 'string' || typeof value === 'number');
  return values.join(', ');
}

/** The view of what a call returned, or has returned so far. */
export function toView({ result, partial }: CallModel): DetailsView {
  const shown = result ?? partial;
  return toDetailsView(shown?.details as Json | undefined, shown?.content);
}

/** What the model was given, if the call has ended. */
export function modelSaw({ result }: CallModel): string {
  return result?.content === undefined ? '' : toText(result.content);
}

/** How a call stands, in a few words. */
export function describeState(call: CallModel, now: number): string {
  const { state, startedAt, endedAt, result } = call;
  const took = startedAt === undefined ? '' : formatDuration((endedAt ?? now) - startedAt);
  switch (state) {
    case 'planned':
      return 'not begun yet';
    case 'waiting':
      return `waits for approval since ${formatDuration(now - (call.askedAt ?? now))}`;
    case 'running':
      return call.waitsUntil === undefined
        ? `running for ${took}`
        : `must not be interrupted: waited for, at most ${formatDuration(call.waitsUntil - now)} more`;
    case 'finished':
      return [`${result?.isError ? 'ended with an error' : 'finished'}${about(toView(call))}`, took]
        .filter(Boolean)
        .join(', ');
    case 'failed':
      return ['failed', took].filter(Boolean).join(', ');
    case 'interrupted':
      return took === '' ? 'interrupted' : `interrupted after ${took}`;
    case 'not-started':
      return call.approved === false && result?.reason === undefined
        ? 'not approved: no effect'
        : 'not started: no effect';
    case 'unknown':
      return 'unknown: no longer waited for, it may still take effect';
  }
}

function about(view: DetailsView): string {
  switch (view.kind) {
    case 'diff':
      return `: +${view.added} −${view.removed}`;
    case 'matches':
      return `: ${view.isPartial ? 'at least ' : ''}${plural(view.total, 'match', 'matches')} in ${plural(view.files, 'file')}`;
    case 'output':
      return view.exit === undefined || view.exit === 'exit code 0' ? '' : `: ${view.exit}`;
    case 'files':
      return `: ${plural(view.paths.length, 'file')}${view.isPartial ? ' or more' : ''}`;
    case 'file':
      return view.lines === undefined ? '' : `: ${plural(view.lines, 'line')}`;
    default:
      return '';
  }
}
