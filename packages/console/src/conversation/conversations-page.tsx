import type { TaskClient } from '@whoa/server/task-client';
import type { TaskSummary } from '@whoa/tasks';
import { type ReactNode, useCallback, useMemo, useState } from 'react';
import { clientFor, describeError } from '../api/session.ts';
import { findLead } from '../model/conversation.ts';
import { formatDuration } from '../model/format.ts';
import { shownStatus } from '../model/shown-status.ts';
import type { PageProps } from '../page/page-props.ts';
import { Button, LoadingRows, StateCard, Status, useNow, usePolled, useTitle } from '../page/parts.tsx';
import { addresses, Link, navigate } from '../page/router.tsx';
import { Composer } from './composer.tsx';
import { Messages } from './messages.tsx';
import { useFollowEnd } from './use-follow-end.ts';

const POLL_MS = 2_000;
const MAX_TASKS = 100;
const MAX_MESSAGES = 200;

/** The conversations of a tenant, and one of them. */
export function ConversationsPage({ me, tenant, onLoggedOut, id }: PageProps & { readonly id?: string }): ReactNode {
  useTitle(id ?? 'Conversations');
  const client = useMemo(() => clientFor(me, tenant), [me, tenant]);
  const read = useCallback(() => readTalks(client), [client]);
  const { state, refresh } = usePolled(read, { intervalMs: POLL_MS, onLoggedOut });
  const talks = state ?? [];
  const isLoaded = state !== undefined;
  const now = useNow(1_000);
  return (
    <main id="main" className="chat">
      <aside className="side" aria-label="Conversations">
        {talks.map(([name, tasks]) => {
          const lead = findLead(tasks)!;
          return (
            <Link key={name} to={addresses.conversation(name, tenant)} isCurrent={name === id}>
              <b>{lead.title ?? name}</b>
              <span className="push sm mute">{formatDuration(now - tasks[0]!.createdAt)}</span>
              <Status status={shownStatus(lead)} />
            </Link>
          );
        })}
        {isLoaded && talks.length === 0 && <p className="pad sm mute">No conversation yet.</p>}
      </aside>
      {id === undefined ? (
        <section className="talk">
          <div className="pad">
            {isLoaded ? <NewConversation hasSome={talks.length > 0} tenant={tenant} /> : <LoadingRows />}
          </div>
        </section>
      ) : (
        <ConversationPanel key={id} {...{ me, tenant, onLoggedOut, id, client }} onChange={refresh} />
      )}
    </main>
  );
}

/** The tasks of each conversation, newest first: of those that have new tasks, and of those in which something runs. */
async function readTalks(client: TaskClient): Promise<readonly (readonly [name: string, readonly TaskSummary[]])[]> {
  const { tasks, next } = await client.list({ limit: MAX_TASKS, brief: true });
  const all = new Map(tasks.map((task) => [task.id, task]));
  for (const status of next === undefined ? [] : (['init', 'running', 'cancelling'] as const)) {
    const live = await client.list({ status, limit: MAX_TASKS, brief: true });
    for (const task of live.tasks) all.set(task.id, task);
  }
  return [...Map.groupBy(all.values(), ({ conversation = '' }) => conversation)].filter(([name]) => name !== '');
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
        A conversation runs one task at a time. While one runs, you choose what a new message does: tell it now, wait
        until it has ended, or stop it and take its place.
      </p>
    </StateCard>
  );
}

interface ConversationPanelProps extends PageProps {
  readonly id: string;
  readonly client: TaskClient;
  readonly onChange: () => void;
}

/** One conversation. What runs in it is what its record says, whatever happened to newer messages. */
function ConversationPanel({ onChange, ...props }: ConversationPanelProps): ReactNode {
  const { me, tenant, onLoggedOut, id, client } = props;
  const read = useCallback(() => readConversation(client, id), [client, id]);
  const { state, refresh: reread } = usePolled(read, { intervalMs: POLL_MS, onLoggedOut });
  const { record, tasks = [] } = state ?? {};
  const [problem, setProblem] = useState('');
  const [box, follow] = useFollowEnd();
  const refresh = useCallback(() => {
    reread();
    onChange();
  }, [reread, onChange]);
  const stop = (): void => {
    client
      .cancelConversation(id, { mode: 'now' })
      .then(
        () => setProblem(''),
        (error: unknown) => setProblem(`The stop was not answered: ${describeError(error).message}. Press it again.`),
      )
      .finally(refresh);
  };
  const current = tasks.find((task) => task.id === record?.current);
  const lead = findLead(tasks, current);
  const isLive = (record?.current ?? record?.waiting[0] ?? record?.debouncing) !== undefined;
  return (
    <section className="talk">
      <header className="row">
        <h2>{lead?.title ?? id}</h2>
        <span className="mute wide last">
          {lead?.agent} <span className="id">{id}</span>
        </span>
        {lead !== undefined && (
          <span className="push">
            <Status status={shownStatus(lead)} isPill />
          </span>
        )}
      </header>
      <div ref={box} className="msgs" tabIndex={0} role="log" aria-label="Messages">
        <div className="col">
          <Messages {...{ me, tenant, onLoggedOut, record, tasks, current, lead }} onChange={refresh} />
        </div>
      </div>
      <Composer
        {...{ me, tenant, id, client, current, isLive, problem }}
        agent={lead?.agent}
        onStop={stop}
        onSent={() => {
          follow();
          refresh();
        }}
      />
    </section>
  );
}

interface Conversation {
  readonly record: Awaited<ReturnType<TaskClient['conversation']>>;
  /** Its newest tasks, and the current one. */
  readonly tasks: readonly TaskSummary[];
}

async function readConversation(client: TaskClient, id: string): Promise<Conversation> {
  const [record, { tasks }] = await Promise.all([
    client.conversation(id, { messages: MAX_MESSAGES }),
    client.list({ conversation: id, limit: MAX_TASKS, brief: true }),
  ]);
  const isMissing = record?.current !== undefined && !tasks.some((task) => task.id === record.current);
  const current = isMissing ? await client.get(record.current!) : undefined;
  return { record, tasks: current === undefined ? tasks : [...tasks, current] };
}
