import { createHash } from 'node:crypto';
import { CANCEL, CANCEL_CONVERSATION, CANCEL_ONE, SEND } from './lua/cancel.ts';
import { CLAIM } from './lua/claim.ts';
import { CREATE, FORGET, HERE, IS_HERE } from './lua/create.ts';
import { LAY_OUT, LAYOUT, READ_FORMAT, WRITE_FORMAT } from './lua/layout.ts';
import {
  CONVERSATIONS,
  COUNTS,
  PAUSE,
  QUEUES,
  REMOVE,
  REMOVE_CONVERSATION,
  SHARE,
  TENANTS,
  WORKERS,
} from './lua/overview.ts';
import { CANCEL_PLAIN, CREATE_PLAIN, FINISH_PLAIN } from './lua/plain.ts';
import { ADMIT, FAIL_LOST, QUEUE, STOP } from './lua/queue.ts';
import { CONVERSATION, GET, LIST, READ, READ_ALONG, TENANT_OF } from './lua/read.ts';
import { BEAT, HELD, LOAD_OF, ORDERS, SESSION, SWEEP } from './lua/session.ts';
import { STAGE, TELL } from './lua/stage.ts';
import { HOLD, TAKE } from './lua/take.ts';
import { PROLOGUE, RULES, sameLayout, TASK } from './lua/task.ts';
import { APPEND, FINISH, LOAD, OWN, RELEASE } from './lua/work.ts';

type OfWorkers = 'take' | 'claim' | 'load' | 'beat' | 'held' | 'sweep' | 'append' | 'release' | 'finish';
type OfCallers = 'create' | 'isHere' | 'cancel' | 'cancelConversation' | 'send';
type OfReaders = 'get' | 'tenantOf' | 'list' | 'read' | 'readAlong' | 'conversation' | 'conversations';
type OfOperators = 'counts' | 'tenants' | 'workers' | 'queues' | 'share' | 'pause' | 'remove' | 'removeConversation';
type OfSetup = 'readFormat' | 'writeFormat' | 'layout' | 'layOut';
type Operation = OfWorkers | OfCallers | OfReaders | OfOperators | OfSetup;

/** One atomic operation on one shard. */
export interface Script {
  readonly name: string;
  readonly source: string;
  readonly sha: string;
  /** Running it twice is the same as once, so a lost response does not matter. */
  readonly isRepeatable: boolean;
}

// Keep the first lines: with them a server that cannot write refuses a script before it starts, not half-way.
const writes = (name: string, ...pieces: readonly string[]): Script =>
  script(name, ['#!lua', sameLayout({ canWrite: true }), ...pieces]);
/** Also works when the server is out of memory: stopping, keeping or ending a task must never wait for memory. */
const writesAlways = (name: string, ...pieces: readonly string[]): Script =>
  script(name, ['#!lua flags=allow-oom', sameLayout({ canWrite: true }), ...pieces]);
const reads = (name: string, ...pieces: readonly string[]): Script =>
  repeatable(script(name, ['#!lua flags=no-writes', sameLayout({ canWrite: false }), ...pieces]));
const repeatable = (one: Script): Script => ({ ...one, isRepeatable: true });

function script(name: string, [first, ...pieces]: readonly string[]): Script {
  const source = [first, PROLOGUE, ...pieces].join('\n');
  const sha = createHash('sha1').update(source).digest('hex');
  return { name, source, sha, isRepeatable: false };
}

const MOVE = [RULES, TASK, TELL, STAGE];

/** Every operation and query, composed of the pieces it needs. */
export const SCRIPTS: Record<Operation, Script> = {
  create: writes('create', CREATE_PLAIN, ...MOVE, STOP, QUEUE, ADMIT, FORGET, HERE, CREATE),
  take: writesAlways('take', ...MOVE, STOP, QUEUE, FAIL_LOST, ADMIT, SESSION, ORDERS, LOAD_OF, HOLD, TAKE),
  claim: writesAlways('claim', ...MOVE, STOP, QUEUE, FAIL_LOST, ADMIT, SESSION, ORDERS, LOAD_OF, HOLD, CLAIM),
  load: reads('load', TASK, LOAD_OF, OWN, LOAD),
  beat: writesAlways('beat', TASK, SESSION, ORDERS, BEAT),
  held: reads('held', HELD),
  sweep: writesAlways('sweep', ...MOVE, STOP, QUEUE, CANCEL_ONE, FAIL_LOST, SESSION, FORGET, SWEEP),
  append: writes('append', ...MOVE, QUEUE, ORDERS, OWN, APPEND),
  release: writesAlways('release', ...MOVE, OWN, RELEASE),
  finish: writesAlways('finish', FINISH_PLAIN, ...MOVE, QUEUE, OWN, FINISH),
  cancel: writesAlways('cancel', TELL, CANCEL_PLAIN, RULES, TASK, STAGE, STOP, QUEUE, CANCEL),
  cancelConversation: writesAlways('cancel', ...MOVE, STOP, QUEUE, CANCEL_CONVERSATION),
  send: writes('send', ...MOVE, SEND),
  get: reads('get', TASK, GET),
  tenantOf: reads('watch', TENANT_OF),
  list: reads('list', TASK, LIST),
  read: reads('read', TASK, READ),
  conversation: reads('conversation', CONVERSATION),
  readAlong: repeatable(writesAlways('read', ...MOVE, READ_ALONG, READ)),
  counts: reads('counts', COUNTS),
  tenants: reads('tenants', TENANTS),
  workers: reads('workers', WORKERS),
  queues: reads('queues', QUEUES),
  share: repeatable(writesAlways('findOnce', SHARE)),
  conversations: reads('conversations', CONVERSATIONS),
  pause: repeatable(writesAlways('pause', ...MOVE, PAUSE)),
  remove: writesAlways('remove', TASK, FORGET, REMOVE),
  removeConversation: writesAlways('remove', FORGET, REMOVE_CONVERSATION),
  isHere: repeatable(writesAlways('create', HERE, IS_HERE)),
  readFormat: reads('migrate', READ_FORMAT),
  writeFormat: repeatable(writesAlways('migrate', WRITE_FORMAT)),
  layout: repeatable(script('connect', ['#!lua flags=no-writes', LAYOUT])),
  layOut: repeatable(script('connect', ['#!lua flags=allow-oom', LAY_OUT, LAYOUT])),
};
