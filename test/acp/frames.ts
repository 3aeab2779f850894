// Lines that a broken or hostile client might send.
export type Random = () => number;

const METHODS = [
  'initialize',
  'authenticate',
  'session/new',
  'session/load',
  'session/resume',
  'session/list',
  'session/close',
  'session/delete',
  'session/prompt',
  'session/cancel',
  'session/set_config_option',
  'session/set_mode',
  'tool_call/cancel',
  'terminal/cancel',
  '_whoa/tool_call/cancel',
  '$/cancel_request',
  'session/update',
  'nobody/knows',
  '__proto__',
  '',
];
const TEXTS = [
  '',
  'hello',
  'talk',
  'silent',
  'edit',
  'half',
  'finish',
  'slow',
  '\u0000',
  '💥',
  '../../etc/passwd',
  '__proto__',
];

const MAX_SESSIONS = 8;

/** Makes frames for some sessions; `id` counts up, so an answer names its request. */
export class FrameMaker {
  readonly #random: Random;
  readonly #sessions: string[];
  #id = 1_000;

  constructor(random: Random, sessions: readonly string[]) {
    this.#random = random;
    this.#sessions = [...sessions];
  }

  /** Another session to send things to; the oldest is forgotten. */
  know(sessionId: string): void {
    this.#sessions.push(sessionId);
    if (this.#sessions.length > MAX_SESSIONS) this.#sessions.shift();
  }

  /** One line, with its newline. */
  next(): Buffer {
    const make = this.#pick([
      () => this.#garbage(),
      () => this.#cut(JSON.stringify(this.#message())),
      () => Buffer.from(`${JSON.stringify(this.#message())}\r\n`),
      () => this.#line(this.#message()),
      () => this.#line(this.#message()),
      () => this.#line(this.#plausible()),
      () => this.#line(this.#plausible()),
      () => this.#line(this.#plausible()),
      () => this.#line([this.#message(), this.#message()]),
      () => this.#line(this.#value(0)),
      () => Buffer.from(`${'['.repeat(this.#below(3_000))}\n`),
      () =>
        Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":${this.#nested(this.#below(2_000))}}\n`),
      () => this.#line({ jsonrpc: '2.0', id: this.#below(50), result: this.#value(0) }),
      () => this.#line({ jsonrpc: '2.0', id: this.#below(50), error: this.#value(0) }),
    ]);
    return make();
  }

  /** A message in a right shape at a moment that need not be right. */
  #plausible(): object {
    const sessionId = this.#pick(this.#sessions.length > 0 ? this.#sessions : ['nobody']);
    const id = ++this.#id;
    return this.#pick<() => object>([
      () => ({
        id,
        method: 'session/prompt',
        params: { sessionId, prompt: [{ type: 'text', text: this.#pick(TEXTS) }] },
      }),
      () => ({ method: 'session/cancel', params: { sessionId } }),
      () => ({ method: '$/cancel_request', params: { requestId: this.#id - this.#below(20) } }),
      () => ({ id, method: 'session/load', params: { sessionId, cwd: '/tmp', mcpServers: [] } }),
      () => ({ id, method: 'session/resume', params: { sessionId, cwd: '/tmp', mcpServers: [] } }),
      () => ({ id, method: 'session/list', params: {} }),
      () => ({ id, method: 'session/new', params: { cwd: '/tmp', mcpServers: [] } }),
      () => ({ id, method: 'session/close', params: { sessionId } }),
      () => ({
        id,
        method: 'initialize',
        params: { protocolVersion: this.#below(4), info: { name: 'x', version: '1' } },
      }),
      () => ({
        id,
        method: 'session/set_config_option',
        params: { sessionId, configId: 'model', type: 'id', value: 'b' },
      }),
      () => ({ id, method: 'tool_call/cancel', params: { sessionId, toolCallId: 'call-1' } }),
    ])();
  }

  #message(): object {
    return {
      jsonrpc: this.#pick(['2.0', '2.0', '2.0', '1.0', undefined, 2]),
      ...this.#pick([
        { id: ++this.#id },
        { id: ++this.#id },
        {},
        { id: null },
        { id: 1.5 },
        { id: `${++this.#id}` },
        { id: {} },
      ]),
      method: this.#pick([...METHODS, ...METHODS, this.#value(2)]),
      ...this.#pick([{ params: this.#params() }, { params: this.#params() }, { params: this.#value(1) }, {}]),
    };
  }

  #params(): object {
    const names = [
      'sessionId',
      'prompt',
      'cwd',
      'mcpServers',
      'requestId',
      'protocolVersion',
      'configId',
      'value',
      '_meta',
    ];
    return Object.fromEntries(names.filter(() => this.#random() < 0.6).map((name) => [name, this.#param(name)]));
  }

  #param(name: string): unknown {
    if (this.#random() < 0.3) return this.#value(1);
    if (name === 'sessionId') return this.#pick([...this.#sessions, 'nobody']);
    if (name === 'prompt')
      return [{ type: this.#pick(['text', 'image', 'audio', 'resource', 'x']), text: this.#pick(TEXTS) }];
    if (name === 'cwd') return this.#pick(['/tmp', 'here', '']);
    return this.#value(1);
  }

  #value(depth: number): unknown {
    return this.#pick<() => unknown>([
      () => null,
      () => this.#random() * 1e12,
      () => -1,
      () => this.#pick(TEXTS),
      () => 'x'.repeat(this.#below(5_000)),
      () => true,
      () => (depth > 3 ? [] : [this.#value(depth + 1), this.#value(depth + 1)]),
      () => (depth > 3 ? {} : { [this.#pick(TEXTS)]: this.#value(depth + 1), constructor: this.#value(depth + 1) }),
    ])();
  }

  #nested(depth: number): string {
    return `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  }

  #garbage(): Buffer {
    const bytes = Buffer.from(Array.from({ length: this.#below(200) }, () => this.#below(256)));
    return Buffer.concat([bytes, Buffer.from('\n')]);
  }

  #cut(text: string): Buffer {
    return Buffer.from(`${text.slice(0, this.#below(text.length))}\n`);
  }

  #line(value: unknown): Buffer {
    const whole = typeof value === 'object' && value !== null && !Array.isArray(value) && !('jsonrpc' in value);
    return Buffer.from(`${JSON.stringify(whole ? { jsonrpc: '2.0', ...value } : value)}\n`);
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#below(from.length)]!;
  }
}
