import type { ReactNode } from 'react';
import { logOut, type Me } from '../api/session.ts';
import { Button } from './parts.tsx';
import { addresses, Link, type Route } from './router.tsx';

interface FrameProps {
  readonly me: Me;
  readonly page: Route['page'];
  readonly tenant: string | undefined;
  readonly children: ReactNode;
}

/** The frame around every page. */
export function Frame({ me, page, tenant, children }: FrameProps): ReactNode {
  return (
    <>
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <header className="top">
        <Link className="brand" to={addresses.tasks()}>
          Whoa
        </Link>
        <nav aria-label="Main">
          <Link to={addresses.tasks()} isCurrent={page === 'tasks' || page === 'task' || page === 'report'}>
            Tasks
          </Link>
          <Link to={addresses.approvals(tenant)} isCurrent={page === 'approvals'}>
            Approvals
          </Link>
          <Link to={addresses.conversations(tenant)} isCurrent={page === 'conversations'}>
            Conversations
          </Link>
        </nav>
        <span className="live">
          <span>
            you are {me.name}
            {me.rights.includes('operate') && `, the store is ${me.store}`}
          </span>
        </span>
        <Button look="quiet tiny" id="theme" onClick={switchTheme}>
          Theme
        </Button>
        <Button look="quiet tiny" onClick={leave}>
          Log out
        </Button>
      </header>
      {children}
    </>
  );
}

/** A server that cannot be reached keeps the session: the page reports it when it is loaded again. */
function leave(): void {
  logOut().catch(() => location.reload());
}

const THEME = 'whoa-theme';

/** Applies the theme that was chosen before; without one, the page follows the system. */
export function applyTheme(): void {
  const chosen = localStorage.getItem(THEME);
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset['theme'] = chosen;
}

function switchTheme(): void {
  const { dataset } = document.documentElement;
  const isDark = dataset['theme'] ? dataset['theme'] === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  dataset['theme'] = isDark ? 'light' : 'dark';
  localStorage.setItem(THEME, dataset['theme']);
}
