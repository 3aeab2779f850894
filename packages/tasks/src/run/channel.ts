import { type CancelReasonInit, SettingsError, type StopMode } from '@whoa/core';
import type { CancelOptions } from '@whoa/core/embed';
import { readCancelOptions } from '@whoa/core/internal';

/** A message inside one process. */
export interface ChannelMessage<Payload = unknown> {
  readonly category: string;
  readonly topic: string;
  readonly payload: Payload;
  readonly sender?: string;
}

export const TASK_CATEGORY = 'task';
export const CANCEL_TOPIC = '__cancel';

/** What a cancel message targets, always in one tenant: a task, a conversation, or all its tasks in this process. */
export type CancelTarget = { readonly tenant: string } & (
  | { readonly taskId: string }
  | { readonly conversation: string }
  | { readonly all: true }
);

export interface CancelPayload {
  readonly msg?: string;
  readonly by?: string;
  /** Defaults to `now`. */
  readonly mode?: StopMode;
  /** Also undo the completed calls that can be undone. */
  readonly undo?: boolean;
}

/** Asks tasks to stop. A message without a target is rejected. */
export type CancelMessage = ChannelMessage<CancelPayload> & {
  readonly category: 'task';
  readonly topic: '__cancel';
} & CancelTarget;

type ChannelListener = (message: ChannelMessage) => void;

/** Carries messages inside one process. Create one and pass it: there is no default channel. */
export interface EventChannel {
  /** Throws `TypeError` on a cancel message without a valid target. */
  emit(message: ChannelMessage | CancelMessage): void;
  /** Adds a listener for cancel messages. */
  on(category: string, topic: string, listener: ChannelListener): Disposable;
}

/**
 * Creates a channel for messages inside one process. Messages with `category: 'task'` and `topic: '__cancel'` cancel
 * tasks.
 *
 * @returns The channel.
 */
export function createEventChannel(): EventChannel {
  const listeners = new Map<string, Set<ChannelListener>>();
  const toKey = (category: string, topic: string): string => JSON.stringify([category, topic]);
  return {
    emit(message) {
      if (message.category === TASK_CATEGORY && message.topic === CANCEL_TOPIC) readCancelMessage(message);
      for (const listener of listeners.get(toKey(message.category, message.topic)) ?? []) {
        try {
          listener(message);
        } catch (error) {
          process.emitWarning(new Error(`A listener on '${message.topic}' failed`, { cause: error }));
        }
      }
    },
    on(category, topic, listener) {
      const key = toKey(category, topic);
      const group = listeners.get(key) ?? new Set();
      listeners.set(key, group.add(listener));
      return {
        [Symbol.dispose]() {
          group.delete(listener);
          if (group.size === 0 && listeners.get(key) === group) listeners.delete(key);
        },
      };
    },
  };
}

/**
 * Creates the message that cancels a task, a conversation, or all tasks of a tenant in this process.
 *
 * @returns The message for `channel.emit`.
 */
export function createCancelMessage(target: CancelTarget, payload: CancelPayload = {}): CancelMessage {
  const message = { category: TASK_CATEGORY, topic: CANCEL_TOPIC, payload, ...target } as const;
  readCancelMessage(message);
  return message;
}

/** The request in a cancel message. */
export interface CancelRequest {
  readonly target: CancelTarget;
  readonly reason: CancelReasonInit;
  readonly options: CancelOptions;
}

/** Parses a cancel message. Throws `TypeError` unless it names a tenant, exactly one target, and known options. */
export function readCancelMessage(message: ChannelMessage): CancelRequest {
  const { msg, by, ...options } = (message as CancelMessage).payload ?? {};
  return {
    target: readTarget(message),
    reason: { kind: 'user', via: 'event', ...(msg !== undefined && { message: msg }), ...(by !== undefined && { by }) },
    options: readCancelOptions(options, 'now'),
  };
}

function readTarget(message: object): CancelTarget {
  const { tenant, taskId, conversation, all } = message as Partial<Record<string, unknown>>;
  if (!isName(tenant)) throw new SettingsError('tenant', `a cancel message needs one, got ${String(tenant)}`);
  const named = [
    ...(isName(taskId) ? [{ tenant, taskId }] : []),
    ...(isName(conversation) ? [{ tenant, conversation }] : []),
    ...(all === true ? [{ tenant, all: true as const }] : []),
  ];
  const [target] = named;
  if (target !== undefined && named.length === 1) return target;
  throw new SettingsError('taskId, conversation, all', 'a cancel message needs exactly one of them; all must be true');
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
