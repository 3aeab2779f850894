import type { CallResult, RunEvent, StopLevel } from '@whoa/core';
import { toText } from '@whoa/core';
import { toDetailsView } from '@whoa/core/view';
import type { TaskSummary } from '@whoa/tasks';
import type { Style } from '../boundary.ts';
import type { Screen } from '../screen.ts';
import { formatDuration } from '../text/durations.ts';
import { oneLine } from '../text/plain-text.ts';

const MAX_CHARACTERS = 200;
const ROOM_FOR_THE_REST = 24;

const STOPPING: Readonly<Record<StopLevel, string>> = {
  drain: 'stopping: nothing new starts, running calls may finish',
  abort: 'stopping now: running calls are interrupted',
  kill: 'killing: nothing more is waited for',
};

const ENDS: Readonly<Record<CallResult['state'], { readonly sign: string; readonly style: Style }>> = {
  finished: { sign: '✔', style: 'green' },
  failed: { sign: '✘', style: 'red' },
  interrupted: { sign: '■', style: 'yellow' },
  'not-started': { sign: '–', style: 'dim' },
  unknown: { sign: '?', style: 'red' },
};

/** Describes an event in one line, or returns `undefined` if users need not see it. */
export function eventLine(event: RunEvent, screen: Pick<Screen, 'style' | 'columns'>): string | undefined {
  switch (event.type) {
    case 'call-start': {
      const about = describeInput(event.input, screen.columns - event.tool.length - ROOM_FOR_THE_REST);
      return `${screen.style('cyan', '▸')} ${screen.style('bold', event.tool)} ${about}`;
    }
    case 'call-end':
      return describeEnd(event.result, screen);
    case 'call-waiting':
      return screen.style(
        'yellow',
        `⧗ ${event.tool} must not be interrupted: waiting, at most ${formatDuration(event.until - event.at)}`,
      );
    case 'turn-retry':
      return screen.style(
        'yellow',
        `↻ trying again in ${formatDuration(event.delayMs)}: ${oneLine(event.error, MAX_CHARACTERS)}`,
      );
    case 'steer-delivered':
      return `${screen.style('magenta', '»')} ${oneLine(toText(event.message.content), screen.columns - 4)}`;
    case 'history-compacted':
      return screen.style('dim', `… ${event.before} messages were compacted to ${event.after}`);
    case 'level-changed':
      return screen.style('yellow', `■ ${STOPPING[event.level]}`);
    case 'undo-start':
      return `${screen.style('cyan', '↶')} undoing ${event.tool} (${event.callId})`;
    case 'undo-end':
      return `${screen.style(event.state === 'undone' ? 'green' : 'red', '↶')} ${event.tool} (${event.callId}) ${event.state === 'undone' ? 'undone' : `undo ${event.state}${event.error === undefined ? '' : `: ${oneLine(event.error, MAX_CHARACTERS)}`}`}`;
    case 'events-skipped':
      return screen.style('dim', `… ${event.count} events were too fast to show`);
    default:
      return undefined;
  }
}

/** Says why a task waits for the provider of its model, and until when; `undefined` if it does not. */
export function describeProviderWait({ status, activity, stageAt }: TaskSummary): string | undefined {
  const { providerWait } = activity ?? {};
  if (providerWait === undefined || status !== 'init') return undefined;
  return describePostponed({ error: providerWait.error, until: stageAt ?? 0 });
}

export function describePostponed({ error, until }: { readonly error: string; readonly until: number }): string {
  const next = new Date(until).toLocaleTimeString('en-GB');
  return `waiting for the provider: ${oneLine(error, MAX_CHARACTERS)}, next try ${next}`;
}

/** Summarises the input of a call. */
export function describeInput(input: unknown, maxCharacters: number = MAX_CHARACTERS): string {
  const { command, path, pattern } = (input ?? {}) as Readonly<Record<string, unknown>>;
  const words = [command, pattern, path].filter((word) => typeof word === 'string');
  const text = words.length > 0 ? words.join(' ') : JSON.stringify(input);
  return oneLine(text ?? '', Math.max(16, maxCharacters));
}

function describeEnd(result: CallResult, screen: Pick<Screen, 'style' | 'columns'>): string {
  const { tool, state, startedAt, endedAt, isError } = result;
  const { sign, style } = ENDS[isError && state === 'finished' ? 'failed' : state];
  const took = startedAt === undefined ? '' : ` ${formatDuration(endedAt - startedAt)}`;
  const words = state === 'finished' ? '' : ` ${state.replace('-', ' ')}`;
  const why = isError && state !== 'interrupted' ? `: ${oneLine(describeError(result), screen.columns - 30)}` : '';
  return `${screen.style(style, sign)} ${tool}${words}${screen.style('dim', `${took}${why}`)}`;
}

/** Why a call failed. The output of a command is shown below its end, so its exit is enough. */
function describeError({ content, details }: CallResult): string {
  const view = toDetailsView(details, content);
  return (view.kind === 'output' ? view.exit : undefined) ?? toText(content).replace('Not started: ', '');
}
