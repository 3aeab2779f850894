import { type RunEvent, textOf } from '@whoa/core';
import { shortId } from '../tasks/local-tasks.ts';
import { describeInput, eventLine } from './event-line.ts';
import { oneLine } from './plain-text.ts';
import type { Screen } from './screen.ts';

const HINTS = {
  drain: 'waiting for what runs · Ctrl-C again interrupts it',
  abort: 'waiting for what was interrupted · Ctrl-C again kills it',
  kill: 'waiting for what must not be cut · Ctrl-C again exits without it',
} as const;

/** A run as a person follows it in the terminal that started it. */
export class RunView {
  readonly #screen: Screen;
  /** What runs now and what it last printed. */
  readonly #calls = new Map<string, string>();
  #level: keyof typeof HINTS | undefined;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  begin(taskId: string): void {
    const id = shortId(taskId);
    this.#screen.note(this.#screen.style('dim', `task ${id} · Ctrl-C stops it, and so does: whoa cancel ${id}`));
    this.#showStatus();
  }

  show(event: RunEvent): void {
    const screen = this.#screen;
    if (event.type === 'turn-start') screen.endLine();
    if (event.type === 'text') screen.say(event.text);
    if (event.type === 'call-start') this.#calls.set(event.callId, `${event.tool} ${describeInput(event.input, 40)}`);
    if (event.type === 'call-update')
      this.#calls.set(event.callId, `${event.tool}: ${lastLine(textOf(event.partial.content))}`);
    if (event.type === 'call-end') this.#calls.delete(event.result.callId);
    if (event.type === 'level-change') this.#level = event.level;
    const line = eventLine(event, screen);
    if (line !== undefined) screen.note(line);
    if (event.type === 'run-end') screen.status(undefined);
    else if (line !== undefined || event.type === 'turn-start' || event.type === 'approval-answer') this.#showStatus();
  }

  #showStatus(): void {
    this.#screen.status(
      () => (this.#level === undefined ? [...this.#calls.values()].at(-1) : HINTS[this.#level]) ?? 'thinking',
    );
  }
}

function lastLine(text: string): string {
  return oneLine(text.trimEnd().split('\n').at(-1) ?? '', 60);
}
