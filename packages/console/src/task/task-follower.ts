import type { TaskClient } from '@whoa/server/task-client';
import type { FollowEvent, TaskRecord } from '@whoa/tasks';
import { describeError, isLoggedOut } from '../api/session.ts';
import { Listeners } from '../model/listeners.ts';
import { RunModel } from '../model/run-model.ts';
import { isLive } from '../model/shown-status.ts';

/** The longest that applying entries may keep the page busy at a time. */
const SLICE_MS = 8;
/** While much arrives at the same time, the page is drawn at most this often. */
const DRAW_MS = 150;
/** That much is more than this in one slice. */
const MUCH = 40;
/** How often the record is read again while the task is live. */
const RECORD_MS = 2_000;
/** After these the record has changed. */
const CHANGES_RECORD: ReadonlySet<string> = new Set([
  'level-changed',
  'approval-question',
  'approval-answered',
  'run-start',
  'turn-postponed',
]);

/** A task as the page knows it now. `version` changes with every change. */
export interface FollowedTask {
  readonly version: number;
  readonly run: RunModel;
  readonly task?: TaskRecord;
  readonly isMissing: boolean;
  /** The connection is lost; it is opened again by itself. */
  readonly lostSince?: number;
  /** How the last interruption ended: how long it took, and where the journal continued. */
  readonly resumed?: { readonly afterMs: number; readonly position: number };
  readonly problem?: { readonly code: string; readonly message: string };
}

/** Follows one task: its journal as it grows, and its record. */
export class TaskFollower {
  readonly #client: TaskClient;
  readonly #id: string;
  readonly #onLoggedOut: () => void;
  readonly #listeners = new Listeners({ onFirst: () => this.#start(), onLast: () => this.#end() });
  #run = new RunModel();
  #ending: AbortController | undefined;
  #waiting: FollowEvent[] = [];
  #cursor: string | undefined;
  #position = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #recordTimer: ReturnType<typeof setTimeout> | undefined;
  #drawTimer: ReturnType<typeof setTimeout> | undefined;
  #drawnAt = -DRAW_MS;
  /** The record of the task once the journal has ended. */
  #ended: TaskRecord | undefined;
  #state: FollowedTask;

  constructor({ client, id, onLoggedOut }: { client: TaskClient; id: string; onLoggedOut: () => void }) {
    this.#client = client;
    this.#id = id;
    this.#onLoggedOut = onLoggedOut;
    this.#state = { version: 0, run: this.#run, isMissing: false };
  }

  readonly subscribe: Listeners['add'] = this.#listeners.add;

  readonly state = (): FollowedTask => this.#state;

  /** Reads the record now: something was done to the task. */
  refresh(): void {
    clearTimeout(this.#recordTimer);
    this.#recordTimer = setTimeout(this.#scheduleRead, 0);
  }

  #start(): void {
    this.#ending = new AbortController();
    this.refresh();
    this.#follow(this.#ending.signal).catch((error: unknown) => this.#fail(error));
  }

  #end(): void {
    this.#ending?.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#recordTimer);
    clearTimeout(this.#drawTimer);
    this.#timer = undefined;
    this.#drawTimer = undefined;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const onDisconnect = (): void => {
      if (this.#state.lostSince === undefined) this.#change({ lostSince: Date.now() });
    };
    const onOpen = (): void => {
      const { lostSince } = this.#state;
      if (lostSince === undefined) return;
      this.#change({
        lostSince: undefined,
        resumed: { afterMs: Date.now() - lostSince, position: this.#position + 1 },
      });
    };
    try {
      // Entries that wait were received: continue after them.
      const after = this.#cursor;
      let until = performance.now() + SLICE_MS;
      for await (const seen of this.#client.follow(this.#id, { after, signal, onOpen, onDisconnect })) {
        if (signal.aborted) return;
        if (seen.type === 'taken-back') {
          this.#forget();
          await this.#follow(signal);
          return;
        }
        if (seen.type === 'entry') [this.#position, this.#cursor] = [seen.position, seen.cursor];
        this.#waiting.push(seen);
        this.#timer ??= setTimeout(this.#apply, 0);
        // Much may arrive in one piece, and reading it would not let anything else run.
        if (performance.now() > until) {
          await new Promise((resolve) => setTimeout(resolve, 0));
          until = performance.now() + SLICE_MS;
        }
      }
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
    }
  }

  /** What was seen does not hold: it is read again. */
  #forget(): void {
    [this.#run, this.#waiting, this.#cursor] = [new RunModel(), [], undefined];
    this.#change({ run: this.#run });
  }

  /** Applies what has arrived, a little at a time, so that the page stays responsive. */
  readonly #apply = (): void => {
    const until = performance.now() + SLICE_MS;
    let applied = 0;
    let task: TaskRecord | undefined;
    while (applied < this.#waiting.length && performance.now() < until) {
      const seen = this.#waiting[applied++]!;
      if (seen.type === 'end') task = seen.task;
      else if (seen.type === 'entry') {
        this.#run.apply(seen);
        if (CHANGES_RECORD.has(seen.event.type)) this.refresh();
      }
    }
    this.#waiting = this.#waiting.slice(applied);
    this.#timer = this.#waiting.length === 0 ? undefined : setTimeout(this.#apply, 0);
    if (task !== undefined) {
      this.#run.settle(task);
      this.#ended = task;
    }
    this.#draw(applied > MUCH ? Math.max(0, this.#drawnAt + DRAW_MS - performance.now()) : 0);
  };

  #draw(inMs: number): void {
    if (inMs > 0) {
      this.#drawTimer ??= setTimeout(() => this.#draw(0), inMs);
      return;
    }
    clearTimeout(this.#drawTimer);
    this.#drawTimer = undefined;
    this.#drawnAt = performance.now();
    this.#change(this.#ended === undefined ? {} : { task: this.#ended });
  }

  readonly #scheduleRead = (): void => {
    this.#readRecord().catch((error: unknown) => this.#fail(error));
  };

  async #readRecord(): Promise<void> {
    const { signal } = this.#ending ?? {};
    try {
      const task = await this.#client.get(this.#id);
      if (signal?.aborted) return;
      if (task === undefined) {
        this.#change({ isMissing: true });
        return;
      }
      const { task: known } = this.#state;
      // A record of an ended task is final: an answer that was slower must not replace it.
      if (known === undefined || isLive(known)) this.#change({ task, isMissing: false, problem: undefined });
      if (!isLive(task)) return;
    } catch (error) {
      if (signal?.aborted) return;
      if (isLoggedOut(error)) {
        this.#onLoggedOut();
        return;
      }
    }
    clearTimeout(this.#recordTimer);
    this.#recordTimer = setTimeout(this.#scheduleRead, RECORD_MS);
  }

  #fail(error: unknown): void {
    if (isLoggedOut(error)) this.#onLoggedOut();
    else if ((error as { status?: number }).status === 404) this.#change({ isMissing: true });
    else this.#change({ problem: describeError(error) });
  }

  #change(change: { readonly [Field in keyof FollowedTask]?: FollowedTask[Field] | undefined }): void {
    const merged = Object.entries({ ...this.#state, ...change, version: this.#state.version + 1 });
    this.#state = Object.fromEntries(merged.filter(([, value]) => value !== undefined)) as unknown as FollowedTask;
    this.#listeners.notify();
  }
}
