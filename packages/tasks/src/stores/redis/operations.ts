/**
 * How an operation runs.
 *
 * - `reads`: also on a server that cannot write.
 * - `writes`: not on a server that is out of memory.
 * - `writesAlways`: there too, because stopping, keeping or ending a task must never wait for memory.
 */
type Mode = 'reads' | 'writes' | 'writesAlways';

/** One atomic step on one shard. */
export interface Operation {
  readonly mode: Mode;
  /** The names of its arguments, in the order in which its Lua function unpacks them. A list may follow them. */
  readonly takes: string;
  /** What callers know it as, if that is something else. */
  readonly as?: string;
  /** Running it twice is the same as once, so a lost response does not matter. So it is for all that only read. */
  readonly isRepeatable?: boolean;
  /** It does not compare the layout of the shard with that of the client: that is what it is about. */
  readonly isUnchecked?: boolean;
}

/** Every operation and query: the functions of the same names in `lua/`. */
export const OPERATIONS = {
  create: {
    mode: 'writes',
    takes:
      'id tenant agent input nonce maxReady conversation key worker priority notBefore policy debounceMs isOfBefore deadline title context traceparent startedBy keepsQuestions',
  },
  exists: { mode: 'writesAlways', takes: 'id tenant conversation', as: 'create', isRepeatable: true },
  cancel: { mode: 'writesAlways', takes: 'id tenant level abortMs killMs undo reason isDated' },
  cancelConversation: {
    mode: 'writesAlways',
    takes: 'tenant conversation level abortMs killMs undo reason isDated',
    as: 'cancel',
  },
  send: { mode: 'writes', takes: 'id tenant nonce command kind' },
  answer: { mode: 'writes', takes: 'id tenant question nonce text' },
  take: { mode: 'writesAlways', takes: 'sessionId worker leaseMs claim takeNumber limit agentsText maxBytes' },
  claim: { mode: 'writesAlways', takes: 'id sessionId worker leaseMs claim maxBytes' },
  load: { mode: 'reads', takes: 'id epoch session claim' },
  heartbeat: { mode: 'writesAlways', takes: 'sessionId count' },
  held: { mode: 'reads', takes: 'session' },
  sweep: { mode: 'writesAlways', takes: 'limit' },
  append: {
    mode: 'writes',
    takes: 'id epoch session claim after maxBytes progress activity doneCount replacesCount questionsCount',
  },
  release: { mode: 'writesAlways', takes: 'id epoch session claim delayMs' },
  park: { mode: 'writesAlways', takes: 'id epoch session claim position orderNumber' },
  finish: { mode: 'writesAlways', takes: 'id epoch session claim asked reason complete rest replacesHistory bytes' },
  get: { mode: 'reads', takes: 'id tenant' },
  readTenant: { mode: 'reads', takes: 'id', as: 'watch' },
  list: { mode: 'reads', takes: 'tenant status conversation limit at last background' },
  read: { mode: 'reads', takes: 'id tenant after limit' },
  readAlong: { mode: 'writesAlways', takes: 'id tenant after limit watchTtlMs', as: 'read', isRepeatable: true },
  conversation: { mode: 'reads', takes: 'tenant conversation' },
  conversations: { mode: 'reads', takes: 'tenant after limit' },
  questions: { mode: 'reads', takes: 'tenant limit at last' },
  counts: { mode: 'reads', takes: 'tenant' },
  tenants: { mode: 'reads', takes: 'after limit' },
  workers: { mode: 'reads', takes: 'limit' },
  queues: { mode: 'reads', takes: 'afterAgent afterTenant limit' },
  share: { mode: 'writesAlways', takes: 'maxAgeMs found', as: 'findOnce', isRepeatable: true },
  pause: { mode: 'writesAlways', takes: 'kind name isPaused', isRepeatable: true },
  remove: { mode: 'writesAlways', takes: 'id tenant' },
  removeConversation: { mode: 'writesAlways', takes: 'tenant conversation', as: 'remove' },
  readFormat: { mode: 'reads', takes: '', as: 'migrate' },
  writeFormat: { mode: 'writesAlways', takes: '', as: 'migrate', isRepeatable: true },
  readLayout: { mode: 'reads', takes: '', as: 'connect', isUnchecked: true },
  writeLayout: {
    mode: 'writesAlways',
    takes: 'newFormat shards',
    as: 'connect',
    isRepeatable: true,
    isUnchecked: true,
  },
} as const;

export type OperationName = keyof typeof OPERATIONS;

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text;

type Value = string | number;

/** The values of an operation's arguments, by their names, and the list that follows them. */
export type Arguments<Name extends OperationName> = { readonly list?: readonly Value[] } & Readonly<
  Record<Exclude<Words<(typeof OPERATIONS)[Name]['takes']>, ''>, Value>
>;

const NAMES = new Map(Object.entries(OPERATIONS).map(([name, { takes }]) => [name, takes.split(' ').filter(Boolean)]));

/** Returns the values in the order in which the operation unpacks them. */
export function toList<Name extends OperationName>(name: Name, values: Arguments<Name>): readonly Value[] {
  const named = NAMES.get(name)!.map((argument) => (values as Readonly<Record<string, Value>>)[argument]!);
  return values.list === undefined ? named : [...named, ...values.list];
}
