import type { TaskClient } from '@whoa/server/task-client';
import type { TaskSummary } from '@whoa/tasks';
import { type ReactNode, useEffect, useState } from 'react';
import { describeFate } from '../model/conversation.ts';
import { addresses, Link } from '../page/router.tsx';

interface FateProps {
  /** It ended before it began. */
  readonly task: TaskSummary;
  /** Tasks of its conversation. */
  readonly others: readonly TaskSummary[];
  readonly tenant: string | undefined;
}

/** What happened to a message that got no run, with the task that took it over. */
export function Fate({ task, others, tenant }: FateProps): ReactNode {
  const { words, to, link } = describeFate(task, others) ?? { words: '' };
  return (
    <>
      {words}{' '}
      {to !== undefined && (
        <Link className="link" to={addresses.task(to, tenant)}>
          {link}
        </Link>
      )}
    </>
  );
}

/** The same where the other tasks of its conversation are not known yet. */
export function FateOf({ client, ...props }: Omit<FateProps, 'others'> & { readonly client: TaskClient }): ReactNode {
  const { conversation } = props.task;
  const [others, setOthers] = useState<readonly TaskSummary[]>([]);
  useEffect(() => {
    if (conversation === undefined) return;
    // Without them it only lacks its link.
    client.list({ conversation, brief: true }).then(
      ({ tasks }) => setOthers(tasks),
      () => {},
    );
  }, [client, conversation]);
  return <Fate {...props} others={others} />;
}
