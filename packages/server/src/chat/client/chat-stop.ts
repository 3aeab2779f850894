import type { UIMessage } from 'ai';

/** What to stop, and what happens to the turn. */
export interface StopOptions {
  /** The reply (`foreground`, the default), what the chat left running on purpose (`background`), or both (`all`). */
  readonly scope?: 'foreground' | 'background' | 'all' | undefined;
  /**
   * Removes the stopped turn from the history. Refused if it had effects that were not undone. `with-effects`: removes it then
   * too, and keeps a note of these calls. Ask the user first.
   */
  readonly rollback?: boolean | 'with-effects' | undefined;
  /** The reason, for users and the audit. */
  readonly reason?: string | undefined;
}

/** The server's answer to a stop. */
export interface StopReceipt<Message extends UIMessage = UIMessage> {
  /**
   * `accepted`, or why not. `idle`: this page shows no reply that could be stopped. `refused`: the user may not stop it.
   * `given-up`: the server was not reached, and the page no longer tries.
   */
  readonly result: string;
  readonly rolledBack?: boolean;
  /** These calls had effects that were not undone. The turn stays in the history, unless it was removed with them. */
  readonly effectsNotUndone?: readonly string[];
  /** How many background tasks were stopped, if that was asked for. */
  readonly background?: number;
  /** The message whose calls waited for a person or this page, as it is now. */
  readonly message?: Message;
}

/** The same, with the message whose calls wait for a person or for this page. */
export interface ChatStop extends StopOptions {
  readonly waiting?: string | undefined;
}

/** A user's answer to a question about a call. */
export interface ApprovalReply {
  readonly approvalId: string;
  readonly approved: boolean;
  /** The reason of a no, which is passed to the model. */
  readonly why?: string;
  /** Also applies to everything the question lists under `always`. */
  readonly remember?: boolean;
}
