/** What somebody may do. `operate`: see and stop what belongs to other tenants. */
export type Right = 'read' | 'start' | 'cancel' | 'approve' | 'operate';

/** Everything that a person may do with what is theirs. */
export const OWN_RIGHTS: readonly Right[] = ['read', 'start', 'cancel', 'approve'];

/** Who asks, whose things they reach, and what they may do with them. */
export interface Principal {
  /** Whose tasks and chats. Nothing of any other tenant exists for them. */
  readonly tenant: string;
  /** Who it is, for reasons and the audit. */
  readonly name: string;
  readonly rights: readonly Right[];
}

/** What a user's function answers: a principal, or the name of a user who has all that is theirs. */
export type Identity = Principal | string | null | undefined;

/** Says who sent a request; nobody is turned away with 401. */
export type Authenticate = (request: Request) => Identity | Promise<Identity>;

/**
 * Reads the principal from an identity; the name of a user is their tenant too.
 *
 * @returns The principal, or `undefined` when the request has no identity.
 */
export function toPrincipal(identity: Identity): Principal | undefined {
  if (identity === undefined || identity === null || identity === '') return undefined;
  return typeof identity === 'string' ? { tenant: identity, name: identity, rights: OWN_RIGHTS } : identity;
}

/** Something was asked for or answered that somebody may have to account for later. */
export interface AuditEvent {
  readonly type: 'cancel' | 'approve' | 'steer';
  readonly at: number;
  readonly actor: string;
  /** The tenant of the actor, if it is not that of the target. */
  readonly actorTenant?: string;
  readonly tenant: string;
  /** The task, or the chat. */
  readonly target: string;
  /** What was stopped of a chat. */
  readonly scope?: 'foreground' | 'background' | 'all';
  /** The call of the task, if it was about one. */
  readonly callId?: string;
  /** What became of it, as the store said. */
  readonly answer: string;
}

/** Called with every cancel, approval and message to a running task. */
export type Audit = (event: AuditEvent) => void;
