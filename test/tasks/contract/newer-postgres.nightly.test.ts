// The Postgres store on the newer versions that deploy/ and pages name.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findNewerPostgres, NEWER_POSTGRES } from '../../servers/newer-postgres.ts';
import { startPostgres } from '../../servers/postgres.ts';
import { openPostgresKind } from '../../servers/postgres-kind.ts';
import { query } from '../../servers/query.ts';
import { expectContract, expectModel } from './expect-contract.ts';

/** It proves results, and takes a minute on a machine with nothing else to do. */
const LONG_MS = 3_600_000;

describe.each(NEWER_POSTGRES)('on PostgreSQL %s', (version) => {
  const stack = new AsyncDisposableStack();
  let url: string;
  let kind: Awaited<ReturnType<typeof openPostgresKind>>;
  beforeAll(async () => {
    ({ url } = stack.use(await startPostgres({ binaries: await findNewerPostgres(version) })));
    kind = stack.use(await openPostgresKind(url));
  });
  afterAll(() => stack.disposeAsync());

  test('the server is of this version', async () => {
    const rows = await query(url, 'SHOW server_version');
    expect(rows).toEqual([{ server_version: version }]);
  });

  test('the Postgres store keeps the whole contract', { timeout: LONG_MS }, () => expectContract(kind));

  test('the Postgres store agrees with the model in 100 random histories', { timeout: LONG_MS }, () =>
    expectModel(kind, 100),
  );
});
