import { randomUUID } from 'node:crypto';
import type { FrameId } from '../wire/frame.ts';
import { encode, encodeUpdate, encodeWithdrawal, failed, isError, toFields, toText } from './message.ts';
import type { AgentQuestion, Parts } from './parts.ts';
import type { ProxySession } from './session.ts';
import { recordExit } from './stop.ts';

/** Requests that mean the same in a new process. */
const REPEATABLE = new Set([
  'initialize',
  'authenticate',
  'session/new',
  'session/load',
  'session/resume',
  'session/list',
]);

/** Ends what ran in a process that is gone. Returns the requests to send to the next one. */
export function abandon(parts: Parts, why: string): readonly string[] {
  const { asked, questions, editor, version } = parts;
  const message = `The agent was started again: ${why}`;
  const again: string[] = [];
  parts.onEvent({ type: 'restart', why });
  const sessions = [...parts.sessions.values()];
  parts.atAgent.clear();
  for (const session of sessions) session.lose();
  for (const [id, request] of asked) {
    const { session } = request;
    if (session?.stop?.prompts.some((prompt) => prompt.id === id)) continue;
    if (session === undefined && REPEATABLE.has(request.message.method ?? '')) again.push(request.message.line);
    else if (!closeFor(parts, id, request)) editor.send(failed(id, message));
  }
  for (const session of sessions) {
    const failing = [...session.prompts.keys()].filter((id) => !session.stop?.prompts.some((one) => one.id === id));
    for (const id of failing) session.prompts.delete(id);
    const isIdle = failing.length > 0 && session.stop === undefined;
    recordExit(parts, session);
    if (version < 2 || !isIdle) continue;
    const error = { code: -32603, message };
    const update = { sessionUpdate: 'state_update', state: 'idle', stopReason: 'error', error };
    editor.send(encodeUpdate(session.id, update));
  }
  for (const id of questions.keys()) editor.send(encodeWithdrawal(id));
  questions.clear();
  return again;
}

/** A session is closed with its process. Returns whether the request asked for that. */
function closeFor(parts: Parts, id: FrameId, { message, session }: AgentQuestion): boolean {
  parts.asked.delete(id);
  if (message.method !== 'session/close' || session === undefined) return false;
  const answer = (): void => parts.editor.send(encode({ id, result: {} }));
  parts.follow((session.stop?.end.promise ?? Promise.resolve()).then(answer));
  parts.forget(session);
  return true;
}

/** Opens a session in a new process: with its memory if the agent can, otherwise an empty one in its place. */
export async function restore(parts: Parts, session: ProxySession): Promise<void> {
  const { atAgent, editor, life } = parts;
  session.isRestoring = true;
  // What it says of its history is known.
  atAgent.set(session.agentId, session);
  try {
    const mode = await reopen(parts, session);
    if (mode === undefined) {
      for (const { id } of session.held.splice(0))
        if (id !== undefined) editor.send(failed(id, 'The agent was started again, and could not open this session'));
      return;
    }
    session.isLost = false;
    atAgent.set(session.agentId, session);
    for (const { method, params } of session.choices.values())
      await life.request(method!, { ...params, sessionId: session.agentId });
    const memory =
      mode === 'new' ? 'It cannot load conversations: it has forgotten this one' : 'This conversation was loaded';
    session.notice = `Whoa: the agent had not stopped, so it was started again. ${memory}.`;
    parts.onEvent({ type: 'restore', session: session.id, mode });
  } finally {
    session.isRestoring = false;
  }
}

async function reopen({ life, atAgent }: Parts, session: ProxySession): Promise<'resume' | 'load' | 'new' | undefined> {
  const { protocolVersion, agentCapabilities } = life.capabilities ?? {};
  const { loadSession, sessionCapabilities } = toFields(agentCapabilities);
  const canResume = protocolVersion === 2 || toFields(sessionCapabilities)['resume'] != null;
  for (const mode of ['resume', 'load'] as const) {
    if (mode === 'resume' ? !canResume : loadSession !== true) continue;
    const answer = await life.request(`session/${mode}`, { ...session.setup, sessionId: session.agentId });
    if (answer !== undefined && !isError(answer)) return mode;
  }
  const answer = await life.request('session/new', session.setup ?? {});
  const id = toText(toFields(answer?.body['result'])['sessionId']);
  if (id === undefined) return undefined;
  atAgent.delete(session.agentId);
  session.agentId = id;
  return 'new';
}

/** Tells the user, in the turn that is the first to notice. */
export function sendNotice({ editor, version }: Parts, session: ProxySession): void {
  if (session.notice === undefined) return;
  const content = { type: 'text', text: `${session.notice}\n\n` };
  const messageId = version >= 2 ? `whoa-${randomUUID()}` : undefined;
  session.notice = undefined;
  editor.send(encodeUpdate(session.id, { sessionUpdate: 'agent_message_chunk', content, messageId }));
}
