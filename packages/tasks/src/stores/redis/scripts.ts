import { createHash } from 'node:crypto';
import { CANCEL, CANCEL_LINE, CANCEL_RUNNING } from './lua/cancel.ts';
import { CLAIM } from './lua/claim.ts';
import { CREATE } from './lua/create.ts';
import { ADMIT, LINE } from './lua/line.ts';
import { CONVERSATION, DUE, GET, LIST, LISTEN, READ, READ_ALONG } from './lua/read.ts';
import { SEND } from './lua/send.ts';
import { CHANGE, MOMENT, ORDERS, OWN, PROLOGUE, STOP, TASK, TELL } from './lua/task.ts';
import { APPEND, FINISH, RELEASE, RENEW } from './lua/work.ts';

type Operation =
  | 'create'
  | 'claim'
  | 'renew'
  | 'append'
  | 'release'
  | 'finish'
  | 'cancel'
  | 'cancelLine'
  | 'send'
  | 'get'
  | 'list'
  | 'read'
  | 'readAlong'
  | 'conversation'
  | 'due'
  | 'listen';

/** One atomic operation on one shard. */
export interface Script {
  readonly name: string;
  readonly source: string;
  readonly sha: string;
  /** Asking it twice is the same as once, so a lost answer is no matter. */
  readonly isRepeatable: boolean;
}

// Keep the first lines: with them the server refuses a script it could not write for before it begins, not half-way.
const writes = (name: string, ...pieces: readonly string[]): Script => script(name, ['#!lua', ...pieces]);
const reads = (name: string, ...pieces: readonly string[]): Script => ({
  ...script(name, ['#!lua flags=no-writes', ...pieces]),
  isRepeatable: true,
});

function script(name: string, [first, ...pieces]: readonly string[]): Script {
  const source = [first, PROLOGUE, ...pieces].join('\n');
  const sha = createHash('sha1').update(source).digest('hex');
  return { name, source, sha, isRepeatable: false };
}

/** Every move and every question, each made of the pieces it needs. */
export const SCRIPTS: Record<Operation, Script> = {
  create: writes('create', MOMENT, TASK, TELL, CHANGE, STOP, LINE, ADMIT, CREATE),
  claim: writes('claim', MOMENT, TASK, TELL, CHANGE, STOP, ORDERS, LINE, ADMIT, CLAIM),
  renew: writes('renew', MOMENT, TASK, TELL, CHANGE, ORDERS, OWN, RENEW),
  append: writes('append', MOMENT, TASK, TELL, CHANGE, ORDERS, OWN, LINE, APPEND),
  release: writes('release', MOMENT, TASK, TELL, CHANGE, OWN, LINE, RELEASE),
  finish: writes('finish', MOMENT, TASK, TELL, CHANGE, OWN, LINE, FINISH),
  cancel: writes('cancel', TELL, CANCEL_RUNNING, MOMENT, TASK, CHANGE, STOP, LINE, CANCEL),
  cancelLine: writes('cancelLine', MOMENT, TASK, TELL, CHANGE, STOP, LINE, CANCEL_LINE),
  send: writes('send', MOMENT, TASK, TELL, CHANGE, SEND),
  get: reads('get', GET),
  list: reads('list', MOMENT, TASK, LIST),
  read: reads('read', MOMENT, TASK, READ),
  conversation: reads('conversation', MOMENT, CONVERSATION),
  due: reads('due', MOMENT, DUE),
  readAlong: { ...writes('read', MOMENT, TASK, TELL, CHANGE, READ_ALONG, READ), isRepeatable: true },
  listen: { ...writes('listen', LISTEN), isRepeatable: true },
};
