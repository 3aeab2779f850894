import type { TaskStoreConfig } from '@whoa/tasks';

/** The engine without us: what a cancel, a write and a read cost at least. */
export interface Bare extends AsyncDisposable {
  /** Wakes whoever listens under a name. */
  ring(name: string): Promise<void>;
  /** Changes one record and wakes whoever listens, in one step: what a cancel costs at least if it is to be kept. */
  writeAndRing(name: string): Promise<void>;
  /** Calls back after every ring and one read. */
  listen(name: string, onRing: () => void): Promise<void>;
  /** Sends a text to whoever is subscribed to a name, and keeps nothing. */
  publish(name: string, text: string): Promise<void>;
  /** Resolves when it hears what is published. */
  subscribe(name: string, onText: (text: string) => unknown): Promise<void>;
  /** The cheapest durable change of one record. */
  write(key: string): Promise<void>;
}

/** A kind of store to measure, on a server of its own. */
export interface BenchCase extends AsyncDisposable {
  readonly name: string;
  readonly config: TaskStoreConfig;
  /** The bare engine in this process; children make their own from the config. */
  readonly bare: Bare;
  /** Processor time that the server has used so far, in seconds; as exact as the system's clock ticks. */
  cpuSeconds(): Promise<number>;
  /** What clients asked of the server so far: commands on Redis, transactions on Postgres. */
  commands(): Promise<number>;
  /** What the server wrote to its log of changes so far. */
  logBytes(): Promise<number>;
  /** Memory that the server holds for its data. */
  memoryBytes(): Promise<number>;
  /** Has the server do now what it would do later about past changes, at a moment of its own choosing. */
  tidy?(): Promise<void>;
}
