import type { CancelReasonInit } from '@whoa/core';

/** A message between parts of one process. */
export interface ChannelMessage<Payload = unknown> {
  readonly category: string;
  readonly topic: string;
  readonly payload: Payload;
  readonly taskId?: string;
  readonly sender?: string;
}

export const TASK_CATEGORY = 'task';
export const CANCEL_TOPIC = '__cancel';

/** Asks a task of this process to stop. Without a `taskId` it means every task that listens to the channel. */
export interface CancelMessage extends ChannelMessage<{ readonly msg?: string; readonly by?: string }> {
  readonly category: 'task';
  readonly topic: '__cancel';
}

export type ChannelListener = (message: ChannelMessage) => void;

/** Carries messages inside one process. An object you pass: there is no default one. */
export interface EventChannel {
  emit(message: ChannelMessage): void;
  on(category: string, topic: string, listener: ChannelListener): Disposable;
}

export function createEventChannel(): EventChannel {
  const listeners = new Map<string, Set<ChannelListener>>();
  const keyOf = (category: string, topic: string): string => JSON.stringify([category, topic]);
  return {
    emit(message) {
      for (const listener of listeners.get(keyOf(message.category, message.topic)) ?? []) {
        try {
          listener(message);
        } catch (error) {
          process.emitWarning(new Error(`A listener on '${message.topic}' failed`, { cause: error }));
        }
      }
    },
    on(category, topic, listener) {
      const key = keyOf(category, topic);
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

/** Makes the message that stops a task. */
export function createCancelMessage(taskId?: string, payload: CancelMessage['payload'] = {}): CancelMessage {
  return { category: TASK_CATEGORY, topic: CANCEL_TOPIC, payload, ...(taskId !== undefined && { taskId }) };
}

/** Why whoever sent a message wants the task to stop. */
export function reasonOf({ msg, by }: CancelMessage['payload']): CancelReasonInit {
  return { kind: 'user', via: 'event', ...(msg !== undefined && { message: msg }), ...(by !== undefined && { by }) };
}
