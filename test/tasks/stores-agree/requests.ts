import type { Policy } from '@whoa/core';
import type { ClaimRef } from '@whoa/tasks/store';
import * as fc from 'fast-check';
import { type Made, type Request, type Taken, WORKERS } from './made.ts';

/** Short, so that sessions expire within a few steps. */
export const LEASE_MS = 6_000;
export const AGENTS: readonly string[] = ['a', 'b'];

/** Creates a request from what a history knows so far. */
export type Plan = (made: Made) => Request;

/** Steps of one kind, which show their values when a history fails. */
export function toPlans<T>(kind: string, values: fc.Arbitrary<T>, toPlan: (value: T) => Plan): fc.Arbitrary<Plan> {
  return values.map((value) =>
    Object.assign(toPlan(value), { [fc.toStringMethod]: () => `${kind}(${JSON.stringify(value)})` }),
  );
}

export const index = fc.nat(5);
const worker = fc.constantFrom(...WORKERS);
export const stopMode = fc.constantFrom('graceful' as const, 'now' as const, 'kill' as const);
const some = fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 });
const usage = fc.option(fc.record({ inputTokens: fc.nat(), outputTokens: fc.nat(), isComplete: fc.boolean() }));
const counts = fc.record({ turns: fc.nat(), calls: fc.nat(), questions: fc.nat(2) });
const wait = fc.option(
  fc.record({ error: fc.string({ unit: 'binary', maxLength: 20 }), since: fc.nat(), attempts: fc.nat() }),
);
const activity = fc.option(
  fc.tuple(counts, usage, wait).map(([counted, used, waits]) => ({
    ...counted,
    ...(used !== null && { usage: used }),
    ...(waits !== null && { providerWait: waits }),
  })),
  { nil: undefined },
);
/** How long a released task waits before it can be taken; most can be taken immediately. */
export const released = fc.constantFrom({}, {}, { delayMs: 1_000 }, { delayMs: 4_000 });

interface CreateScope {
  readonly tenant: fc.Arbitrary<string>;
  readonly agent: fc.Arbitrary<string>;
  /** No two tasks have the same priority. */
  readonly isOrdered: boolean;
  /** Nearly all are messages that wait behind others. */
  readonly isConversation: boolean;
}

const POLICIES: readonly Policy[] = ['replace', 'queue', 'merge', 'steer', 'reject'];
const WAITING: readonly Policy[] = ['steer', 'steer', 'steer', 'queue', 'queue', 'merge', 'replace'];
const KINDS = ['plain', 'plain', 'held', 'held', 'later', 'home', 'late talk', 'home talk'] as const;
const NO_CONTEXT = [undefined, undefined, undefined] as const;

export function createPlans({ tenant, agent, isOrdered, isConversation }: CreateScope): fc.Arbitrary<Plan> {
  const wanted = fc.record({
    tenant,
    agent,
    policy: fc.constantFrom(...(isConversation ? WAITING : POLICIES)),
    kind: fc.constantFrom(...Array.from({ length: isConversation ? 40 : 5 }, () => 'talk' as const), ...KINDS),
    priority: fc.constantFrom(0, 0, 0, 1, -100, 100),
    input: fc.nat(50),
    nonce: fc.nat(3),
    context: fc.constantFrom(
      ...(isConversation ? [...NO_CONTEXT, ...NO_CONTEXT, ...NO_CONTEXT, ...NO_CONTEXT] : NO_CONTEXT),
      { user: 'ann' },
      { user: 'bob', locale: 'de' },
    ),
    deadline: fc.constantFrom(undefined, undefined, undefined, 8_100, 60_000),
    startedBy: fc.constantFrom(undefined, undefined, 'ann'),
    keepsQuestions: fc.constantFrom(undefined, undefined, true),
  });
  return toPlans('create', wanted, ({ policy, kind, input, nonce, deadline, ...rest }) => (made) => {
    const kinds = {
      plain: {},
      talk: { conversation: 'c' },
      held: { conversation: 'c', debounceMs: 8_000 },
      later: { notBefore: made.now + 5_000 },
      home: { preferredWorker: 'w1' },
      'late talk': { conversation: 'c', notBefore: made.now + 8_000 },
      'home talk': { conversation: 'c', preferredWorker: 'w2' },
    };
    // Texts of many lengths: small inputs and titles are stored in other places than long ones.
    const text = input % 2 === 0 ? 'wörd '.repeat(input) : input;
    const key = nonce === 1 ? { key: `k${input % 4}` } : {};
    // No two are the same: then any of them may end first.
    const until = deadline === undefined ? {} : { deadline: made.now + deadline + 3 * made.step };
    const priority = isOrdered ? { priority: ((made.step * 37) % 201) - 100 } : {};
    const task = { ...rest, input: text, ...kinds[kind], ...key, ...until, ...priority };
    const request = { policy, nonce: `n${nonce < 2 ? made.step : input}` };
    return { call: (store) => store.create(task, request), learn: (receipt: never) => made.learnCreated(receipt) };
  });
}

/** Which tasks of a session are freed first is up to the store. */
export const sweeps: fc.Arbitrary<Plan> = toPlans('sweep', fc.constant(100), (limit) => () => ({
  call: (store) => store.sweep({ limit }),
}));

export const takes = toPlans('take', fc.tuple(worker, fc.nat(3), fc.nat(14)), ([any, few, ahead]) => (made) => {
  const { agents, limit, isSorted } = made.takeable(AGENTS, few + 1);
  // A request that is late on its way is most often one of a worker that has taken since.
  const by = ahead > 10 ? made.mostOftenTaking() : any;
  const number = Math.max(1, made.takeNumber(by) - Math.max(0, ahead - 10));
  const about = { session: made.session(by), worker: by, leaseMs: LEASE_MS, claim: `c${made.step}` };
  const byId = (a: { claim: ClaimRef }, b: { claim: ClaimRef }): number => (a.claim.id < b.claim.id ? -1 : 1);
  return {
    isNew: true,
    async call(store) {
      const result = await store.take({ ...about, takeNumber: number, agents, limit });
      if (result.result !== 'taken' || !(isSorted || result.isRepeat)) return result;
      return { ...result, tasks: result.tasks.toSorted(byId) };
    },
    learn: (result: never) => made.learnTaken({ ...about, number }, result),
    park({ tasks, isRepeat = true }: Taken) {
      return isRepeat ? undefined : { worker: by, agents, isShort: tasks!.length < limit };
    },
  };
});

export const claims = toPlans('claim', fc.tuple(index, worker), ([i, by]) => (made) => {
  const request = { session: made.session(by), worker: by, leaseMs: LEASE_MS, claim: `c${made.step}` };
  const id = made.id(i);
  return { call: (store) => store.claim(id, request), learn: (result: never) => made.learnTaken(request, result) };
});

export const manyClaims = toPlans(
  'claimMany',
  fc.tuple(fc.array(index, { maxLength: 4 }), worker),
  ([some, by]) =>
    (made) => {
      const request = { session: made.session(by), worker: by, leaseMs: LEASE_MS, claim: `c${made.step}` };
      const ids = some.map((i) => made.id(i));
      return {
        call: (store) => store.claimMany(ids, request),
        learn: (results: never) => {
          for (const one of results as readonly Taken[]) made.learnTaken(request, one);
        },
      };
    },
);

export const beats = toPlans(
  'heartbeat',
  fc.tuple(worker, fc.nat(2), fc.nat(3), index),
  ([by, count, orderNumber, i]) =>
    (made) => {
      const { id, epoch, session: holder, claim } = made.claim(i);
      const session = i < 4 && holder !== 'none' ? holder : made.session(by);
      const beat = { session, count, confirmed: [{ id, epoch, claim, orderNumber }] };
      return {
        call: (store) => store.heartbeat(beat),
        learn: (result: never) => made.learnTaken({ worker: by, session }, result),
      };
    },
);

const appended = fc.tuple(
  index,
  fc.option(fc.nat(3), { nil: undefined }),
  some,
  some,
  fc.nat(60),
  fc.boolean(),
  activity,
);
export const appends = toPlans('append', appended, ([i, given, done, replaces, size, progress, did]) => (made) => {
  const claim = made.claim(i);
  const after = given ?? made.tasks.find(({ id }) => id === claim.id)?.position ?? 0;
  const events = size < 10 ? [] : ['ñ'.repeat(size)];
  const handled = size % 4 === 0 ? { declined: done } : { done };
  const batch = { after, events, ...handled, replaces, progress, ...(did !== undefined && { activity: did }) };
  return { call: (store) => store.append(claim, batch) };
});

const finished = fc.tuple(
  index,
  fc.constantFrom<'success'>('success', 'failed' as 'success', 'cancelled' as 'success'),
  fc.nat(3),
);
export const finishes = toPlans('finish', finished, ([i, status, says]) => (made) => {
  const claim = made.claim(i);
  const history = says === 1 ? { history: [status] } : says > 1 ? { newMessages: [status, says] } : {};
  return { call: (store) => store.finish(claim, { status, answer: 'a'.repeat(says * 40), ...history }) };
});
