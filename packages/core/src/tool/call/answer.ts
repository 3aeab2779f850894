import type { WorkContext } from '../../stop/bounded/bounded.ts';
import { CallOutcomeUnknownError } from '../../stop/errors.ts';
import { describeError } from '../normalize.ts';
import { parseInput } from '../schema.ts';
import type { Tool } from '../tool.ts';
import type { AnswerCall, ApprovalRequest, CallScope } from './call.ts';
import type { LiveCall, Prepared } from './live-call.ts';

/**
 * Prepares a call that is answered. A user answers before it starts: until then nothing has happened. A client may do
 * anything once it has been asked, so that call starts with the question.
 */
export async function prepareAnswer(
  request: ApprovalRequest,
  { waiting, token, tool }: LiveCall,
  { answer, context }: CallScope,
): Promise<Prepared['answer']> {
  waiting.throwIfCancelled();
  if (answer === undefined)
    throw new Error('no one can be asked: its agent does not run as a task, and has no `answer`');
  if (tool.answeredBy === 'client') return (work) => askClient(request, { answer, work, token, context });
  const asking = waiting.child({ name: `question of ${request.call.id}`, minimumLevel: 'abort' });
  try {
    const result = await toResult(tool, await answer(request, { signal: asking.signal, context }));
    return () => result;
  } finally {
    asking[Symbol.dispose]();
  }
}

interface Asking extends Pick<CallScope, 'token' | 'context'> {
  readonly answer: AnswerCall;
  readonly work: WorkContext;
}

/** Any level ends the wait: nothing of the call runs here. */
async function askClient(request: ApprovalRequest, { answer, work, token, context }: Asking): Promise<string> {
  const asking = token.child({ name: `answer to ${request.call.id}`, minimumLevel: 'abort' });
  work.token.onCancel((_level, reason) => asking.cancel(reason, { mode: 'now' }));
  try {
    return await toResult(request.tool, await answer(request, { signal: asking.signal, context }));
  } catch (error) {
    if (asking.reason === undefined) throw error;
    throw new CallOutcomeUnknownError(`it was stopped (${asking.reason.kind}) before its result came`);
  } finally {
    asking[Symbol.dispose]();
  }
}

async function toResult({ answerSchema }: Tool, given: unknown): Promise<string> {
  let answer = given;
  try {
    if (answerSchema !== undefined) answer = await parseInput(answerSchema, given);
  } catch (error) {
    throw new Error(`the answer does not match its schema: ${describeError(error)}`, { cause: error });
  }
  return typeof answer === 'string' ? answer : (JSON.stringify(answer) ?? 'null');
}
