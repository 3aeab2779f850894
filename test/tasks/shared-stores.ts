import { borrowPostgres } from '../servers/borrow.ts';
import { temporaryFolder } from './child.ts';

/** A place for tasks that several processes can use; `location` is for `openStore`. */
interface SharedStore extends AsyncDisposable {
  readonly location: string;
}

export interface SharedStoreKind {
  readonly name: string;
  /** How many tasks a race has in CI; `npm run long -- race` uses 20,000. */
  readonly raceTasks: number;
  open(): Promise<SharedStore>;
}

const sqlite: SharedStoreKind = {
  name: 'SQLite',
  raceTasks: 3_000,
  open() {
    const folder = temporaryFolder();
    return Promise.resolve({
      location: folder.file,
      [Symbol.asyncDispose]: () => Promise.resolve(folder[Symbol.dispose]()),
    });
  },
};

const postgres: SharedStoreKind = {
  name: 'Postgres',
  raceTasks: 1_000,
  async open() {
    const server = await borrowPostgres();
    return {
      location: JSON.stringify({ backend: 'postgres', url: server.url }),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};

/** Every kind of place that processes can share. */
export const storeKinds: readonly SharedStoreKind[] = [sqlite, postgres];

/** The kind of that name, or all of them. */
export function storeKindsNamed(name: string | undefined): readonly SharedStoreKind[] {
  const named = storeKinds.filter((kind) => name === undefined || kind.name.toLowerCase() === name.toLowerCase());
  if (named.length > 0) return named;
  throw new TypeError(`'${name}' is none of ${storeKinds.map((kind) => kind.name.toLowerCase()).join(', ')}`);
}
