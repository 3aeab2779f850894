import { type MouseEvent, type ReactNode, useSyncExternalStore } from 'react';

const BASE = '/console';

/** A page of the console, as its address says. */
export type Route =
  | { readonly page: 'tasks' }
  | { readonly page: 'task' | 'report'; readonly id: string }
  | { readonly page: 'approvals' }
  | { readonly page: 'conversations'; readonly id?: string }
  | { readonly page: 'unknown' };

/** The current address: its page, its parameters, and the call that it points at. */
export interface Address {
  readonly route: Route;
  readonly query: URLSearchParams;
  readonly hash: string;
}

/** Follows the address. */
export function useAddress(): Address {
  const text = useSyncExternalStore(subscribe, () => location.pathname + location.search + location.hash);
  const url = new URL(text, location.origin);
  return { route: parseRoute(url.pathname), query: url.searchParams, hash: decode(url.hash.slice(1)) };
}

/** Goes to another address of the console. `replace` leaves no entry in the browser's history. */
export function navigate(to: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  dispatchEvent(new PopStateEvent('popstate'));
  if (!replace && !to.includes('#')) scrollTo(0, 0);
}

/** Addresses of the pages. The tenant is only in them for operators who look at another tenant. */
export const addresses = {
  tasks: (query = ''): string => `${BASE}/${query}`,
  task: (id: string, tenant?: string): string => `${BASE}/tasks/${encodeURIComponent(id)}${tenantQuery(tenant)}`,
  report: (id: string, tenant?: string): string =>
    `${BASE}/tasks/${encodeURIComponent(id)}/report${tenantQuery(tenant)}`,
  approvals: (tenant?: string): string => `${BASE}/approvals${tenantQuery(tenant)}`,
  conversations: (tenant?: string): string => `${BASE}/conversations${tenantQuery(tenant)}`,
  conversation: (id: string, tenant?: string): string =>
    `${BASE}/conversations/${encodeURIComponent(id)}${tenantQuery(tenant)}`,
};

interface LinkProps {
  readonly to: string;
  readonly className?: string;
  readonly isCurrent?: boolean;
  readonly children: ReactNode;
}

/** A link inside the console. Opening it in a new tab works as for any link. */
export function Link({ to, className, isCurrent = false, children }: LinkProps): ReactNode {
  const follow = (event: MouseEvent): void => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={to} className={className} onClick={follow} aria-current={isCurrent ? 'page' : undefined}>
      {children}
    </a>
  );
}

function tenantQuery(tenant: string | undefined): string {
  return tenant === undefined ? '' : `?tenant=${encodeURIComponent(tenant)}`;
}

function parseRoute(pathname: string): Route {
  const [page, id, part, ...rest] = pathname.slice(BASE.length).split('/').filter(Boolean).map(decode);
  if (rest.length > 0) return { page: 'unknown' };
  if (page === undefined) return { page: 'tasks' };
  if (page === 'tasks' && id !== undefined && part === undefined) return { page: 'task', id };
  if (page === 'tasks' && id !== undefined && part === 'report') return { page: 'report', id };
  if (page === 'approvals' && id === undefined) return { page: 'approvals' };
  if (page === 'conversations' && part === undefined) return { page: 'conversations', ...(id !== undefined && { id }) };
  return { page: 'unknown' };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function subscribe(listener: () => void): () => void {
  addEventListener('popstate', listener);
  addEventListener('hashchange', listener);
  return () => {
    removeEventListener('popstate', listener);
    removeEventListener('hashchange', listener);
  };
}
