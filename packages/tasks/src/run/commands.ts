import { CancellationToken, type Run } from '@whoa/core';
import type { UserMessage } from '@whoa/core/embed';
import type { Orders } from '../delivery.ts';
import type { NumberedCommand } from '../task.ts';
import { messageOf } from './work.ts';

type Steer = Extract<NumberedCommand, { type: 'steer' }>;

/** What a worker has been told to do beside stopping, each thing once. */
export class Commands {
  readonly #seen = new Set<number>();
  /** For a run that has not begun yet. */
  #waiting: NumberedCommand[] = [];
  /** Messages that the run has been given and not read yet. */
  readonly #steers = new Map<UserMessage, { readonly number: number; readonly token: CancellationToken }>();
  #orderNumber = 0;

  /** Which of them are new. A message that is no longer among them was withdrawn, and is not delivered. */
  read({ commands, orderNumber }: Pick<Orders, 'commands' | 'orderNumber'>): readonly NumberedCommand[] {
    // Answers overtake each other: older orders do not know of what came since.
    if (orderNumber >= this.#orderNumber) {
      this.#orderNumber = orderNumber;
      this.#withdraw(new Set(commands.map(({ number }) => number)));
    }
    const added = commands.filter(({ number }) => !this.#seen.has(number));
    for (const { number } of added) this.#seen.add(number);
    return added;
  }

  keep(command: NumberedCommand): void {
    this.#waiting.push(command);
  }

  /** What was kept for the run. */
  take(): readonly NumberedCommand[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  /** Hands the run a message. Returns whether it is one: anybody may have sent it. */
  steer(run: Run, { message, number }: Steer): boolean {
    const token = new CancellationToken({ name: `message ${number}` });
    try {
      const given = run.steer(messageOf(message), { token });
      this.#steers.set(given.message, { number, token });
      return true;
    } catch {
      return false;
    }
  }

  /** The run has read a message. Answers the number of its command. */
  delivered(message: UserMessage): number | undefined {
    const steer = this.#steers.get(message);
    this.#steers.delete(message);
    return steer?.number;
  }

  #withdraw(wanted: ReadonlySet<number>): void {
    this.#waiting = this.#waiting.filter(({ number }) => wanted.has(number));
    for (const { number, token } of this.#steers.values()) if (!wanted.has(number)) token.cancel({}, { mode: 'now' });
  }
}
