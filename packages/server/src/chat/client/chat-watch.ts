import { pause } from './pause.ts';
import { readChunks } from './read-chunks.ts';

/** What the server says about a chat. */
export interface ChatState {
  /** Opaque. Another one: something has changed that a page shows. */
  readonly version: string;
  /** The message of the reply in progress. */
  readonly reply?: string;
  /** What that reply waits for: approvals by their ids, results of tools by their calls. */
  readonly questions: readonly string[];
}

interface WatchOptions {
  /** Only one tab of a browser with this name reads. */
  readonly name: string;
  readonly open: (signal: AbortSignal) => Promise<Response>;
  readonly onState: (state: ChatState) => void;
}

const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 5_000;
/** After a refusal. */
const REFUSED_MS = 60_000;

/** Outside of browsers somebody always looks. */
const getDocument = () => (globalThis as { document?: EventTarget & { readonly hidden: boolean } }).document;

export const isVisible = (): boolean => getDocument()?.hidden !== true;

export function onVisibility(listener: () => void): () => void {
  const document = getDocument();
  document?.addEventListener('visibilitychange', listener);
  return () => document?.removeEventListener('visibilitychange', listener);
}

/**
 * Reads the states of a chat until the signal fires, while somebody looks at the page. Of the tabs of a browser that can
 * reach each other, one does: a browser opens few connections to a server.
 */
export async function watchStates(options: WatchOptions, signal: AbortSignal): Promise<void> {
  const { locks } = globalThis.navigator ?? {};
  while (!signal.aborted) {
    if (!isVisible()) {
      await pause(REFUSED_MS, signal);
      continue;
    }
    const looking = new AbortController();
    const leave = (): void => (signal.aborted || !isVisible() ? looking.abort() : undefined);
    const forget = onVisibility(leave);
    signal.addEventListener('abort', leave);
    const read = (): Promise<void> => readStates(options, looking.signal);
    await (locks ? locks.request(options.name, { signal: looking.signal }, read) : read()).catch(() => {});
    forget();
    signal.removeEventListener('abort', leave);
  }
}

async function readStates({ open, onState }: WatchOptions, signal: AbortSignal): Promise<void> {
  for (let waitMs = FIRST_WAIT_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, MAX_WAIT_MS)) {
    try {
      const response = await open(signal);
      const isRefused = !response.ok && response.status < 500 && response.status !== 429;
      if (isRefused) await pause(REFUSED_MS, signal);
      for await (const state of response.ok ? (readChunks(response) as unknown as AsyncIterable<ChatState>) : []) {
        waitMs = FIRST_WAIT_MS;
        onState(state);
      }
    } catch {
      // The network failed, or the signal has fired.
    }
    await pause(waitMs, signal);
  }
}
