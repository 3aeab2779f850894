import type { ClientFiles } from '../options.ts';
import type { CallUpdate, Update } from '../updates.ts';

/** A user's answer about a call. `unanswered`: there was no answer, or an unknown one. */
export type PermissionAnswer = 'allow' | 'allow-always' | 'reject' | 'reject-always' | 'cancelled' | 'unanswered';

interface PermissionQuestion {
  readonly call: CallUpdate;
  /** What "always" would cover. */
  readonly always: string;
}

/** A client of any protocol version. */
export interface Client {
  /** Sends an update. May reject when the client has disconnected. */
  update(sessionId: string, update: Update): Promise<void>;
  /** Asks the user. When the signal fires, it stops waiting and notifies the client. */
  ask(sessionId: string, question: PermissionQuestion, options: { signal: AbortSignal }): Promise<PermissionAnswer>;
  files(sessionId: string): ClientFiles;
}

const OPTIONS = [
  { optionId: 'allow', name: 'Allow', kind: 'allow_once' },
  { optionId: 'allow-always', name: 'Always allow', kind: 'allow_always' },
  { optionId: 'reject', name: 'Reject', kind: 'reject_once' },
  { optionId: 'reject-always', name: 'Always reject', kind: 'reject_always' },
] as const;

type PermissionKind = (typeof OPTIONS)[number]['kind'];

/** The options a user can choose from, in both versions. Permanent ones say what they cover. */
export function permissionOptions(always: string): { optionId: string; name: string; kind: PermissionKind }[] {
  return OPTIONS.map((option) =>
    option.kind.endsWith('always') ? { ...option, name: `${option.name}: ${always}` } : option,
  );
}

/** Reads a client's answer. Only a known yes counts as one. */
export function toPermissionAnswer(outcome: {
  readonly outcome?: unknown;
  readonly optionId?: unknown;
}): PermissionAnswer {
  if (outcome.outcome === 'cancelled') return 'cancelled';
  if (outcome.outcome !== 'selected') return 'unanswered';
  return OPTIONS.find(({ optionId }) => optionId === outcome.optionId)?.optionId ?? 'unanswered';
}
