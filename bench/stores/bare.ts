import type { TaskStoreConfig } from '@whoa/tasks';

/** The bare engine: the minimum cost of a cancel, a write and a read. */
export interface Bare extends AsyncDisposable {
  /** Notifies the listeners of a name. */
  ring(name: string): Promise<void>;
  /** Changes one record and wakes listeners, in one step: the minimum cost of a durable cancel. */
  writeAndRing(name: string): Promise<void>;
  /** Calls back after every notification and one read. */
  listen(name: string, onRing: () => void): Promise<void>;
  /** Sends a text to the subscribers of a name, and stores nothing. */
  publish(name: string, text: string): Promise<void>;
  /** Calls `onText` for published texts. Resolves when subscribed. */
  subscribe(name: string, onText: (text: string) => unknown): Promise<void>;
  /** The cheapest durable change of one record. */
  write(key: string): Promise<void>;
}

/** A kind of store to measure, on a separate server. */
export interface BenchCase extends AsyncDisposable {
  readonly name: string;
  readonly config: TaskStoreConfig;
  /** The bare engine in this process; children make their own from the config. */
  readonly bare: Bare;
  /** Processor time that the server has used so far, in seconds; as exact as the system's clock ticks. */
  cpuSeconds(): Promise<number>;
  /** Requests that clients have sent so far: transactions. */
  commands(): Promise<number>;
  /** The size of the server's log of changes so far. */
  logBytes(): Promise<number>;
  /** Memory that the server holds for its data. */
  memoryBytes(): Promise<number>;
  /** The size of its tasks without their journals and inputs, with indexes. */
  taskBytes(): Promise<number>;
  /** Makes the server do the cleanup for past changes now, which it would otherwise do at some later time. */
  tidy?(): Promise<void>;
}
