import { nextStatus, type StatusAction, type TaskStatus } from './status.ts';

/** The fields that change when a task moves. */
export interface Transition {
  /** The action that gives it its next status. */
  readonly next?: StatusAction;
  readonly set?: Readonly<Record<string, string | number | readonly []>>;
  /** Added, but the sum is never below 0. */
  readonly plus?: Readonly<Record<string, number>>;
  /** Arguments of the same name. */
  readonly given?: readonly string[];
  /** The time of the store. */
  readonly now?: readonly string[];
  /** The time of the store, unless there is an earlier one. */
  readonly first?: readonly string[];
  readonly none?: readonly string[];
  /** When its worker has orders to confirm: if the worker holds it, or if it has orders. */
  readonly hasPendingOrders?: 'held' | 'ordered';
}

type TransitionName =
  | 'create'
  | 'hold'
  | 'release'
  | 'park'
  | 'wake'
  | 'reclaim'
  | 'end'
  | 'order'
  | 'ready'
  | 'delay'
  | 'queue';

const COUNTS = { epoch: 0, attempts: 0, crashes: 0, orderNumber: 0, position: 0, journalBytes: 0, commandsSent: 0 };
const HOLDER = ['session', 'claim', 'worker', 'hasPendingOrders'];

/** TypeScript applies this table. `npm run rules` writes it into the SQL files. */
export const TRANSITIONS: Readonly<Record<TransitionName, Transition>> = {
  create: { set: { status: 'init', commands: [], ...COUNTS }, now: ['createdAt'] },
  hold: {
    next: 'claim',
    set: { stage: 'held' },
    plus: { epoch: 1, attempts: 1 },
    given: ['session', 'claim', 'worker'],
    first: ['startedAt'],
    none: ['stageAt', 'policy', 'released', 'offeredAt'],
    hasPendingOrders: 'ordered',
  },
  /** Handed back; `ready` follows. */
  release: { next: 'release', plus: { epoch: 1, attempts: -1 }, given: ['released'], none: HOLDER },
  /** Put aside until its questions are answered. */
  park: { set: { stage: 'parked' }, plus: { epoch: 1, attempts: -1 }, given: ['released'], none: HOLDER },
  /** No longer parked; `ready` follows. */
  wake: { next: 'release' },
  /** Taken away from a worker that is lost; `ready`, `delay` or `end` follows. */
  reclaim: {
    next: 'release',
    plus: { epoch: 1, crashes: 1 },
    given: ['charges', 'isCharged', 'lostClaim'],
    none: HOLDER,
  },
  end: {
    set: { commands: [] },
    given: ['status', 'outcome'],
    now: ['endedAt'],
    none: ['stage', 'stageAt', 'policy', 'hasPendingOrders', 'lostClaim'],
  },
  order: { plus: { orderNumber: 1 }, hasPendingOrders: 'held' },
  ready: { set: { stage: 'ready' }, now: ['stageAt'], none: ['policy'] },
  delay: { set: { stage: 'delayed' }, given: ['stageAt'] },
  queue: { set: { stage: 'queued' }, none: ['stageAt', 'policy'] },
};

type Moved = { readonly status: TaskStatus; readonly stage?: string; readonly orderNumber: number };

/** Returns a task after a transition, with the fields that are given. */
export function applyTransition<T extends Moved>(
  task: T,
  name: TransitionName,
  { now, ...fields }: Partial<T> & { readonly now: number },
): T {
  const rule = TRANSITIONS[name];
  const after: Record<string, unknown> = { ...task, ...rule.set, ...fields };
  if (rule.next !== undefined) after['status'] = nextStatus(task.status, rule.next).status;
  for (const [field, by] of Object.entries(rule.plus ?? {})) after[field] = Math.max(0, (after[field] as number) + by);
  for (const field of rule.now ?? []) after[field] = now;
  for (const field of rule.first ?? []) after[field] ??= now;
  for (const field of rule.none ?? []) delete after[field];
  if (rule.hasPendingOrders !== undefined)
    after['hasPendingOrders'] = rule.hasPendingOrders === 'held' ? task.stage === 'held' : task.orderNumber > 0;
  return after as T;
}
