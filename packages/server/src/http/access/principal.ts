import { hash } from 'node:crypto';

/** What a principal may do. `operate`: see and stop the tasks of other tenants. `halt`, with `operate`: halt the fleet. */
export type Right = 'read' | 'start' | 'cancel' | 'approve' | 'operate' | 'halt';

/** All rights of a user in their own tenant. */
export const USER_RIGHTS: readonly Right[] = ['read', 'start', 'cancel', 'approve'];

/** Who sends a request, which tenant they can access, and what they may do there. */
export interface Principal {
  /** The tenant that owns the tasks and chats. Those of other tenants are not visible. */
  readonly tenant: string;
  /** The name, for cancel reasons and the audit. */
  readonly name: string;
  readonly rights: readonly Right[];
}

/** What `authenticate` returns: a principal, or the name of a user with all rights in their own tenant. */
export type Identity = Principal | string | null | undefined;

/** Identifies the sender of a request. Without an identity the response is 401. */
export type Authenticate = (request: Request) => Identity | Promise<Identity>;

/**
 * Converts an identity to a principal. The name of a user is also their tenant.
 *
 * @returns The principal, or `undefined` when the request has no identity.
 */
export function toPrincipal(identity: Identity): Principal | undefined {
  if (identity === undefined || identity === null || identity === '') return undefined;
  return typeof identity === 'string' ? { tenant: identity, name: identity, rights: USER_RIGHTS } : identity;
}

/**
 * Returns what a page knows its user by: it sends this with every command, so that what one user did is never taken for
 * what another one does who has logged in since.
 */
export function hashPrincipal({ tenant, name }: Principal): string {
  return hash('sha256', JSON.stringify(['page', tenant, name]), 'base64url').slice(0, 22);
}

/** An action that a user may have to account for later. */
export interface AuditEvent {
  readonly type: 'cancel' | 'approve' | 'steer' | 'pause' | 'halt' | 'requeue' | 'erase';
  readonly at: number;
  readonly actor: string;
  /** The tenant of the actor, if it differs from the target's. */
  readonly actorTenant?: string;
  readonly tenant: string;
  /** The task, or the chat. */
  readonly target: string;
  /** What part of a chat was stopped. */
  readonly scope?: 'foreground' | 'background' | 'all';
  /** The call of the task, if the action was about one. */
  readonly callId?: string;
  /** The question that was answered. */
  readonly question?: string;
  /** The digest of what was shown with the question. */
  readonly shown?: string;
  /** The result from the store. */
  readonly result: string;
}

/** Called with every cancel, approval and message to a running task, and with what operators change. */
export type Audit = (event: AuditEvent) => void;
