import { waitAtMost } from '@whoa/core/internal';
import type { FrameId } from '../wire/frame.ts';
import { encode, lineFor, type Message, refuseCancelled, toFields, toText } from './message.ts';
import type { Parts } from './parts.ts';
import { restore, sendNotice } from './restore.ts';
import type { ProxySession } from './session.ts';
import { answerPrompt, beginStop } from './stop.ts';

/** How long an agent that was answered for may take, from the next request on. One that is only slow keeps its memory. */
const WEDGED_MS = 5_000;
/** How many messages of one session wait, before the editor is not read. */
const MAX_HELD = 64;
const CHOICES = new Set(['session/set_mode', 'session/set_model', 'session/set_config_option']);

/** Handles a message of the editor. */
export function fromEditor(parts: Parts, message: Message): void {
  const { id, method, params } = message;
  const session = parts.findSession(params['sessionId']);
  if (method === 'initialize') parts.life.hello = message;
  if ((method === 'session/load' || method === 'session/resume') && session !== undefined)
    open(parts, session, message);
  if (method === undefined) answer(parts, message);
  else if (method === '$/cancel_request') cancelRequest(parts, message);
  else if (method === 'session/cancel') {
    if (session !== undefined) cancel(parts, session, { by: method, line: lineFor(message, session.agentId) });
  } else if (session === undefined) pass(parts, session, message);
  else if (method === 'session/close' && id !== undefined) close(parts, session, message);
  else deliver(parts, session, message);
}

/** The editor opens a session that is kept: its history comes again. */
function open({ atAgent }: Parts, session: ProxySession, { params }: Message): void {
  const { sessionId: _, ...setup } = params;
  session.reopen(setup);
  atAgent.set(session.agentId, session);
}

/** A response: to a question that is still open, or to no one. */
function answer({ questions, life }: Parts, message: Message): void {
  const question = questions.get(message.id ?? null);
  if (question === undefined) return;
  questions.delete(message.id ?? null);
  const terminal = toText(toFields(message.body['result'])['terminalId']);
  if (question.method === 'terminal/create' && terminal !== undefined) question.session?.terminals.add(terminal);
  life.send(message.line);
}

/** Passes a message of a session on, or lets it wait until the session can take it. */
function deliver(parts: Parts, session: ProxySession, message: Message): void {
  const { id, method = '', params } = message;
  if (CHOICES.has(method)) session.choices.set(`${method} ${String(params['configId'])}`, { method, params });
  const isPrompt = method === 'session/prompt' && id !== undefined;
  const isBusy = isPrompt && (session.stop !== undefined || session.isOwed);
  if (!isBusy && !session.isLost && session.held.length === 0 && !session.isWaking) {
    pass(parts, session, message);
    return;
  }
  if (session.held.push(message) > MAX_HELD) parts.editor.pause(session.id, true);
  if (!session.isWaking) parts.follow(wake(parts, session));
}

/** Passes on what waits, as soon as the stop is over, what was owed is there, and the session is known to the agent. */
async function wake(parts: Parts, session: ProxySession): Promise<void> {
  const { clock, editor, life } = parts;
  session.isWaking = true;
  try {
    while (session.held.length > 0) {
      await session.stop?.end.promise;
      if (session.isOwed) {
        const settled = new Promise<void>((resolve) => (session.onSettled = resolve));
        await waitAtMost(settled, WEDGED_MS, clock);
        if (session.isOwed) await life.restart('it did not stop, and took no other prompt');
      }
      await life.ready();
      if (session.isLost) await restore(parts, session);
      const message = session.held.shift();
      if (message !== undefined) pass(parts, session, message);
    }
  } finally {
    session.isWaking = false;
    editor.pause(session.id, false);
  }
}

function pass(parts: Parts, session: ProxySession | undefined, message: Message): void {
  const { asked, life } = parts;
  const { id, method } = message;
  const isPrompt = method === 'session/prompt';
  if (id !== undefined) {
    asked.set(id, { message, session });
    if (isPrompt) session?.begin(id, life.now());
    else watchForAnswer(parts, id);
  }
  life.send(lineFor(message, session?.agentId));
  if (isPrompt && session !== undefined) sendNotice(parts, session);
}

/** An agent that was answered for may be stuck as a whole. */
function watchForAnswer({ asked, life, clock, sessions, follow }: Parts, id: FrameId): void {
  if (![...sessions.values()].some((session) => session.isOwed)) return;
  const sentAt = clock.now();
  const restartIfSilent = (): void => {
    if (asked.has(id) && life.lastReceivedAt < sentAt)
      follow(life.restart('it did not stop, and answered no other request'));
  };
  clock.setTimer(WEDGED_MS, restartIfSilent, { keepAlive: false });
}

/** Cancels the prompts of a session that were sent before. Without any, there is nothing that the agent could do. */
export function cancel(
  parts: Parts,
  session: ProxySession,
  { by, line }: { readonly by: string; readonly line: string },
): void {
  for (const held of session.held.splice(0)) {
    if (held.method === 'session/prompt' && held.id !== undefined) answerHeld(parts, held.id);
    else session.held.push(held);
  }
  const prompts = [...session.prompts.values()];
  if (session.stop !== undefined) return;
  if (prompts.length > 0) beginStop(parts, session, { prompts, by, line });
  else if (session.isActive) parts.life.send(line);
}

/** A prompt that had not been sent to the agent. */
function answerHeld({ editor, version }: Parts, id: FrameId): void {
  editor.send(version >= 2 ? refuseCancelled(id) : answerPrompt(id));
}

function cancelRequest(parts: Parts, { params, line }: Message): void {
  const id = params['requestId'] as FrameId;
  const asked = parts.asked.get(id);
  if (asked === undefined) {
    for (const { held } of parts.sessions.values()) {
      const at = held.findIndex((one) => one.id === id && one.method === 'session/prompt');
      if (at >= 0) for (const one of held.splice(at, 1)) answerHeld(parts, one.id!);
    }
    return;
  }
  const { session } = asked;
  const prompt = session?.prompts.get(id);
  if (session === undefined || prompt === undefined) parts.life.send(line);
  else if (session.stop === undefined) beginStop(parts, session, { prompts: [prompt], by: '$/cancel_request', line });
}

/** Closing a session cancels what runs in it. One that was answered for need not answer this either. */
function close(parts: Parts, session: ProxySession, message: Message): void {
  const { asked, clock, editor, waitMs, life } = parts;
  const id = message.id!;
  const line = lineFor(message, session.agentId);
  const isIdle = session.stop !== undefined || session.prompts.size === 0;
  asked.set(id, { message, session });
  cancel(parts, session, { by: 'session/close', line });
  if (isIdle && !session.isLost && !session.isActive) life.send(line);
  const answerFor = (): void => {
    if ((session.isLost || session.isOwed) && asked.delete(id)) editor.send(encode({ id, result: {} }));
  };
  if (session.isLost) answerFor();
  clock.setTimer(2 * waitMs, answerFor, { keepAlive: false });
}
