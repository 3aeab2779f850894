import { type Message, type StopReport, toText } from '@whoa/core';
import type { ConversationView } from '@whoa/server/task-client';
import type { TaskSummary } from '@whoa/tasks';
import { type ReactNode, useEffect } from 'react';
import { toContent } from '../model/reply-events.ts';
import { isLive, shownStatus } from '../model/shown-status.ts';
import type { PageProps } from '../page/page-props.ts';
import { Status, useNow } from '../page/parts.tsx';
import { addresses, Link } from '../page/router.tsx';
import { ReportGroups } from '../report/report-page.tsx';
import { describeStop } from '../report/report-text.ts';
import { CallCard } from '../task/call-card.tsx';
import { Fate } from '../task/fate.tsx';
import { Turn } from '../task/run-transcript.tsx';
import { Connection } from '../task/task-page.tsx';
import { useTask } from '../task/use-task.ts';

interface MessagesProps extends PageProps {
  readonly record: ConversationView | undefined;
  /** Newest first. */
  readonly tasks: readonly TaskSummary[];
  readonly current: TaskSummary | undefined;
  /** The current task, or the one that ran last. */
  readonly lead: TaskSummary | undefined;
  /** Something may be different in the record of the conversation. */
  readonly onChange: () => void;
}

/** The history of a conversation, the task that runs in it, and what happens to the messages that got no run. */
export function Messages({ record, tasks, current, lead, onChange, ...page }: MessagesProps): ReactNode {
  const history = (record?.history ?? []) as unknown as readonly (Message | UiMessage)[];
  const since = lead?.createdAt ?? Infinity;
  const withoutRun = tasks.filter((task) => task.startedAt === undefined && (task.endedAt ?? 0) >= since);
  const waiting = [...(record?.waiting ?? []), record?.debouncing].flatMap(
    (id) => tasks.find((task) => task.id === id) ?? [],
  );
  return (
    <>
      {history.map((message, index) => (
        <MessageView key={index} message={message} />
      ))}
      {lead?.status === 'cancelled' && current === undefined && <Stopped key={lead.id} {...page} id={lead.id} />}
      {current !== undefined && isLive(current) && (
        <CurrentTask key={current.id} {...page} id={current.id} onChange={onChange} />
      )}
      {withoutRun.toReversed().map((task) => (
        <p key={task.id} className="tag">
          <Status status={shownStatus(task)}>
            <b>{task.title}</b>
          </Status>
          <span>
            <Fate task={task} others={tasks} tenant={page.tenant} />
          </span>
        </p>
      ))}
      {waiting.map((task) => (
        <div key={task.id}>
          <p className="me say">{task.title}</p>
          <p className="tag">
            <Status status="init">
              {task.steered === current?.id && current?.status === 'running'
                ? 'on its way: the run reads it before its next step'
                : 'queued: it is next when the run before it has ended'}
            </Status>
          </p>
        </div>
      ))}
    </>
  );
}

/** A message of the AI SDK, as an application's own loop leaves it in the history. */
interface UiMessage {
  readonly role: string;
  readonly parts: readonly { readonly type: string; readonly text?: string; readonly [field: string]: unknown }[];
}

function MessageView({ message }: { readonly message: Message | UiMessage }): ReactNode {
  if ('parts' in message)
    return message.parts.map((part, index) => <Part key={index} {...{ part, role: message.role }} />);
  if (message.role === 'user')
    return <p className={message.isNotice ? 'tag wrap' : 'me say wrap'}>{toText(message.content)}</p>;
  if (message.role === 'tool') {
    return (
      <details>
        <summary className="tag">
          <Status status={message.isError && message.state === 'finished' ? 'failed' : message.state}>
            <b>{message.tool}</b>
          </Status>
        </summary>
        <pre className="out tall wrap">{toText(message.content)}</pre>
      </details>
    );
  }
  const text = message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
  if (text === '' && message.stopReason !== 'aborted') return null;
  return (
    <p className="say wrap">
      {text}
      {message.stopReason === 'aborted' && <span className="cut" role="img" aria-label="interrupted here" />}
    </p>
  );
}

function Part({ part, role }: { readonly part: UiMessage['parts'][number]; readonly role: string }): ReactNode {
  const { type, text, toolName = type.slice('tool-'.length), state, output, errorText } = part;
  if (type === 'text') return <p className={role === 'user' ? 'me say wrap' : 'say wrap'}>{text}</p>;
  if (!type.startsWith('tool-') && type !== 'dynamic-tool') return null;
  const shown = state === 'output-available' ? 'finished' : state === 'output-error' ? 'failed' : 'not-started';
  return (
    <details>
      <summary className="tag">
        <Status status={shown}>
          <b>{String(toolName)}</b>
        </Status>
      </summary>
      <pre className="out tall wrap">{toContent(output ?? errorText)}</pre>
    </details>
  );
}

type TaskProps = PageProps & { readonly id: string };

/** What the stop of the last task did. */
function Stopped(props: TaskProps): ReactNode {
  const { task } = useTask(props).followed;
  const report = task?.outcome?.stopReport as unknown as StopReport | undefined;
  return (
    <section className="stack2" aria-label="Stop report">
      <p className="tag">
        <Status status="cancelled" />
        <Link className="link" to={addresses.report(props.id, props.tenant)}>
          Stop report
        </Link>
      </p>
      {report !== undefined && (
        <>
          <h2>{describeStop(report)}</h2>
          <ReportGroups report={report} to={addresses.task(props.id, props.tenant)} />
        </>
      )}
    </section>
  );
}

/** What the current task was asked, and what it says and does. */
function CurrentTask({ onChange, ...props }: TaskProps & Pick<MessagesProps, 'onChange'>): ReactNode {
  const { client, followed } = useTask(props);
  const now = useNow(500);
  const { run, task } = followed;
  const { turns } = run;
  const steered = turns.reduce((sum, turn) => sum + turn.steered.length, 0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: its status and the messages it read are also in the record.
  useEffect(onChange, [onChange, task?.status, steered]);
  if (task === undefined) return null;
  return (
    <>
      {task.inputs.map((input, index) => (
        <p key={index} className="me say wrap">
          {toReplyText(input)}
        </p>
      ))}
      <Connection followed={followed} />
      {turns.map((turn) => (
        <div key={turn.startedAt} className="stack2">
          <Turn turn={turn} isWriting={turn === turns.at(-1) && turn.endedAt === undefined && isLive(task)} isChat />
          {turn.calls.map((call) => (
            <CallCard key={call.id} call={call} isOpen isTarget={false} {...{ task, client, me: props.me, now }} />
          ))}
        </div>
      ))}
      <p className="tag">
        <Status status={shownStatus(task)} />
        <Link className="link" to={addresses.task(task.id, props.tenant)}>
          Open the task
        </Link>
      </p>
    </>
  );
}

function toReplyText(input: unknown): string {
  if (typeof input === 'string') return input;
  const { content } = (input ?? {}) as { content?: unknown };
  return typeof content === 'string' ? content : JSON.stringify(input);
}
