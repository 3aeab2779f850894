import { type ApprovalQuestion, type Ask, formatQuestion } from '@whoa/core/approval';
import { describeLocation } from '@whoa/core/internal';
import { classifyTool, toHunks } from '../calls.ts';
import { fenced } from '../content.ts';
import type { CallUpdate } from '../updates.ts';
import type { Client, PermissionAnswer } from './client.ts';

/** The prompt a question belongs to. */
export interface Asking {
  /** Shows the client the question, and that the session waits for it. */
  readonly begin: () => Promise<void>;
  readonly end: () => void;
  /** Called when the client says the whole prompt was cancelled. */
  readonly cancel: () => void;
}

export interface AskOptions {
  readonly sessionId: string;
  readonly client: Client;
  /** The running prompt. */
  readonly asking: () => Asking | undefined;
}

const DECISIONS = { allow: 'yes', 'allow-always': 'always', reject: 'no', 'reject-always': 'never' } as const;

/** Asks the user in the editor. A cancelled call does not wait for the answer. */
export function createAsk({ sessionId, client, asking }: AskOptions): Ask {
  return async (question, { signal }) => {
    const prompt = asking();
    if (prompt === undefined) return { decision: 'no', why: 'no prompt is running' };
    await prompt.begin();
    const { alwaysScope } = question;
    const answer = await client
      .ask(sessionId, { call: describeQuestion(question), always: alwaysScope }, { signal })
      .catch((): PermissionAnswer => 'unanswered');
    prompt.end();
    if (answer === 'cancelled' && !signal.aborted) prompt.cancel();
    if (answer === 'cancelled') return { decision: 'no' };
    return answer === 'unanswered'
      ? { decision: 'no', why: 'the editor gave no answer' }
      : { decision: DECISIONS[answer] };
  };
}

/** Put the whole question into the content of the call: a heading alone would hide the rest. */
function describeQuestion(question: ApprovalQuestion): CallUpdate {
  const { callId, tool, title, effects, change, why } = question;
  const hunks = toHunks(change?.diff.join('\n') ?? '');
  const isCompared = change !== undefined && hunks.length > 0;
  const { change: _, ...rest } = question;
  const lines = formatQuestion(isCompared ? rest : question);
  const words = [describeLocation(question), why].filter((text) => text !== undefined);
  return {
    type: 'call',
    // The editor does not know a sub-agent's calls (`outer/inner`), so nothing would close them there.
    callId: callId.split('/')[0]!,
    tool,
    title,
    kind: classifyTool(tool, effects),
    status: 'pending',
    content: [
      ...(isCompared
        ? [{ type: 'diff' as const, path: change.path, isNew: change.isNew, patch: change.diff.join('\n'), hunks }]
        : []),
      { type: 'content', content: [...words.map((text) => fenced([text])), fenced(lines)].join('\n') },
    ],
  };
}
