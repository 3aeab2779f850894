/** What a store tells of. `question.closed`: no one answered it. */
export type FeedKind =
  | 'task.ended'
  | 'question.asked'
  | 'question.answered'
  | 'question.closed'
  | 'conversation.changed'
  | 'pause.started'
  | 'pause.ended';

/** One change. It comes at least once, and has the same id each time; the changes of one task come in their order. */
export interface FeedEvent {
  readonly id: string;
  readonly kind: FeedKind;
  /** Empty for the pause of an agent. */
  readonly tenant: string;
  readonly at: number;
  readonly task?: string;
  readonly conversation?: string;
  readonly agent?: string;
  /** How the task ended. */
  readonly status?: string;
  /** Of a failed task its error's code, of a cancelled one its reason's kind. */
  readonly code?: string;
  readonly question?: string;
}

/** What one holder of a cursor read of one part. */
export interface FeedPage {
  readonly part: number;
  /** Increases with each move: a move counts once, and only for what was read. */
  readonly version: number;
  /** Where the cursor is after these events, if there were no more. */
  readonly upTo: string;
  /** What happened from then on may have been missed: it registered, or was behind for too long. The next move ends this. */
  readonly missedSince?: number;
  /** Each with its place in this part. */
  readonly events: readonly (readonly [place: string, event: FeedEvent])[];
  /** There may be more. */
  readonly isFull: boolean;
}

/** How far a holder has come. Without `at`, it has done the whole page, and there was no more. */
export interface FeedMove extends Pick<FeedPage, 'part' | 'version' | 'upTo'> {
  readonly at?: string;
  /** What is added to the store's totals in the same step. */
  readonly adds?: Readonly<Record<string, number>>;
}

/** Who reads. */
export interface FeedReader {
  readonly consumer: string;
  /** A name that no other reader has: each start needs another. */
  readonly reader: string;
  readonly leaseMs: number;
}

/** `gone`: the consumer has not read for too long, or never registered. */
export type FeedTake =
  | { readonly result: 'gone' }
  | {
      readonly result: 'taken';
      readonly pages: readonly FeedPage[];
      /** How many of these parts it holds now. */
      readonly holds: number;
      /** Until when others hold the parts that this reader could not take. */
      readonly heldUntil?: number;
      readonly now: number;
    };

/** How a consumer is doing. */
export interface FeedAge {
  readonly consumer: string;
  /** When the oldest change that it has not done happened; left out if it has done all. */
  readonly oldestAt?: number;
}

/**
 * The feed of a store: changes are written in the transaction that makes them, if a consumer wants their kind, and read by
 * cursors that the store keeps. Several processes can read for one consumer: each part has one holder at a time.
 */
export interface Feed {
  /** Registers a consumer, which reads what happens from now on. Resolves to whether it is new. */
  register(request: { readonly consumer: string; readonly kinds: readonly FeedKind[] }): Promise<boolean>;
  /** Takes the parts that are free, and reads those that this reader holds. */
  take(reader: FeedReader, options: { readonly limit: number; readonly parts?: readonly number[] }): Promise<FeedTake>;
  /** Moves cursors after the work. Resolves to the parts that are still held: the others must be taken again. */
  move(reader: FeedReader, moves: readonly FeedMove[]): Promise<readonly number[]>;
  /** Gives its parts to other processes. */
  leave(reader: FeedReader): Promise<void>;
  /** Removes what everyone has read. Consumers that are too far behind are put to the present, and told of the gap. */
  purge(): Promise<void>;
  /** Removes the changes of a tenant or a conversation. */
  forget(target: { readonly tenant: string; readonly conversation?: string | undefined }): Promise<void>;
  ages(): Promise<readonly FeedAge[]>;
  totals(): Promise<Readonly<Record<string, number>>>;
}

/** How far back a new consumer looks. */
export const LOOK_BACK_MS: number = 3_600_000;
/** How long changes are kept for a consumer, and a consumer without a process. */
export const FEED_KEPT_MS: number = 7 * 86_400_000;
