import type { ApprovalRequest } from '@whoa/core';
import type { ClientFiles } from '../options.ts';
import type { CallUpdate, Update } from '../updates.ts';

/** What a person said when asked about a call. `unanswered`: nobody did, or with something nobody knows. */
export type PermissionAnswer = 'allow' | 'allow-always' | 'reject' | 'reject-always' | 'cancelled' | 'unanswered';

interface PermissionQuestion {
  readonly call: CallUpdate;
  readonly effects: ApprovalRequest['effects'];
}

/** A client, whatever version of the protocol it speaks. */
export interface Client {
  /** Sends an update. May reject when the client has gone. */
  update(sessionId: string, update: Update): Promise<void>;
  /** Asks a person. Stops waiting, and tells the client so, when the signal fires. */
  ask(sessionId: string, question: PermissionQuestion, options: { signal: AbortSignal }): Promise<PermissionAnswer>;
  files(sessionId: string): ClientFiles;
}

/** The options a person may choose from, in both versions. */
export const PERMISSION_OPTIONS = [
  { optionId: 'allow', name: 'Allow', kind: 'allow_once' },
  { optionId: 'allow-always', name: 'Always allow in this session', kind: 'allow_always' },
  { optionId: 'reject', name: 'Reject', kind: 'reject_once' },
  { optionId: 'reject-always', name: 'Always reject in this session', kind: 'reject_always' },
] as const;

/** Reads what a client answered. Only what we know as a yes is one. */
export function answerOf(outcome: { readonly outcome?: unknown; readonly optionId?: unknown }): PermissionAnswer {
  if (outcome.outcome === 'cancelled') return 'cancelled';
  if (outcome.outcome !== 'selected') return 'unanswered';
  return PERMISSION_OPTIONS.find(({ optionId }) => optionId === outcome.optionId)?.optionId ?? 'unanswered';
}
