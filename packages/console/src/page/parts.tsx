import { type ComponentProps, type ReactNode, startTransition, useEffect, useReducer, useState } from 'react';
import { describeError, isLoggedOut } from '../api/session.ts';
import { type ShownStatus, STATUS_LABELS } from '../model/shown-status.ts';
import { addresses, Link } from './router.tsx';

interface StatusProps {
  readonly status: ShownStatus;
  /** Instead of the word of the status. */
  readonly children?: ReactNode;
  readonly isPill?: boolean;
}

/** A status: a shape and a word, never a colour alone. */
export function Status({ status, children, isPill = false }: StatusProps): ReactNode {
  return (
    <span className={`st ${status}${isPill ? ' pill' : ''}`}>
      <i aria-hidden="true" />
      {children ?? STATUS_LABELS[status]}
    </span>
  );
}

interface ButtonProps extends Omit<ComponentProps<'button'>, 'type' | 'className'> {
  /** Classes in addition to those of every button. */
  readonly look?: string;
}

/** A button that submits no form. */
export function Button({ look = '', ...props }: ButtonProps): ReactNode {
  return <button type="button" className={`btn ${look}`} {...props} />;
}

interface TextBoxProps extends Omit<ComponentProps<'input'>, 'type' | 'onChange'> {
  readonly onChange: (text: string) => void;
}

/** A field for one line of text. */
export function TextBox({ onChange, ...props }: TextBoxProps): ReactNode {
  return <input type="text" {...props} onChange={(event) => onChange(event.target.value)} />;
}

/** Copies a text. It confirms that for a moment. */
export function CopyButton({ text, children }: { readonly text: string; readonly children: ReactNode }): ReactNode {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), 1_500);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = (): void => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <Button look="quiet tiny" onClick={copy}>
      <span aria-live="polite">{isCopied ? 'Copied' : children}</span>
    </Button>
  );
}

interface StateCardProps {
  readonly status: ShownStatus;
  readonly title: string;
  readonly children: ReactNode;
  readonly actions?: ReactNode;
}

/** A page, or a part of one, that has nothing else to show: what is known, and what to do. */
export function StateCard({ status, title, children, actions }: StateCardProps): ReactNode {
  return (
    <section className="card state" role="status">
      <h2>
        <Status status={status}>
          <b>{title}</b>
        </Status>
      </h2>
      {children}
      {actions !== undefined && <span className="row">{actions}</span>}
    </section>
  );
}

/** The page of an address that leads nowhere. */
export function NoSuch({ what, children }: { readonly what: string; readonly children: ReactNode }): ReactNode {
  const all = (
    <Link className="btn" to={addresses.tasks()}>
      All tasks
    </Link>
  );
  return (
    <main id="main">
      <StateCard status="unknown" title={`No such ${what}`} actions={all}>
        <p>{children}</p>
      </StateCard>
    </main>
  );
}

const WIDTHS = ['sk b', 'sk c', 'sk d'];

/** Rows of the real height, shown when loading takes longer than a moment. */
export function LoadingRows({ rows = 6 }: { readonly rows?: number }): ReactNode {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 200);
    return () => clearTimeout(timer);
  }, []);
  if (!isSlow) return null;
  return (
    <section className="card" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="skr">
          <i className="sk a" />
          <i className={WIDTHS[row % 3]} />
          <i className="sk e" />
        </div>
      ))}
    </section>
  );
}

/** The present moment. It moves every `intervalMs`, and stands still without it. */
export function useNow(intervalMs: number | undefined): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (intervalMs === undefined) return undefined;
    const timer = setInterval(() => setNow(Date.now()), intervalMs);
    return () => clearInterval(timer);
  }, [intervalMs]);
  return now;
}

/** Sets the title of the window. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Whoa`;
  }, [title]);
}

interface Polled<State> {
  readonly state?: State | undefined;
  /** Why it could not be read the last time. */
  readonly problem?: string;
}

interface PollOptions {
  readonly intervalMs: number;
  readonly onLoggedOut: () => void;
}

/** Reads something again and again while the page is in view: immediately with another `read`, or after `refresh`. */
export function usePolled<State>(
  read: () => Promise<State>,
  { intervalMs, onLoggedOut }: PollOptions,
): Polled<State> & { readonly refresh: () => void } {
  const [polled, setPolled] = useState<Polled<State>>({});
  const [request, refresh] = useReducer((count: number) => count + 1, 0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a request is a reason to read.
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const fail = (error: unknown): void => {
      if (isLoggedOut(error)) onLoggedOut();
      else setPolled(({ state }) => ({ state, problem: describeError(error).message }));
    };
    const poll = (): void => {
      clearTimeout(timer);
      // Becoming visible starts it again.
      if (document.hidden || isOver) return;
      read()
        .then(
          (state) => !isOver && setPolled({ state }),
          (error: unknown) => !isOver && fail(error),
        )
        .finally(() => {
          clearTimeout(timer);
          timer = setTimeout(poll, intervalMs);
        })
        .catch(() => {});
    };
    poll();
    document.addEventListener('visibilitychange', poll);
    return () => {
      isOver = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', poll);
    };
  }, [read, intervalMs, onLoggedOut, request]);
  return { ...polled, refresh };
}

/** Something that changes, and says when. */
interface Changing<State> {
  readonly subscribe: (listener: () => void) => () => void;
  readonly state: () => State;
}

/**
 * Follows something that changes. Unlike `useSyncExternalStore`, a change is drawn in small steps, so that a large one does not hold
 * up what a person types or presses.
 */
export function useLive<State>(changing: Changing<State>): State {
  const [known, setKnown] = useState({ changing, state: changing.state() });
  useEffect(() => {
    const read = (): void => startTransition(() => setKnown({ changing, state: changing.state() }));
    const end = changing.subscribe(read);
    read();
    return end;
  }, [changing]);
  return known.changing === changing ? known.state : changing.state();
}
