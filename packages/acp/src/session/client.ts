import type { ClientFiles } from '../options.ts';
import type { CallUpdate, Update } from '../updates.ts';

/** What a person said when asked about a call. `unanswered`: nobody did, or with something nobody knows. */
export type PermissionAnswer = 'allow' | 'allow-always' | 'reject' | 'reject-always' | 'cancelled' | 'unanswered';

interface PermissionQuestion {
  readonly call: CallUpdate;
  /** What "always" would cover. */
  readonly always: string;
}

/** A client, whatever version of the protocol it speaks. */
export interface Client {
  /** Sends an update. May reject when the client has gone. */
  update(sessionId: string, update: Update): Promise<void>;
  /** Asks a person. Stops waiting, and tells the client so, when the signal fires. */
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

/** The options a person may choose from, in both versions. Those that last say what they cover. */
export function permissionOptions(always: string): { optionId: string; name: string; kind: PermissionKind }[] {
  return OPTIONS.map((option) =>
    option.kind.endsWith('always') ? { ...option, name: `${option.name}: ${always}` } : option,
  );
}

/** Reads what a client answered. Only what we know as a yes is one. */
export function answerOf(outcome: { readonly outcome?: unknown; readonly optionId?: unknown }): PermissionAnswer {
  if (outcome.outcome === 'cancelled') return 'cancelled';
  if (outcome.outcome !== 'selected') return 'unanswered';
  return OPTIONS.find(({ optionId }) => optionId === outcome.optionId)?.optionId ?? 'unanswered';
}
