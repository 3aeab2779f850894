import { type RunEvent, type StopLevel, type StopMode, type Tool, toText } from '@whoa/core';
import { systemClock } from '@whoa/core/embed';
import { formatCallTitle } from '@whoa/core/internal';
import { shortId } from '../../tasks/local-tasks.ts';
import { commandName } from '../command-name.ts';
import type { Screen } from '../screen.ts';
import { oneLine } from '../text/plain-text.ts';
import { detailsLines } from './details-lines.ts';
import { describeInput, eventLine } from './event-line.ts';
import { LevelDeadlines } from './level-deadlines.ts';

export interface RunViewOptions {
  readonly tools: readonly Tool[];
  /** The mode of the first Ctrl-C. */
  readonly first?: StopMode | undefined;
  /** Show all output of calls, not only the last lines. */
  readonly isFull?: boolean;
}

interface ShownCall {
  readonly tool: string;
  /** A summary of its input, or the last line it printed. */
  text: string;
}

const MAX_NAMES = 3;

/** Shows a run in the terminal that started it. */
export class RunView {
  readonly #screen: Screen;
  readonly #tools: readonly Tool[];
  readonly #deadlines: LevelDeadlines;
  readonly #isFull: boolean;
  readonly #calls = new Map<string, ShownCall>();
  #level: StopLevel | undefined;
  #nextAt: number | undefined;
  #taskId = '';

  constructor(screen: Screen, { tools, first, isFull = false }: RunViewOptions) {
    this.#screen = screen;
    this.#isFull = isFull;
    this.#tools = tools;
    this.#deadlines = new LevelDeadlines(first);
  }

  /** The current stop level of the run. */
  get level(): StopLevel | undefined {
    return this.#level;
  }

  /** Starts to show a task. `isQuiet` does not name it. */
  begin(taskId: string, { isQuiet = false }: { readonly isQuiet?: boolean } = {}): void {
    this.#taskId = shortId(taskId);
    this.#showStatus();
    if (isQuiet) return;
    const ways = `Ctrl-C stops it, and so does: ${commandName()} cancel ${this.#taskId}`;
    this.#screen.note(this.#screen.style('dim', `task ${this.#taskId} · ${ways}`));
  }

  show(event: RunEvent): void {
    const screen = this.#screen;
    if (event.type === 'turn-start') screen.endLine();
    if (event.type === 'text') screen.say(event.text);
    this.#follow(event);
    const line = event.type === 'level-changed' ? this.#describeStop(event) : eventLine(event, screen);
    // How to leave without a call that must finish.
    const exit = ` · Ctrl-C ${this.#level === 'drain' ? 'twice more' : 'again'} exits without it`;
    if (line !== undefined) screen.note(event.type === 'call-waiting' ? line + this.#yellow(exit) : line);
    if (event.type === 'call-end') {
      for (const detail of detailsLines(event.result, screen, { isFull: this.#isFull })) screen.note(detail);
    }
    if (event.type === 'turn-end') for (const question of this.#describeQuestions(event)) screen.note(question);
    if (event.type === 'run-end') screen.status(undefined);
    else if (line !== undefined || event.type === 'turn-start' || event.type === 'approval-answered')
      this.#showStatus();
  }

  /** Announces that the process exits after `ms`, whatever is still running. */
  lastWait(ms: number): void {
    if (this.#calls.size === 0) return;
    this.#screen.note(this.#yellow(`■ whoa exits in ${seconds(ms)} at most · Ctrl-C again exits now`));
  }

  /** Prints a note when the process exits before everything has ended. */
  leave(): void {
    const names = formatNames([...this.#calls.values()]);
    const what = names === '' ? 'not everything has ended' : `${names} has not ended`;
    this.#screen.note(
      `Left while ${what}; its processes are ended. '${commandName()} cancel ${this.#taskId}' settles the task.`,
    );
  }

  #follow(event: RunEvent): void {
    if (event.type === 'call-start') {
      this.#calls.set(event.callId, { tool: event.tool, text: `${event.tool} ${describeInput(event.input, 40)}` });
    }
    const call = event.type === 'call-update' ? this.#calls.get(event.callId) : undefined;
    if (event.type === 'call-update' && call !== undefined) {
      call.text = `${call.tool}: ${lastLine(toText(event.partial.content))}`;
    }
    if (event.type === 'call-end') this.#calls.delete(event.result.callId);
  }

  /** Describes the calls of a turn that are answered from elsewhere. */
  #describeQuestions({ message }: Extract<RunEvent, { type: 'turn-end' }>): string[] {
    return message.content.flatMap((part) => {
      if (part.type !== 'call' || !this.#tools.some(({ name, answeredBy }) => name === part.tool && answeredBy))
        return [];
      return `? ${oneLine(formatCallTitle(part.tool, part.input), 200)} · to answer: ${commandName()} approve ${this.#taskId}`;
    });
  }

  /** Describes what the stop waits for, the time limit, and what another Ctrl-C does. */
  #describeStop({ level, reason, at }: Extract<RunEvent, { type: 'level-changed' }>): string {
    this.#level = level;
    this.#nextAt = reason.via === 'Ctrl-C' ? this.#deadlines.reach(level, at) : undefined;
    return this.#yellow(`■ ${STOPPING[level]}${this.#waiting(at) ?? ''}`);
  }

  /** Describes the calls that the stop waits for, if any. Calls that must finish have their own event, so they are left out. */
  #waiting(now: number): string | undefined {
    const level = this.#level ?? 'drain';
    const calls = [...this.#calls.values()];
    const protectedCalls = calls.filter(({ tool }) => this.#isProtected(tool));
    const names = formatNames(
      level === 'kill' ? protectedCalls : calls.filter((call) => !protectedCalls.includes(call)),
    );
    if (names === '') return undefined;
    const most = this.#nextAt === undefined ? '' : `, ${seconds(this.#nextAt - now)} at most`;
    return `: ${WAITING[level](names)}${most} · Ctrl-C again ${NEXT[level]}`;
  }

  #isProtected(tool: string): boolean {
    return this.#tools.find(({ name }) => name === tool)?.whenCancelled === 'finish';
  }

  #showStatus(): void {
    this.#screen.status(() => {
      if (this.#level !== undefined) return `stopping${this.#waiting(systemClock.now()) ?? ''}`;
      return [...this.#calls.values()].at(-1)?.text ?? 'thinking';
    });
  }

  #yellow(text: string): string {
    return this.#screen.style('yellow', text);
  }
}

const STOPPING = { drain: 'stopping', abort: 'stopping now', kill: 'killing' } as const;
const WAITING = {
  drain: (names: string) => `waiting for ${names}`,
  abort: (names: string) => `interrupting ${names}`,
  kill: (names: string) => `${names} must not be interrupted`,
} as const;
const NEXT = { drain: 'interrupts it', abort: 'kills it', kill: 'exits without it' } as const;

function formatNames(calls: readonly ShownCall[]): string {
  const names = [...new Set(calls.map(({ tool }) => tool))];
  return names.length > MAX_NAMES ? `${calls.length} calls` : names.join(', ');
}

function seconds(ms: number): string {
  return `${Math.max(0, Math.ceil(ms / 1_000))} s`;
}

function lastLine(text: string): string {
  return oneLine(text.trimEnd().split('\n').at(-1) ?? '', 60);
}
