import type { Me } from '../api/session.ts';

/** What every page is given. */
export interface PageProps {
  readonly me: Me;
  /** Another tenant that an operator looks at. */
  readonly tenant: string | undefined;
  readonly onLoggedOut: () => void;
}
