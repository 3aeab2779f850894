import { isDeepStrictEqual } from 'node:util';
import type { AppContext, CancelReasonInit } from '@whoa/core';
import { type CancelOptions, createReason, type World } from '@whoa/core/embed';
import { contextRule, createStopSchedule, readCancelOptions, toContextKey } from '@whoa/core/internal';
import { findQuestionTask } from '../../question.ts';
import type { ClientStore, CreateReceipt } from '../../store.ts';
import { type NewTask, sendable, type TaskRef } from '../../task.ts';
import { withNonce } from '../../unknown-outcome.ts';
import type { CreateRequest, StopRequest, StoreDriver } from '../driver.ts';
import { toTitle } from '../rules/new-task.ts';
import { DEFAULTS, SIZES } from '../rules/rules.ts';
import { checkTask, parseCursor, parsed, serializeJson } from './checked-arguments.ts';
import { checkLimit, checkName, checkRef, checkSize } from './checks.ts';
import { createTaskId, refOfKey } from './id.ts';

/** Returns the client's part of a store: it checks arguments and fills in defaults. */
export function createCheckedClient(open: () => StoreDriver, world: World): ClientStore {
  return {
    async create(task, { policy = 'replace', nonce = world.createId() } = {}) {
      return createTask(open(), task, { policy, nonce });
    },
    async cancel(target, reason = {}, options = {}) {
      checkRef(target);
      return open().cancel(target, toStopRequest(reason, options));
    },
    async send(task, command, { nonce = world.createId() } = {}) {
      checkRef(task);
      checkName('nonce', nonce);
      const kept = sendable(command);
      checkSize('command', serializeJson(kept), SIZES.inputBytes);
      return withNonce(nonce, open().send(task, parsed(kept), nonce));
    },
    async answer(question, { value, by }, { nonce = world.createId() } = {}) {
      checkRef(question);
      checkName('nonce', nonce);
      if (by !== undefined) checkName('by', by);
      const text = checkSize('value', serializeJson({ value: value ?? null, by }), SIZES.answerBytes);
      const task = findQuestionTask(question.id);
      if (task === undefined) return { result: 'not-found' };
      return withNonce(nonce, open().answer({ tenant: question.tenant, id: question.id, task }, { text, nonce }));
    },
    async get(task) {
      checkRef(task);
      return open().get(task);
    },
    async find(ref) {
      const found = refOfKey(ref);
      checkRef(found);
      return open().get(found);
    },
    async list({ cursor, ...filter }) {
      checkName('tenant', filter.tenant);
      const limit = checkLimit('limit', filter.limit ?? DEFAULTS.listLimit);
      return open().list({ ...filter, limit, ...(cursor !== undefined && { after: parseCursor(cursor) }) });
    },
    async read(task, { after = 0, limit = DEFAULTS.readLimit } = {}) {
      checkRef(task);
      checkLimit('limit', limit);
      return open().read(task, { after: Math.max(0, after), limit });
    },
    async conversation(ref) {
      checkRef(ref);
      return open().conversation(ref);
    },
    async watch(filter, listener) {
      if (filter.words === true) checkRef(filter as TaskRef);
      return open().watch(filter, listener);
    },
  };
}

async function createTask(
  driver: StoreDriver,
  task: NewTask,
  { policy, nonce }: Pick<CreateRequest, 'policy' | 'nonce'>,
): Promise<CreateReceipt> {
  checkTask(task);
  checkName('nonce', nonce);
  const { debounceMs = 0, priority = 0 } = task;
  const input = checkSize('input', serializeJson(task.input), SIZES.inputBytes);
  const id = createTaskId(task, nonce);
  const title = toTitle(task.input);
  const { context: given } = task;
  const context = toContextKey(given === undefined ? given : (contextRule(given, 'context') as AppContext));
  const times = { debounceMs: Math.ceil(debounceMs), priority, policy, nonce };
  const receipt = await withNonce(nonce, driver.create({ ...task, id, input, context, title, ...times }));
  if (receipt.result !== 'duplicate') return receipt;
  // What was gathered with it comes before its own. One whose messages were taken over has none.
  const own = receipt.task.inputs.at(-1);
  return { ...receipt, isSameInput: own === undefined || isDeepStrictEqual(own, JSON.parse(input)) };
}

function toStopRequest(reason: CancelReasonInit, options: CancelOptions): StopRequest {
  const { mode, undo } = readCancelOptions(options, 'graceful');
  const { level, abortAt, killAt } = createStopSchedule(mode, 0);
  const { at, ...undated } = parsed(createReason(reason, 0));
  const dated = reason.at === undefined ? undated : { ...undated, at };
  return { level, abortMs: Math.ceil(abortAt), killMs: Math.ceil(killAt), undo, reason: dated };
}
