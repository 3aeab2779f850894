import type { useStoppableChat } from '@whoa/server/client';
import type { ShopMessage } from '@/lib/assistant';

/** What the page uses of a stop report. */
interface Report {
  readonly settledAfterMs: number;
  readonly calls: readonly { readonly callId: string; readonly tool: string; readonly state: string }[];
}

const NAMES: Readonly<Record<string, string>> = { find_orders: 'The search', refund: 'The refund' };
/** How calls have ended. What they may have done comes first. */
const ENDS: Readonly<Record<string, string>> = {
  unknown: 'had not ended yet and may have taken effect. Check your orders before you ask again.',
  interrupted: 'was interrupted.',
  failed: 'failed.',
  'not-started': 'had not started, so nothing happened.',
  finished: 'was already decided, so it was finished.',
};

/** What the page uses of the calls of an answer that was replaced, such as a refund that was made. */
interface Replaced {
  readonly tool: string;
  readonly end: string;
}

/** What a message keeps of calls: of those that were stopped, and of those whose answer was given again. */
export function StopReport({ message }: { message: ShopMessage }) {
  const replaced = message.parts.find(({ type }) => type === 'data-replaced-calls') as { data: Replaced[] } | undefined;
  if (replaced !== undefined)
    return replaced.data.map(({ tool, end }) => (
      <aside key={`${tool} ${end}`} className="stopped">
        <strong>Done before this answer</strong>
        <span>
          {NAMES[tool] ?? tool}: {end.replace('finished: ', '')}
        </span>
      </aside>
    ));
  const report = message.parts.find(({ type }) => type === 'data-stop-report') as { data: Report } | undefined;
  if (report === undefined) return null;
  const { calls, settledAfterMs } = report.data;
  const shown = Object.keys(ENDS).flatMap((state) => calls.filter((call) => call.state === state));
  return (
    <aside className="stopped">
      <strong>Stopped after {(settledAfterMs / 1_000).toFixed(1)} s</strong>
      {shown.map(({ callId, tool, state }) => (
        <span key={callId}>
          {NAMES[tool] ?? tool} {ENDS[state]}
        </span>
      ))}
    </aside>
  );
}

/** Whether a call waits for the customer. */
export function isAsking(message: ShopMessage | undefined): boolean {
  return message?.parts.some((part) => 'state' in part && part.state === 'approval-requested') ?? false;
}

/** What the server does not know yet, and how the connection is. */
export function Connection({ chat }: { chat: ReturnType<typeof useStoppableChat<ShopMessage>> }) {
  const { pending, isSending, isStopping, isReconnecting, retryNow, giveUp } = chat;
  const isLoggedOut = pending.some(({ state }) => state === 'unauthenticated');
  const isWaiting = pending.some(({ state }) => state === 'waiting');
  if (!(isSending || isStopping || isReconnecting)) return null;
  const forget = () => {
    for (const { id } of pending) giveUp(id);
  };
  return (
    <div className="note" role="status">
      <span>
        {isStopping ? 'Stopping…' : isSending && 'Sending…'}
        {(isReconnecting || isWaiting) && ' The shop cannot be reached. We keep trying.'}
        {isLoggedOut && ' You are logged out.'}
      </span>
      {isLoggedOut && (
        <a href="/login" target="_blank" rel="noreferrer">
          Log in
        </a>
      )}
      {(isWaiting || isLoggedOut) && (
        <>
          <button type="button" onClick={retryNow}>
            Try now
          </button>
          <button type="button" onClick={forget}>
            Forget it
          </button>
        </>
      )}
    </div>
  );
}
