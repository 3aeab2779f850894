import type { Agent, CallResult } from '@whoa/core';
import type { UserMessage } from '@whoa/core/embed';
import type { RecoveryState } from './resume.ts';

/** The agent was changed while its worker was away. */
export interface AgentUpdate {
  readonly from: string;
  readonly to: string;
  /** Tools that the run has used and that the agent no longer has. */
  readonly removedTools: readonly string[];
}

/** Returns what changed since a run was started; `undefined` if its agent is the same, or not known to be another. */
export function diffAgentVersion(
  { version: from, messages, open }: RecoveryState,
  { version: to, tools }: Pick<Agent, 'version' | 'tools'>,
): AgentUpdate | undefined {
  if (from === undefined || to === undefined || from === to) return undefined;
  const results = messages.filter((message) => message.role === 'tool');
  const used = [...results, ...open].map(({ tool }) => tool);
  const has = new Set(tools.map(({ name }) => name));
  return { from, to, removedTools: [...new Set(used)].filter((name) => !has.has(name)) };
}

/** The message to the model when it continues after a crash. */
export function resumeNotice(unknown: readonly CallResult[], update?: AgentUpdate): UserMessage {
  const sentences = ['The process you ran in was restarted; continue where you left off.'];
  if (update !== undefined) {
    sentences.push('Your instructions or tools have changed since; use the ones you have now.');
    if (update.removedTools.length > 0)
      sentences.push(`You no longer have these tools: ${update.removedTools.join(', ')}.`);
  }
  if (unknown.length > 0) {
    const names = unknown.map(({ tool, callId }) => `${tool} (${callId})`).join(', ');
    sentences.push(`It is not known whether these took effect: ${names}. Do not repeat them without checking.`);
  }
  return { role: 'user', isNotice: true, content: sentences.join(' ') };
}
