import type { TaskClient } from '@whoa/server/task-client';
import type { TaskSummary } from '@whoa/tasks';
import { type ReactNode, useCallback, useMemo, useRef } from 'react';
import { clientFor } from '../api/session.ts';
import { formatDuration } from '../model/format.ts';
import { isLive, shownStatus } from '../model/shown-status.ts';
import type { PageProps } from '../page/page-props.ts';
import { Button, LoadingRows, StateCard, Status, useLive, useNow, usePolled, useTitle } from '../page/parts.tsx';
import { addresses, Link, navigate } from '../page/router.tsx';
import { TaskList } from '../tasks/task-list.ts';
import { Composer } from './composer.tsx';
import { Messages } from './messages.tsx';

/** The conversations of a tenant, and one of them. */
export function ConversationsPage({ me, tenant, onLoggedOut, id }: PageProps & { readonly id?: string }): ReactNode {
  useTitle(id ?? 'Conversations');
  const client = useMemo(() => clientFor(me, tenant), [me, tenant]);
  const list = useMemo(() => new TaskList({ client, onLoggedOut }), [client, onLoggedOut]);
  const { tasks, isLoaded } = useLive(list);
  const now = useNow(1_000);
  const talks = [
    ...Map.groupBy(
      tasks.filter(({ conversation }) => conversation !== undefined),
      ({ conversation }) => conversation!,
    ),
  ];
  return (
    <main id="main" className="chat">
      <aside className="side" aria-label="Conversations">
        {talks.map(([name, [latest]]) => (
          <Link key={name} to={addresses.conversation(name, tenant)} isCurrent={name === id}>
            <b>{latest!.title ?? name}</b>
            <span className="push sm mute">{formatDuration(now - latest!.createdAt)}</span>
            <Status status={shownStatus(latest!)} />
          </Link>
        ))}
        {isLoaded && talks.length === 0 && <p className="pad sm mute">No conversation yet.</p>}
      </aside>
      {id === undefined ? (
        <section className="talk">
          <div className="pad">
            {isLoaded ? <NewConversation hasSome={talks.length > 0} tenant={tenant} /> : <LoadingRows />}
          </div>
        </section>
      ) : (
        <ConversationPanel
          key={id}
          {...{ me, tenant, onLoggedOut, id, client }}
          tasks={talks.find(([name]) => name === id)?.[1] ?? []}
          onSent={() => list.refresh()}
        />
      )}
    </main>
  );
}

function NewConversation({ hasSome, tenant }: Pick<PageProps, 'tenant'> & { readonly hasSome: boolean }): ReactNode {
  const open = (): void => navigate(addresses.conversation(`talk-${crypto.randomUUID().slice(0, 8)}`, tenant));
  return (
    <StateCard
      status="init"
      title={hasSome ? 'Choose a conversation' : 'No conversation yet'}
      actions={
        tenant === undefined && (
          <Button look="ink" onClick={open}>
            New conversation
          </Button>
        )
      }
    >
      <p>
        A conversation runs one task at a time. You choose what a newer message does to it: replace, queue or steer.
      </p>
    </StateCard>
  );
}

const POLL_MS = 2_000;

interface ConversationPanelProps extends PageProps {
  readonly id: string;
  readonly client: TaskClient;
  /** Its tasks that the list knows, newest first. */
  readonly tasks: readonly TaskSummary[];
  readonly onSent: () => void;
}

function ConversationPanel({ me, tenant, onLoggedOut, id, client, tasks, onSent }: ConversationPanelProps): ReactNode {
  const [latest] = tasks;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of its latest task is a reason to read it immediately.
  const read = useCallback(() => client.conversation(id, { messages: 200 }), [client, id, latest?.id, latest?.status]);
  const { state: record } = usePolled(read, { intervalMs: POLL_MS, onLoggedOut });
  const end = useRef<HTMLDivElement>(null);
  const stop = (): void => {
    client.cancelConversation(id, { mode: 'now' }).then(onSent, onSent);
  };
  const isRunning = latest !== undefined && isLive(latest);
  return (
    <section className="talk">
      <header className="row">
        <h2>{latest?.title ?? id}</h2>
        <span className="mute wide last">
          {latest?.agent} <span className="id">{id}</span>
        </span>
        {latest !== undefined && (
          <span className="push">
            <Status status={shownStatus(latest)} isPill />
          </span>
        )}
      </header>
      <div className="msgs" tabIndex={0} role="log" aria-label="Messages">
        <div className="col">
          <Messages {...{ me, tenant, onLoggedOut, record, tasks, end }} />
          <div ref={end} />
        </div>
      </div>
      <Composer {...{ me, tenant, id, client, onSent, isRunning, agent: latest?.agent, onStop: stop }} />
    </section>
  );
}
