import { requeueTask } from '@whoa/tasks';
import * as fc from 'fast-check';
import { type Made, type Mode, TENANTS } from './made.ts';
import { answers, asks, closes, parks } from './questions.ts';
import {
  AGENTS,
  appends,
  beats,
  claims,
  createPlans,
  finishes,
  index,
  LEASE_MS,
  manyClaims,
  type Plan,
  released,
  stopMode,
  sweeps,
  takes,
  toPlans,
} from './requests.ts';

/** One step of a history: time passes, then a request is sent. */
export interface Step {
  readonly passes: number;
  /** Its response is lost, so it is sent again. */
  readonly isLost: boolean;
  readonly isCloselyLookedAt: boolean;
  readonly plan: Plan;
}

interface Scope {
  readonly tenants: readonly string[];
  readonly agents: readonly string[];
  /** Only steps for which the order of ready queues, and of tasks in them, is unambiguous. */
  readonly isOrdered?: boolean;
  /** Nearly all is about one conversation in which messages wait. */
  readonly isConversation?: boolean;
}

/** All requests about a few tasks, by a few workers. */
function plans({ tenants, agents, isOrdered = false, isConversation = false }: Scope): fc.Arbitrary<Plan> {
  const [most = ''] = tenants;
  const tenant = fc.constantFrom(most, most, ...tenants);
  const [tenantTargets, agentTargets] = [
    tenants.map((name) => ({ tenant: name })),
    agents.map((name) => ({ agent: name })),
  ];
  const paused = fc.constantFrom(...(isOrdered ? [] : tenantTargets), ...agentTargets);
  const status = fc.constantFrom(undefined, 'init' as const, 'success' as const);
  const creates = createPlans({ tenant, agent: fc.constantFrom(...agents), isOrdered, isConversation });
  const held = (later: fc.Arbitrary<Plan>): fc.Arbitrary<Plan> =>
    orFirst(later, takes, (made) => made.claims.length > 0);
  const known = (later: fc.Arbitrary<Plan>): fc.Arbitrary<Plan> =>
    orFirst(later, creates, (made) => made.ids.length > 0);
  return fc.oneof(
    { arbitrary: creates, weight: isConversation ? 25 : 7 },
    { arbitrary: known(takes), weight: 4 },
    { arbitrary: known(claims), weight: 2 },
    { arbitrary: known(manyClaims), weight: 2 },
    { arbitrary: held(beats), weight: 2 },
    { arbitrary: held(appends), weight: 3 },
    { arbitrary: held(finishes), weight: 3 },
    { arbitrary: held(isOrdered ? beats : sweeps), weight: 3 },
    { arbitrary: held(onClaims), weight: 2 },
    { arbitrary: held(fc.oneof(asks, asks, parks, parks, closes)), weight: 3 },
    { arbitrary: orFirst(answers, asks, hasAsked), weight: 1 },
    { arbitrary: known(onTasks(tenant)), weight: 7 },
    toPlans('cancelConversation', fc.tuple(tenant, stopMode), ([of, mode]) => () => ({
      call: (store) => store.cancel({ tenant: of, conversation: 'c' }, { kind: 'budget' }, { mode }),
    })),
    toPlans('removeConversation', tenant, (of) => () => ({
      call: (store) => store.remove({ tenant: of, conversation: 'c' }),
    })),
    toPlans('list', fc.tuple(tenant, status, fc.boolean()), ([of, wanted, talks]) => () => ({
      call: (store) =>
        store.list({
          tenant: of,
          limit: 2,
          ...(wanted !== undefined && { status: wanted }),
          ...(talks && { conversation: 'c' }),
        }),
    })),
    toPlans('pause', fc.tuple(paused, fc.boolean()), ([target, isPaused]) => () => ({
      call: (store) => store.pause(target, isPaused),
    })),
    // A request that arrives again, long after its response was lost.
    toPlans('again', fc.nat(6), (i) => (made) => {
      return made.requests.at(-1 - i) ?? { call: () => Promise.resolve(undefined) };
    }),
  );
}

const hasAsked = (made: Made): boolean => made.questions.length > 0;

/** Replaces a request that needs something that does not exist yet with one that creates it. */
function orFirst(
  later: fc.Arbitrary<Plan>,
  first: fc.Arbitrary<Plan>,
  isReady: (made: Made) => boolean,
): fc.Arbitrary<Plan> {
  return fc.tuple(later, first).map(([plan, instead]) => {
    const shown = { [fc.toStringMethod]: () => `${fc.stringify(plan)} or ${fc.stringify(instead)}` };
    return Object.assign((made: Made) => (isReady(made) ? plan : instead)(made), shown);
  });
}

const returned = fc.tuple(index, fc.boolean(), released);
const onClaims: fc.Arbitrary<Plan> = toPlans('return', returned, ([i, isRead, options]) => (made) => {
  const claim = made.claim(i);
  return { call: (store) => (isRead ? store.load(claim) : store.release(claim, options)) };
});

function onTasks(tenant: fc.Arbitrary<string>): fc.Arbitrary<Plan> {
  return fc.oneof(
    {
      weight: 3,
      arbitrary: toPlans('cancel', fc.tuple(index, tenant, stopMode, fc.boolean()), ([i, of, mode, undo]) => (made) => {
        const ref = made.ref(i, of);
        return { call: (store) => store.cancel(ref, { by: 'b' }, { mode, undo }) };
      }),
    },
    toPlans('send', fc.tuple(index, tenant, fc.nat(9)), ([i, of, nonce]) => (made) => {
      const ref = made.ref(i, of);
      return { call: (store) => store.send(ref, { type: 'steer', message: 'm' }, { nonce: `n${nonce}` }) };
    }),
    toPlans('read', fc.tuple(index, tenant), ([i, of]) => (made) => {
      const ref = made.ref(i, of);
      return { call: (store) => store.read(ref) };
    }),
    toPlans('remove', fc.tuple(index, tenant), ([i, of]) => (made) => {
      const ref = made.ref(i, of);
      return { call: (store) => store.remove(ref) };
    }),
    toPlans('requeue', fc.tuple(index, tenant), ([i, of]) => (made) => {
      const ref = made.ref(i, of);
      return { call: (store) => requeueTask(store, ref), learn: (receipt: never) => made.learnCreated(receipt) };
    }),
  );
}

/** Usually a moment; sometimes exactly a limit of the rules, or one millisecond off; rarely back. */
const passes = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(1_100, 1_000, 500, LEASE_MS / 8, 1, 0) },
  { weight: 4, arbitrary: fc.constantFrom(LEASE_MS / 2, LEASE_MS / 2 - 1, 2_500) },
  { weight: 3, arbitrary: fc.constantFrom(5_000, 4_999, LEASE_MS, LEASE_MS / 2 + 1, 8_000, 30_000, 130_000) },
  { weight: 1, arbitrary: fc.constantFrom(-1, -1_000, -LEASE_MS, -30_000) },
);
/** Always forward, and never zero: of two tasks that become ready at the same time, either may be first. */
const forward = passes.map((ms) => Math.abs(ms) || 1);

/** One task whose workers crash again and again, and whose claims are handed back, most of them late. */
function crashes(): fc.Arbitrary<readonly Step[]> {
  const [tenant, agent] = [fc.constantFrom(...TENANTS), fc.constantFrom(...AGENTS)];
  const creates = createPlans({ tenant, agent, isOrdered: false, isConversation: false });
  const known = (later: fc.Arbitrary<Plan>): fc.Arbitrary<Plan> =>
    orFirst(later, creates, (made) => made.ids.length > 0);
  const releases = toPlans('release', fc.tuple(fc.nat(1), released), ([i, options]) => (made) => {
    const claim = made.claims.at(-1 - i) ?? made.claim(i);
    return { call: (store) => store.release(claim, options) };
  });
  const plan = fc.oneof(
    { weight: 3, arbitrary: known(claims) },
    { weight: 1, arbitrary: known(manyClaims) },
    { weight: 8, arbitrary: known(sweeps) },
    { weight: 2, arbitrary: known(releases) },
    { weight: 1, arbitrary: known(fc.oneof(appends, beats)) },
  );
  // A late sweep grants a grace lease, and the next one reclaims. After a crash the task waits.
  const ms = fc.constantFrom(1, LEASE_MS + 1, LEASE_MS + 1, 130_000);
  const step = fc.record({ passes: ms, isLost: fc.constant(false), isCloselyLookedAt: fc.constant(false), plan });
  return fc.array(step, { minLength: 12, maxLength: 24, size: 'max' });
}

/** A few tasks of one conversation with questions: parked, answered, stopped and expired. */
function questions(): fc.Arbitrary<readonly Step[]> {
  const [tenant, agent] = [fc.constantFrom(TENANTS[0]!), fc.constantFrom(AGENTS[0]!)];
  const creates = createPlans({ tenant, agent, isOrdered: false, isConversation: true });
  const known = (later: fc.Arbitrary<Plan>): fc.Arbitrary<Plan> =>
    orFirst(later, creates, (made) => made.ids.length > 0);
  const held = (later: fc.Arbitrary<Plan>): fc.Arbitrary<Plan> =>
    orFirst(later, known(claims), (made) => made.claims.length > 0);
  const asked = (later: fc.Arbitrary<Plan>): fc.Arbitrary<Plan> => orFirst(later, held(asks), hasAsked);
  const plan = fc.oneof(
    { weight: 6, arbitrary: held(asks) },
    { weight: 8, arbitrary: asked(parks) },
    { weight: 5, arbitrary: asked(answers) },
    { weight: 4, arbitrary: asked(closes) },
    { weight: 4, arbitrary: asked(claims) },
    { weight: 1, arbitrary: asked(manyClaims) },
    { weight: 3, arbitrary: asked(takes) },
    { weight: 4, arbitrary: asked(sweeps) },
    { weight: 2, arbitrary: asked(creates) },
    { weight: 2, arbitrary: asked(onTasks(tenant)) },
    { weight: 2, arbitrary: asked(fc.oneof(beats, appends, finishes, onClaims)) },
  );
  const ms = fc.constantFrom(1, 1, 1, 700, LEASE_MS / 2, LEASE_MS + 1, 30_000);
  const step = fc.record({
    passes: ms,
    isLost: fc.nat(7).map((n) => n === 7),
    isCloselyLookedAt: fc.nat(5).map((n) => n === 5),
    plan,
  });
  return fc.array(step, { minLength: 8, maxLength: 24, size: 'max' });
}

function histories(scope: Scope): fc.Arbitrary<readonly Step[]> {
  const isLost = fc.nat(7).map((n) => n === 7);
  const isCloselyLookedAt = fc.nat(11).map((n) => n === 11);
  const plan = plans(scope);
  const step = fc.record({ passes: scope.isOrdered ? forward : passes, isLost, isCloselyLookedAt, plan });
  return fc.array(step, { minLength: 3, maxLength: 24, size: 'max' });
}

/** The histories of each mode. */
export const HISTORIES: Readonly<Record<Mode, fc.Arbitrary<readonly Step[]>>> = {
  open: fc.oneof(
    { weight: 3, arbitrary: histories({ tenants: TENANTS, agents: AGENTS }) },
    {
      weight: 1,
      arbitrary: histories({ tenants: TENANTS.slice(0, 1), agents: AGENTS.slice(0, 1), isConversation: true }),
    },
    { weight: 1, arbitrary: crashes() },
    { weight: 2, arbitrary: questions() },
  ),
  capped: histories({ tenants: TENANTS.slice(0, 1), agents: AGENTS.slice(0, 1) }),
  'ready-queues': histories({ tenants: TENANTS, agents: AGENTS, isOrdered: true }),
};
