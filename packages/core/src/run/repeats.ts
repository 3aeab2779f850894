import type { Call } from '../tool/call/call.ts';
import type { Content } from '../tool/result.ts';
import type { Tool } from '../tool/tool.ts';
import type { Message } from './history/message.ts';

/** How many refused calls a model may make before the run reaches its limit. The first ones tell it why. */
const MAX_REFUSED = 3;

const AGAIN = 'the same call was made ';

/** Counts how often one call is made again: the same tool and input, with the same result, and nothing in between. */
export class Repeats {
  readonly #tools: ReadonlyMap<string, Tool>;
  #max: number;
  #key: string | undefined;
  #result: string | undefined;
  #ran = 0;
  #refused = 0;

  constructor(max: number, tools: ReadonlyMap<string, Tool>) {
    this.#max = max;
    this.#tools = tools;
  }

  get isReached(): boolean {
    return this.#ran >= this.#max && this.#refused >= MAX_REFUSED;
  }

  get max(): number {
    return this.#max;
  }

  /** Allows more calls like the last one. */
  raise(more: number): void {
    this.#max += more;
  }

  /** Continues the count of a history, which ends with this run. */
  read(messages: readonly Message[]): void {
    const from = messages.findLastIndex(isFromUser) + 1;
    const calls = new Map<string, Call>();
    for (const message of messages.slice(from)) {
      if (message.role === 'assistant') {
        for (const part of message.content)
          if (part.type === 'call') calls.set(part.callId, { ...part, id: part.callId });
      } else if (message.role === 'tool') this.record(calls.get(message.callId), message);
    }
  }

  /** A message from a user starts the count again. */
  restart(): void {
    this.#key = undefined;
    this.#ran = this.#refused = 0;
  }

  /** Returns which calls must not start, and why. Those of one reply count before their results are known. */
  refuse(calls: readonly Call[]): ReadonlyMap<string, string> {
    const refused = new Map<string, string>();
    let [key, ran] = [this.#key, this.#ran];
    for (const call of calls) {
      const own = this.#keyOf(call);
      if (own === undefined || own !== key) [key, ran] = [own, 0];
      if (own !== undefined && ++ran > this.#max) {
        const times = this.#max === 1 ? 'once' : `${this.#max} times with the same result`;
        refused.set(call.id, `${AGAIN}${times}; make a different call, or answer with what you have`);
      }
    }
    return refused;
  }

  /** Records how calls ended, in the order of the reply. */
  record(call: Call | undefined, { state, content }: { readonly state: string; readonly content: Content }): void {
    const key = call && this.#keyOf(call);
    const result = JSON.stringify(content);
    const isSame = key === this.#key;
    if (key === undefined) this.restart();
    else if (isSame && state === 'not-started' && result.startsWith(`"Not started: ${AGAIN}`)) this.#refused++;
    else {
      this.#ran = isSame && result === this.#result ? this.#ran + 1 : 1;
      this.#refused = 0;
      this.#key = key;
      this.#result = result;
    }
  }

  /** Names what a call asks for. `undefined`: it may be made as often as the model likes, or cannot be compared. */
  #keyOf({ tool, input }: Call): string | undefined {
    if (this.#tools.get(tool)?.repeats === 'allowed') return undefined;
    try {
      return `${tool} ${JSON.stringify(input, inOrder)}`;
    } catch {
      return undefined;
    }
  }
}

function isFromUser(message: Message): boolean {
  return message.role === 'user' && !message.isNotice;
}

/** Models write the fields of an input in any order. */
function inOrder(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
