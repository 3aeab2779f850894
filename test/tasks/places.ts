import { startPostgres } from '../servers/postgres.ts';
import { startRedis } from '../servers/redis.ts';
import { temporaryFolder } from './child.ts';

/** Somewhere to keep tasks that several processes can reach; `place` is what `openStore` understands. */
interface Place extends AsyncDisposable {
  readonly place: string;
}

export interface PlaceKind {
  readonly name: string;
  /** How many tasks a race is run over within a minute; `npm run long -- race` runs them all. */
  readonly raceTasks: number;
  open(): Promise<Place>;
}

const sqlite: PlaceKind = {
  name: 'SQLite',
  raceTasks: 20_000,
  open() {
    const folder = temporaryFolder();
    return Promise.resolve({
      place: folder.file,
      [Symbol.asyncDispose]: () => Promise.resolve(folder[Symbol.dispose]()),
    });
  },
};

const redis: PlaceKind = {
  name: 'Redis',
  raceTasks: 20_000,
  async open() {
    const server = await startRedis();
    return {
      place: JSON.stringify({ backend: 'redis', url: server.url }),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};

const postgres: PlaceKind = {
  name: 'Postgres',
  raceTasks: 3_000,
  async open() {
    const server = await startPostgres();
    return {
      place: JSON.stringify({ backend: 'postgres', url: server.url }),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};

/** Every kind of place that processes can share. */
export const places: readonly PlaceKind[] = [sqlite, redis, postgres];

/** The kind of that name, or all of them. */
export function placesNamed(name: string | undefined): readonly PlaceKind[] {
  const named = places.filter((kind) => name === undefined || kind.name.toLowerCase() === name.toLowerCase());
  if (named.length > 0) return named;
  throw new TypeError(`'${name}' is none of ${places.map((kind) => kind.name.toLowerCase()).join(', ')}`);
}
