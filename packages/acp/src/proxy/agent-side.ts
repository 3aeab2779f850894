import { randomUUID } from 'node:crypto';
import type { FrameId } from '../wire/frame.ts';
import { answerCancelled, isError, lineFor, type Message, toFields, toText, toUpdate } from './message.ts';
import type { AgentQuestion, Parts } from './parts.ts';
import type { ProxySession } from './session.ts';
import { BEGINS, recordIdle, recordStopAnswer } from './stop.ts';

/** Updates that belong to a session, not to a prompt. */
const OF_THE_SESSION = new Set<unknown>([
  'available_commands_update',
  'current_mode_update',
  'config_option_update',
  'session_info_update',
  'usage_update',
]);

/** Handles a message of the agent. */
export function fromAgent(parts: Parts, message: Message): void {
  const { id, method, params } = message;
  const sessionId = toText(params['sessionId']);
  const session = sessionId === undefined ? undefined : parts.atAgent.get(sessionId);
  if (method === undefined) answered(parts, message);
  else if (method === '$/cancel_request') {
    // The proxy may have withdrawn it before.
    if (parts.questions.has(params['requestId'] as FrameId)) parts.editor.send(message.line);
  } else if (id !== undefined) ask(parts, session, message);
  else if (method !== 'session/update' || session === undefined || wants(parts, session, message))
    parts.editor.send(lineFor(message, session?.id));
  else parts.dropped++;
}

/** A request of the agent. After a cancel, no one is asked, and nothing begins. */
function ask({ life, editor, questions }: Parts, session: ProxySession | undefined, message: Message): void {
  const method = message.method!;
  const id = message.id!;
  const isOver = session !== undefined && (session.stop !== undefined || session.isSilent);
  if (isOver && BEGINS.has(method)) {
    life.send(answerCancelled(method, id));
    return;
  }
  if (method === 'terminal/release') session?.terminals.delete(String(message.params['terminalId']));
  questions.set(id, { method, session });
  editor.send(lineFor(message, session?.id));
}

/** Whether an update is passed on. */
function wants(parts: Parts, session: ProxySession, message: Message): boolean {
  const update = toUpdate(message);
  const kind = update['sessionUpdate'];
  if (OF_THE_SESSION.has(kind)) return !session.isRestoring;
  const state = kind === 'state_update' ? toText(update['state']) : undefined;
  if (state !== undefined) return wantsState(parts, session, { message, isIdle: state === 'idle' });
  if (session.isSilent || session.stop?.isEnding) return false;
  return !session.recordCall(update);
}

/** v2: what an agent reports about its work. */
function wantsState(
  parts: Parts,
  session: ProxySession,
  { message, isIdle }: { readonly message: Message; readonly isIdle: boolean },
): boolean {
  if (session.isOwed) {
    if (isIdle) session.pay();
    return false;
  }
  if (session.isRestoring || session.stop?.isEnding) return false;
  session.isActive = !isIdle;
  if (!isIdle) {
    // Work that no prompt asked for, such as in the background.
    session.isQuiet = false;
    return true;
  }
  if (session.stop !== undefined) {
    recordIdle(parts, session, message);
    return false;
  }
  for (const [id, { isAnswered }] of session.prompts) if (isAnswered) session.finish(id, parts.life.now());
  if (session.prompts.size === 0) session.calls.clear();
  return true;
}

/** A response of the agent. A second one to the same request, or one to no request, is dropped. */
function answered(parts: Parts, message: Message): void {
  const { asked, editor, life, sessions } = parts;
  if (life.take(message)) return;
  const id = message.id ?? null;
  const request = asked.get(id);
  if (request === undefined) {
    parts.dropped++;
    for (const session of sessions.values()) session.pay(id);
    return;
  }
  asked.delete(id);
  const { session } = request;
  const { method } = request.message;
  if (method === 'session/prompt' && session !== undefined) promptAnswered(parts, session, message);
  else if (method === 'session/close' && session !== undefined) closed(parts, session, message);
  else editor.send(isError(message) ? message.line : recordAnswer(parts, request, message));
}

function promptAnswered(parts: Parts, session: ProxySession, message: Message): void {
  const id = message.id!;
  const prompt = session.prompts.get(id);
  if (prompt !== undefined) prompt.isAnswered = true;
  if (recordStopAnswer(parts, session, message)) return;
  const isOver = parts.version < 2 || isError(message);
  if (isOver && session.stop === undefined) session.finish(id, parts.life.now());
  if (session.prompts.size === 0) session.calls.clear();
  parts.editor.send(message.line);
}

/** A closed session has been stopped first. */
function closed(parts: Parts, session: ProxySession, message: Message): void {
  const finish = (): void => {
    parts.editor.send(message.line);
    if (!isError(message)) parts.forget(session);
  };
  if (session.stop === undefined) finish();
  else parts.follow(session.stop.end.promise.then(finish));
}

/** Remembers what the agent can do and which sessions it has. Returns the line to pass on. */
function recordAnswer(parts: Parts, { message: request }: AgentQuestion, message: Message): string {
  const { life } = parts;
  const result = toFields(message.body['result']);
  // Only the first counts: what both sides agreed on does not change.
  if (request.method === 'initialize' && life.capabilities === undefined) {
    life.capabilities = result;
    parts.version = Number(result['protocolVersion']) || 1;
  } else if (request.method === 'authenticate' || request.method === 'auth/login') life.login = request;
  const agentId = request.method === 'session/new' ? toText(result['sessionId']) : undefined;
  if (agentId === undefined) return message.line;
  // A process that was started again may use an id that the editor knows for another session.
  const known = parts.sessions.get(agentId);
  const isTaken = known?.setup !== undefined && parts.atAgent.get(agentId) !== known;
  const id = isTaken ? `${agentId}-${randomUUID()}` : agentId;
  const session = parts.findSession(id)!;
  session.agentId = agentId;
  session.setup = request.params;
  session.isQuiet = false;
  parts.atAgent.set(agentId, session);
  return isTaken ? JSON.stringify({ ...message.body, result: { ...result, sessionId: id } }) : message.line;
}
