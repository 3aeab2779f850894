import { randomUUID } from 'node:crypto';
import type { FrameId } from '../wire/frame.ts';
import {
  answerCancelled,
  encode,
  encodeUpdate,
  encodeWithdrawal,
  isError,
  type Message,
  refuseCancelled,
  toFields,
  toText,
  toUpdate,
} from './message.ts';
import type { Obedience } from './options.ts';
import type { Parts } from './parts.ts';
import type { Prompt, ProxySession, Stop } from './session.ts';

/** Questions to a person. They are withdrawn as soon as the prompt is cancelled. */
const PERSONAL = new Set(['session/request_permission', 'elicitation/create']);

/** What an agent may no longer begin when its prompt was cancelled. */
export const BEGINS: ReadonlySet<string> = new Set([...PERSONAL, 'terminal/create', 'fs/write_text_file']);

/**
 * Stops prompts of a session: the agent is asked, then asked again while the processes of the prompts are ended, then
 * answered for. The editor gets the answers at the end, after everything else.
 */
export function beginStop(
  parts: Parts,
  session: ProxySession,
  { prompts, by, line }: { readonly prompts: readonly Prompt[]; readonly by: string; readonly line: string },
): void {
  const { clock, waitMs } = parts;
  const state = { answers: new Map(), hasExited: false, isEnding: false, closedQuestions: 0 };
  const stop: Stop = { prompts, by, startedAt: clock.now(), end: Promise.withResolvers(), ...state };
  session.stop = stop;
  parts.life.send(line);
  withdraw(parts, session, PERSONAL);
  stop.timer = clock.setTimer(waitMs / 2, () => {
    stop.timer = clock.setTimer(waitMs / 2, () => finish(parts, session));
    cancelAgain(parts, session, stop);
  });
}

/** The agent answered a prompt. Returns whether the stop passes the answer on. */
export function recordStopAnswer(parts: Parts, session: ProxySession, message: Message): boolean {
  const { stop } = session;
  if (!stop?.prompts.some(({ id }) => id === message.id)) return false;
  const isV2 = parts.version >= 2;
  // In v2 a prompt that was accepted ends with an update.
  if (isV2 && !isError(message)) return false;
  stop.answers.set(message.id!, message);
  if (stop.answers.size === stop.prompts.length) finish(parts, session);
  return !isV2;
}

/** v2: the agent says that the work is over. */
export function recordIdle(parts: Parts, session: ProxySession, message: Message): void {
  session.stop!.idle = message;
  finish(parts, session);
}

/** The process of the agent has ended. */
export function recordExit(parts: Parts, session: ProxySession): void {
  if (session.stop === undefined) return;
  session.stop.hasExited = true;
  finish(parts, session);
}

/** Whether these are all prompts of the session, so that everything that runs in it is theirs. */
function isWhole(session: ProxySession, { prompts }: Stop): boolean {
  return prompts.length === session.prompts.size;
}

/** The first cancel may have been lost, or the agent waits for a process that ignores it. */
function cancelAgain(parts: Parts, session: ProxySession, stop: Stop): void {
  const { life, version } = parts;
  if (isWhole(session, stop)) life.send(encode({ method: 'session/cancel', params: { sessionId: session.agentId } }));
  for (const { id } of stop.prompts) if (version < 2 && !stop.answers.has(id)) life.send(encodeWithdrawal(id));
  parts.follow(endProcesses(parts, session, stop));
}

async function endProcesses({ life, sessions }: Parts, session: ProxySession, stop: Stop): Promise<void> {
  const { since } = session.spans.at(-1) ?? {};
  if (since === undefined || !isWhole(session, stop) || stop.hasExited) return;
  // What was started while other sessions worked may be theirs.
  const others = [...sessions.values()].flatMap((other) => (other === session ? [] : other.spans));
  const { ended, verified, survivors, shared } = await life.endSince(since, {
    except: others,
    onDead: () => stop.onDead?.(),
  });
  const all = { verified, ended: ended + (stop.cleanup?.ended ?? 0), survivors };
  stop.cleanup = shared === undefined ? all : { ...all, shared };
}

function finish(parts: Parts, session: ProxySession): void {
  const stop = session.stop!;
  if (stop.isEnding) return;
  stop.isEnding = true;
  stop.timer?.[Symbol.dispose]();
  // The editor gets its answer when the known processes are dead; the report follows with the proof.
  let report: (() => void) | undefined;
  const answerOnce = (): void => {
    report ??= settle(parts, session, stop);
  };
  stop.onDead = answerOnce;
  const proved = endProcesses(parts, session, stop).finally(answerOnce);
  const reported = proved.then(() => {
    report!();
    parts.reports.delete(reported);
  });
  parts.reports.add(reported);
  parts.follow(reported);
}

/** Answers the editor. Returns what reports the stop. */
function settle(parts: Parts, session: ProxySession, stop: Stop): () => void {
  const { life, clock, onEvent } = parts;
  const ms = Math.round(clock.now() - stop.startedAt);
  const closedCalls = isWhole(session, stop) ? closeAll(parts, session) : 0;
  answer(parts, session, stop);
  session.stop = undefined;
  parts.stoppedAt = clock.now();
  for (const { id } of stop.prompts) session.finish(id, life.now());
  stop.end.resolve();
  return () => {
    for (const { id } of stop.prompts)
      onEvent({
        type: 'stop',
        session: session.id,
        prompt: id,
        by: stop.by,
        agent: toObedience(stop, id),
        ms,
        closedCalls,
        closedQuestions: stop.closedQuestions,
        ...(stop.cleanup !== undefined && { processes: stop.cleanup }),
      });
  };
}

/** Closes what is open in a session. Returns how many calls were. */
function closeAll(parts: Parts, session: ProxySession): number {
  const { editor, version } = parts;
  withdraw(parts, session);
  for (const terminalId of session.terminals) {
    const params = { sessionId: session.id, terminalId };
    editor.send(encode({ id: `whoa-${randomUUID()}`, method: 'terminal/release', params }));
  }
  session.terminals.clear();
  const open = session.buryCalls();
  const status = version >= 2 ? 'cancelled' : 'failed';
  const content = [{ type: 'content', content: { type: 'text', text: 'Cancelled.' } }];
  for (const toolCallId of open)
    editor.send(encodeUpdate(session.id, { sessionUpdate: 'tool_call_update', toolCallId, status, content }));
  session.isQuiet = true;
  return open.length;
}

/** Answers the prompts as cancelled, with what the agent said of them. */
function answer({ editor, version, asked }: Parts, session: ProxySession, stop: Stop): void {
  const { prompts, answers, by, idle, hasExited } = stop;
  for (const { id, isAnswered } of prompts) {
    const given = answers.get(id);
    if (given === undefined && !isAnswered) asked.delete(id);
    if (version >= 2) {
      if (!isAnswered) editor.send(refuseCancelled(id));
    } else {
      editor.send(given === undefined ? answerPrompt(id) : asCancelled(given, by));
      if (given === undefined && !hasExited) session.owed.add(id);
    }
  }
  // Prompts that the agent refused have not begun.
  if (version < 2 || answers.size === prompts.length) return;
  const update = { ...(idle && toUpdate(idle)), sessionUpdate: 'state_update', state: 'idle' };
  editor.send(encodeUpdate(session.id, { ...update, stopReason: 'cancelled', error: undefined }));
  session.isActive = false;
  if (idle === undefined && !hasExited) session.owesIdle = true;
}

function toObedience({ hasExited, answers, idle }: Stop, id: FrameId): Obedience {
  if (hasExited) return 'exited';
  const given = answers.get(id) ?? idle;
  if (given === undefined) return 'answered-for';
  if (isError(given)) return 'error';
  const fields = given.method === undefined ? toFields(given.body['result']) : toUpdate(given);
  return fields['stopReason'] === 'cancelled' ? 'cancelled' : 'other-answer';
}

/** Answers questions of the agent in place of the editor, and tells the editor. */
function withdraw({ editor, life, questions }: Parts, session: ProxySession, methods?: ReadonlySet<string>): void {
  for (const [id, question] of questions) {
    if (question.session !== session || methods?.has(question.method) === false) continue;
    questions.delete(id);
    session.stop!.closedQuestions++;
    life.send(answerCancelled(question.method, id));
    editor.send(encodeWithdrawal(id));
  }
}

/** The answer to a cancelled prompt in v1. */
export function answerPrompt(id: FrameId): string {
  return encode({ id, result: { stopReason: 'cancelled' } });
}

/** The answer itself if it reports that already; otherwise with another reason. An error is not one of the user's making. */
function asCancelled({ line, id, body }: Message, by: string): string {
  const result = toFields(body['result']);
  if (result['stopReason'] === 'cancelled') return line;
  if (by === '$/cancel_request' && toFields(body['error'])['code'] === -32800) return line;
  if (toText(result['stopReason']) === undefined) return answerPrompt(id!);
  return JSON.stringify({ ...body, result: { ...result, stopReason: 'cancelled' } });
}
