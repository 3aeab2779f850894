import type { AppContext } from '@whoa/core';
import type { TaskRecord, TaskSummary } from '../../task.ts';
import type { CreateRequest } from '../driver.ts';
import { applyTransition } from './transitions.ts';

/** Returns a task as it is when it has just been created, before a store decides where it waits. */
export function toNewTask(request: CreateRequest, now: number): TaskSummary {
  const { id, tenant, agent, conversation, title, key, nonce, preferredWorker, priority } = request;
  const { notBefore, deadline, traceparent, startedBy } = request;
  const given = {
    id,
    tenant,
    agent,
    priority,
    ...(conversation !== undefined && { conversation }),
    ...(title !== undefined && { title }),
    ...(key !== undefined && { key, nonce }),
    ...(preferredWorker !== undefined && { worker: preferredWorker }),
    ...(notBefore !== undefined && { notBefore }),
    ...(deadline !== undefined && { deadline }),
    ...(traceparent !== undefined && { traceparent }),
    ...(startedBy !== undefined && { startedBy }),
  };
  return applyTransition(given as TaskSummary, 'create', { now });
}

/** Returns a context from its text in the store. */
export function toContext(text: string | null | undefined): Pick<TaskRecord, 'context'> {
  return text ? { context: JSON.parse(text) as AppContext } : {};
}

const MAX_TITLE_CHARACTERS = 120;
/** Words, without anything that would break a line. Bounded: one that is longer than a title is never read whole. */
const WORDS = new RegExp(`[^\\s\\p{Cc}]{1,${MAX_TITLE_CHARACTERS + 1}}`, 'gu');

/** Returns the text of an input in one line, cut if it is long; `undefined` if it has no text. */
export function toTitle(input: unknown): string | undefined {
  let title = '';
  for (const text of findTexts(input)) {
    for (const [word] of text.matchAll(WORDS)) {
      title += title === '' ? word : ` ${word}`;
      if (title.length > MAX_TITLE_CHARACTERS) return cut(title);
    }
  }
  return title === '' ? undefined : title.toWellFormed();
}

function cut(title: string): string {
  // Don't keep the first half of a character at the end.
  const kept = title.slice(0, MAX_TITLE_CHARACTERS - 1).replace(/[\s\p{Cs}]+$/u, '');
  return `${kept.toWellFormed()}…`;
}

/** An input that a user wrote: a text, its parts, or a message that has them as `content`, or as `parts` in a chat. */
function findTexts(input: unknown): readonly string[] {
  if (typeof input === 'string') return [input];
  if (Array.isArray(input)) return input.flatMap(textOfPart);
  const { role, content, parts } = (input ?? {}) as { role?: unknown; content?: unknown; parts?: unknown };
  if (role !== 'user') return [];
  if (typeof content === 'string') return [content];
  const list = Array.isArray(content) ? content : parts;
  return Array.isArray(list) ? list.flatMap(textOfPart) : [];
}

function textOfPart(part: unknown): readonly string[] {
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown };
  return type === 'text' && typeof text === 'string' ? [text] : [];
}
