import { type ReactNode, StrictMode, useCallback, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { LoggedOutError, type Me, openSession } from './api/session.ts';
import { ApprovalsPage } from './approval/approvals-page.tsx';
import { ConversationsPage } from './conversation/conversations-page.tsx';
import { applyTheme, Frame } from './page/frame.tsx';
import { Login } from './page/login.tsx';
import { Button, NoSuch, StateCard } from './page/parts.tsx';
import { useAddress } from './page/router.tsx';
import { ReportPage } from './report/report-page.tsx';
import './style/tokens.css';
import './style/base.css';
import { TaskPage } from './task/task-page.tsx';
import { TasksPage } from './tasks/tasks-page.tsx';

type Session =
  | { readonly state: 'opening' }
  | { readonly state: 'logged-out'; readonly problem: string }
  | { readonly state: 'unreachable'; readonly problem: string }
  | { readonly state: 'open'; readonly me: Me };

function Console(): ReactNode {
  const [session, setSession] = useState<Session>({ state: 'opening' });
  const open = useCallback(() => {
    openSession().then(
      (me) => setSession({ state: 'open', me }),
      (error: unknown) => {
        const problem = error instanceof TypeError ? 'The server cannot be reached.' : (error as Error).message;
        setSession({ state: error instanceof LoggedOutError ? 'logged-out' : 'unreachable', problem });
      },
    );
  }, []);
  useEffect(open, [open]);
  const onLoggedOut = useCallback(() => setSession({ state: 'logged-out', problem: 'Your session has ended.' }), []);

  if (session.state === 'opening') return null;
  if (session.state === 'logged-out') return <Login onDone={open} problem={session.problem} />;
  if (session.state === 'unreachable') {
    return (
      <main id="main">
        <StateCard
          status="failed"
          title="The console cannot start"
          actions={
            <Button look="ink" onClick={open}>
              Try again
            </Button>
          }
        >
          <p>{session.problem}</p>
        </StateCard>
      </main>
    );
  }
  return <Pages me={session.me} onLoggedOut={onLoggedOut} />;
}

function Pages({ me, onLoggedOut }: { readonly me: Me; readonly onLoggedOut: () => void }): ReactNode {
  const { route, query } = useAddress();
  const tenant = query.get('tenant') ?? undefined;
  const shared = { me, tenant, onLoggedOut };
  return (
    <Frame me={me} page={route.page} tenant={tenant}>
      {route.page === 'tasks' && <TasksPage {...shared} />}
      {route.page === 'task' && <TaskPage key={`${tenant} ${route.id}`} {...shared} id={route.id} />}
      {route.page === 'report' && <ReportPage key={`${tenant} ${route.id}`} {...shared} id={route.id} />}
      {route.page === 'approvals' && <ApprovalsPage key={tenant} {...shared} />}
      {route.page === 'conversations' && (
        <ConversationsPage key={tenant} {...shared} {...(route.id !== undefined && { id: route.id })} />
      )}
      {route.page === 'unknown' && <NoSuch what="page">This address belongs to no page of the console.</NoSuch>}
    </Frame>
  );
}

applyTheme();
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <Console />
  </StrictMode>,
);
