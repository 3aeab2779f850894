// Values that should never be passed in, each created fresh.
import { runInNewContext } from 'node:vm';

export interface HostileValue {
  readonly name: string;
  make(): unknown;
  /** Slow to inspect, so it is used less often. */
  readonly isHeavy?: boolean;
}

const trap = (): never => {
  throw new Error('a trap');
};

const TRAPS: ProxyHandler<object> = {
  get: trap,
  has: trap,
  ownKeys: trap,
  getPrototypeOf: trap,
  getOwnPropertyDescriptor: trap,
  defineProperty: trap,
  isExtensible: trap,
  preventExtensions: trap,
  set: trap,
  deleteProperty: trap,
};

function withGetter(name: string, get: () => unknown, target: object = {}): object {
  return Object.defineProperty(target, name, { get, enumerable: true, configurable: true });
}

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function cycle(): object {
  const one: Record<string, unknown> = { content: 'x' };
  one['self'] = one;
  one['list'] = [one];
  return one;
}

function deep(depth: number): object {
  let one: object = {};
  for (let level = 0; level < depth; level++) one = level % 2 === 0 ? { one } : [one];
  return one;
}

function sparse(): unknown[] {
  const list: unknown[] = ['first'];
  list[5_000] = 'last';
  return list;
}

function changing(): object {
  let reads = 0;
  const next = (): unknown => [[], 'text', 7, null, { a: 1 }][reads++ % 5];
  return withGetter('content', next, withGetter('details', next, withGetter('type', next)));
}

function thenable(then: (...given: ((value?: unknown) => void)[]) => unknown): object {
  // oxlint-disable-next-line unicorn/no-thenable -- the value is meant to be a thenable
  return { then };
}

function detached(): Uint8Array {
  const bytes = new Uint8Array(8);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  return bytes;
}

/** How often something endless is read before that counts as a hang. */
const MAX_READS = 1_100_000;

export const endless: { onRead: () => unknown } = { onRead: () => {} };

/** Stands in for a hang, and ends it. */
function bounded(reads: number): string {
  if (reads <= MAX_READS) return 'x';
  endless.onRead();
  throw new Error('it was read without end');
}

function falseLength(): unknown[] {
  let reads = 0;
  return new Proxy([], {
    get: (target, key) => {
      if (key === 'length') return 2 ** 31;
      return typeof key === 'string' && /^[0-9]+$/.test(key) ? bounded(reads++) : (Reflect.get(target, key) as unknown);
    },
    has: (target, key) => bounded(reads++) === 'x' && Reflect.has(target, key),
  });
}

class ForeignClass {
  readonly #secret = 'x';
  content = 'of a stranger';
  get secret(): string {
    return this.#secret;
  }
  toJSON(): never {
    return trap();
  }
}

const foreign = (code: string): unknown => runInNewContext(code) as unknown;

const VALUES: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  NaN: () => Number.NaN,
  Infinity: () => Infinity,
  negative: () => -1,
  'minus zero': () => -0,
  'a fraction': () => 0.1 + 0.2,
  'a huge number': () => 1e308,
  true: () => true,
  'a bigint': () => 10n ** 30n,
  'a symbol': () => Symbol('hostile'),
  'a function that throws': () => trap,
  'a class': () => ForeignClass,
  'a class instance': () => new ForeignClass(),
  'a null prototype': () => Object.assign(Object.create(null) as object, { content: 'x', details: {} }),
  'a throwing getter': () => withGetter('content', trap, withGetter('message', trap, withGetter('type', trap))),
  'a getter that changes': changing,
  'a throwing toString': () => ({ toString: trap, valueOf: trap, toJSON: trap, [Symbol.toPrimitive]: trap }),
  'a proxy full of traps': () => new Proxy({}, TRAPS),
  'a function proxy full of traps': () => new Proxy(() => {}, { ...TRAPS, apply: trap, construct: trap }),
  'a proxy that has everything': () =>
    new Proxy({}, { get: (_, key) => (typeof key === 'symbol' ? undefined : key), has: () => true }),
  'a revoked proxy': () => revoked({}),
  'a revoked list': () => revoked([]),
  'a cycle': cycle,
  'an empty text': () => '',
  'a blank text': () => ' \n\t ',
  'lone surrogates': () => 'half \uD83D and \uDE00 half',
  'control characters': () => 'a\u0000b\u001B[31mc\u202Ed\uFEFFe\u007F',
  'a text like a prototype': () => '__proto__',
  'an empty list': () => [],
  'a sparse list': sparse,
  'a list of nothing': () => [null, undefined, Number.NaN, Symbol('x')],
  'a list like a list': () => ({ length: 2 ** 32, 0: 'x' }),
  'an object with symbols for keys': () => ({
    [Symbol('content')]: 'x',
    [Symbol.iterator]: 7,
    [Symbol.toStringTag]: {},
  }),
  'a frozen object': () => Object.freeze({ content: 'frozen', details: Object.freeze([1]) }),
  'a typed array': () => new Float64Array([1, Number.NaN, Infinity]),
  'a detached buffer': detached,
  'an invalid date': () => new Date(Number.NaN),
  'a map': () => new Map([['content', 'x']]),
  'a regular expression': () => /x/g,
  'keys of the prototype': () =>
    JSON.parse('{"__proto__":{"polluted":true},"constructor":1,"toString":"x"}') as unknown,
  'a boxed text': () => Object('boxed') as unknown,
  'an error': () => new Error('an ordinary error'),
  'an error with an object for a message': () => Object.assign(new Error('x'), { message: { deep: true }, name: 7 }),
  'an error that cannot be read': () => withGetter('message', trap, withGetter('stack', trap, new Error('x'))),
  'an error that causes itself': () => {
    const error = new Error('x');
    error.cause = error;
    return error;
  },
  'an abort error': () => new DOMException('not ours', 'AbortError'),
  'a forged cancel': () =>
    Object.assign(new Error('forged'), {
      [Symbol.for('@whoa/core/cancelled')]: true,
      code: 'CANCELLED',
      reason: revoked({}),
      partial: { content: 5 },
    }),
  'a foreign object': () => foreign('({ content: [{ type: "text", text: "far" }], details: { far: [1] } })'),
  'a foreign error': () => foreign('new Error("far away")'),
  'a foreign list': () => foreign('[{ type: "text", text: "far" }]'),
  'a foreign promise': () => foreign('Promise.resolve("far")'),
  'a promise that never settles': () => new Promise(() => {}),
  'an asynchronous iterable': () => ({
    async *[Symbol.asyncIterator]() {
      await Promise.resolve();
      yield trap();
    },
  }),
  'a thenable that never settles': () => thenable(() => {}),
  'a thenable that settles twice': () =>
    thenable((resolve, reject) => {
      resolve!('first');
      reject!(new Error('second'));
      resolve!('third');
    }),
  'a thenable that throws': () => thenable(trap),
  'a throwing then': () => withGetter('then', trap),
  'a promise that rejects': () => {
    const rejecting = Promise.reject(new Error('rejected by the value'));
    // Handled here; the code that gets it must handle it too.
    rejecting.catch(() => {});
    return rejecting;
  },
  'an endless iterable': () => ({
    *[Symbol.iterator]() {
      for (let reads = 0; ; reads++) yield bounded(reads);
    },
  }),
};

const HEAVY: Readonly<Record<string, () => unknown>> = {
  'a list with a false length': falseLength,
  'a deep object': () => deep(20_000),
  'a deep result': () => ({ content: 'x', details: deep(20_000) }),
  'a very long text': () => 'long '.repeat(60_000),
  'a huge object': () =>
    Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`key ${index}`, { index, text: 'x'.repeat(20) }])),
  'a huge list': () => Array.from({ length: 12_000 }, (_, index) => ({ type: 'text', text: `${index}` })),
};

export const values: readonly HostileValue[] = [
  ...Object.entries(VALUES).map(([name, make]) => ({ name, make })),
  ...Object.entries(HEAVY).map(([name, make]) => ({ name, make, isHeavy: true })),
];
