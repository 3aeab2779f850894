import { type Message, type StopReport, toText } from '@whoa/core';
import type { ConversationView } from '@whoa/server/task-client';
import type { TaskSummary } from '@whoa/tasks';
import { type ReactNode, useEffect } from 'react';
import { toContent } from '../model/reply-events.ts';
import { isLive } from '../model/shown-status.ts';
import type { PageProps } from '../page/page-props.ts';
import { Status, useNow } from '../page/parts.tsx';
import { addresses, Link } from '../page/router.tsx';
import { ReportGroups } from '../report/report-page.tsx';
import { describeStop } from '../report/report-text.ts';
import { CallCard } from '../task/call-card.tsx';
import { Connection } from '../task/task-page.tsx';
import { useTask } from '../task/use-task.ts';

interface MessagesProps extends PageProps {
  readonly record: ConversationView | undefined;
  /** Newest first. */
  readonly tasks: readonly TaskSummary[];
  readonly end: { readonly current: HTMLElement | null };
}

/** The history of a conversation, then the task that works on the last message. */
export function Messages({ record, tasks, end, ...page }: MessagesProps): ReactNode {
  const history = (record?.history ?? []) as unknown as readonly (Message | UiMessage)[];
  const current = tasks.find((task) => task.id === record?.current && isLive(task));
  const waiting = tasks.filter(({ id }) => record?.waiting.includes(id)).toReversed();
  const stopped = tasks.find(({ status }) => status === 'cancelled');
  useScrollTo(end, `${history.length} ${current?.id}`);
  return (
    <>
      {history.map((message, index) => (
        <MessageView key={index} message={message} />
      ))}
      {stopped !== undefined && tasks[0] === stopped && (
        <Stopped key={stopped.id} {...page} id={stopped.id} end={end} />
      )}
      {current !== undefined && <CurrentTask key={current.id} {...page} id={current.id} end={end} />}
      {waiting.map(({ id, title }) => (
        <div key={id}>
          <p className="me say">{title}</p>
          <p className="tag">
            <Status status="init">waits for the task before it</Status>
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

type TaskProps = PageProps & { readonly id: string; readonly end: MessagesProps['end'] };

/** What the stop of the last task did. */
function Stopped({ end, ...props }: TaskProps): ReactNode {
  const { task } = useTask(props).followed;
  const report = task?.outcome?.stopReport as unknown as StopReport | undefined;
  useScrollTo(end, `${report?.settledAfterMs}`);
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
function CurrentTask({ end, ...props }: TaskProps): ReactNode {
  const { client, followed } = useTask(props);
  const now = useNow(500);
  const { run, task } = followed;
  const turns = run.turns;
  const length = turns.reduce((sum, { text, calls }) => sum + text.length + calls.length, 0);
  useScrollTo(end, `${length}`);
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
          {turn.steered.map((words, index) => (
            <p key={index} className="me say wrap">
              {words}
            </p>
          ))}
          {turn.text !== '' && (
            <p className="say wrap">
              {turn.text}
              {turn === turns.at(-1) && turn.endedAt === undefined && <span className="caret" aria-hidden="true" />}
            </p>
          )}
          {turn.calls.map((call) => (
            <CallCard key={call.id} call={call} isOpen isTarget={false} {...{ task, client, me: props.me, now }} />
          ))}
        </div>
      ))}
      <p className="tag">
        <Status status={task.status === 'cancelling' ? 'cancelling' : 'running'} />
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

/** Keeps the end of the messages in view when something was added. */
function useScrollTo(end: MessagesProps['end'], changed: string): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: it scrolls when something was added.
  useEffect(() => {
    end.current?.scrollIntoView({ block: 'end' });
  }, [end, changed]);
}
