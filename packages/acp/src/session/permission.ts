import type { Approve } from '@whoa/core';
import { announceCall } from '../calls.ts';
import type { Client, PermissionAnswer } from './client.ts';

/** The turn a question belongs to. */
export interface Asking {
  /** Shows the client what the question is about, and that the session waits for it. */
  readonly begin: () => Promise<void>;
  readonly end: () => void;
  /** The client says the whole turn was cancelled. */
  readonly cancel: () => void;
}

export interface PermissionOptions {
  readonly sessionId: string;
  readonly cwd: string;
  readonly client: Client;
  /** The turn that is running now. */
  readonly asking: () => Asking | undefined;
}

/**
 * Asks the person in the editor before calls that write or execute. One question at a time: an "always" answers those that
 * wait behind it. The call does not wait for us when it is cancelled, and a late yes is none.
 */
export function createApprove({ sessionId, cwd, client, asking }: PermissionOptions): Approve {
  const always = new Map<string, boolean>();
  let last: Promise<unknown> = Promise.resolve();

  const ask: Approve = async ({ call, tool, effects }, { signal }) => {
    const turn = asking();
    if (turn === undefined || signal.aborted) return false;
    const known = always.get(tool.name);
    if (known !== undefined) return known;
    await turn.begin();
    const question = {
      call: announceCall({ callId: call.id, tool: call.tool, input: call.input }, { cwd, tools: [tool] }),
      effects,
    };
    const answer = await client.ask(sessionId, question, { signal }).catch((): PermissionAnswer => 'unanswered');
    turn.end();
    if (signal.aborted) return false;
    if (answer === 'cancelled') turn.cancel();
    if (answer === 'allow-always' || answer === 'reject-always') always.set(tool.name, answer === 'allow-always');
    return answer === 'unanswered' ? 'the editor gave no answer' : answer.startsWith('allow');
  };

  return (request, context) => {
    const answer = last.then(() => ask(request, context));
    last = answer.catch(() => {});
    return answer;
  };
}
