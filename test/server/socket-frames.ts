// Frames that a broken or hostile page might send.
type Chance = () => number;

const TYPES = [
  'send',
  'resume',
  'abort',
  'stop',
  'approve',
  'ping',
  'start',
  'chunk',
  '',
  '__proto__',
  'constructor',
  'toString',
];
const TEXTS = ['', 'hello', '\u0000', '💥', '\ud800', '../../etc/passwd', '__proto__', 'constructor', 'x'.repeat(300)];
const CHATS = ['a', 'b', 'c', 'd'];

/** Makes frames: right ones, right ones with something wrong in them, and nonsense. */
export class FrameMaker {
  readonly #chance: Chance;
  #id = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  next(): string {
    return this.#pick<() => string>([
      () => JSON.stringify(this.#good()),
      () => JSON.stringify(this.#bent(this.#good())),
      () => JSON.stringify(this.#bent(this.#good())),
      () => JSON.stringify(this.#bent(this.#bent(this.#good()))),
      () => this.#cut(JSON.stringify(this.#good())),
      () => JSON.stringify(this.#value(0)) ?? 'undefined',
      () => '['.repeat(this.#below(3_000)),
      () => `{"type":"send","requestId":"n","id":"a","messages":${'['.repeat(500)}${']'.repeat(500)}}`,
      () => this.#pick(TEXTS),
    ])();
  }

  /** A frame in a right shape at a moment that need not be right. */
  #good(): Record<string, unknown> {
    const requestId = `r${++this.#id}`;
    const earlier = `r${Math.max(1, this.#id - this.#below(20))}`;
    // Now and then other chats: one that grows without end makes every message dearer.
    const [id, runId] = [
      `${this.#pick(CHATS)}${Math.floor(this.#id / 1_000)}`,
      this.#pick([undefined, `run${this.#below(200)}`]),
    ];
    return this.#pick<() => Record<string, unknown>>([
      () => ({
        type: 'send',
        requestId,
        id,
        trigger: this.#pick(['submit-message', 'submit-message', 'regenerate-message']),
        messages: [{ id: `u${this.#below(50)}`, role: 'user', parts: [{ type: 'text', text: this.#pick(TEXTS) }] }],
        headers: {},
        body: { runId },
      }),
      () => ({ type: 'resume', requestId, id, headers: { 'whoa-last-message': this.#pick(TEXTS) }, body: {} }),
      () => ({ type: 'abort', requestId: earlier }),
      () => ({
        type: 'stop',
        requestId,
        id,
        runId,
        scope: this.#pick([undefined, undefined, 'foreground', 'background', 'all']),
        rollback: this.#pick([undefined, undefined, false, true]),
      }),
      () => ({ type: 'approve', requestId, id, approvalId: this.#pick(TEXTS), approved: this.#pick([true, false]) }),
    ])();
  }

  /** The same with one thing changed, added or left out, at any depth. */
  #bent(frame: Record<string, unknown>): Record<string, unknown> {
    const key = this.#pick([...Object.keys(frame), this.#pick(TEXTS)]);
    const now = frame[key];
    if (this.#below(3) > 0 && typeof now === 'object' && now !== null) {
      const inner = Array.isArray(now)
        ? now.map((one) => (isRecord(one) ? this.#bent(one) : this.#value(1)))
        : this.#bent(now as Record<string, unknown>);
      return { ...frame, [key]: inner };
    }
    if (key === 'type') return { ...frame, type: this.#pick(TYPES) };
    const { [key]: _, ...rest } = frame;
    return this.#below(3) === 0 ? rest : { ...rest, [key]: this.#value(0) };
  }

  #value(depth: number): unknown {
    const simple = [null, true, 0, -1, 1e308, this.#pick(TEXTS), [], {}];
    if (depth > 3 || this.#below(2) === 0) return this.#pick(simple);
    const values = Array.from({ length: this.#below(4) }, () => this.#value(depth + 1));
    return this.#below(2) === 0 ? values : Object.fromEntries(values.map((value) => [this.#pick(TEXTS), value]));
  }

  #cut(text: string): string {
    return text.slice(0, this.#below(text.length));
  }

  #below(limit: number): number {
    return Math.floor(this.#chance() * limit);
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#below(from.length)]!;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
