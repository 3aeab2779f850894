// The whole way: instances, workers and the store in processes of their own, people in a real browser.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Fixture, openFixture, until } from '../promises/fixture.ts';
import { MORTAL_LEASE_MS, sharedStores, startWorker } from '../promises/surfaces/task.ts';
import { type Child, startProgram } from '../tasks/child.ts';
import { openStore } from '../tasks/open-store.ts';
import { bundlePage, type ChatPage, launchBrowser, openPage } from './chat-page.ts';

let browser: Browser;
let folder: string;
let script: string;
beforeAll(async () => {
  browser = await launchBrowser();
  folder = mkdtempSync(join(tmpdir(), 'whoa-web-'));
  script = join(folder, 'page.js');
  writeFileSync(script, await bundlePage());
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

/** What a stop came over, by how the page was opened. */
const VIA: Readonly<Record<string, string>> = {
  '': 'chat',
  '&socket': 'websocket',
  '&ag-ui': 'ag-ui',
  '&tasks': 'http',
};

interface FleetOptions {
  readonly kind: 'agent' | 'own';
  /** How the page is opened. */
  readonly query?: string;
}

interface Fleet extends AsyncDisposable {
  readonly servers: readonly Child[];
  readonly workers: readonly Child[];
  readonly context: BrowserContext;
  open(server: number): Promise<ChatPage>;
}

async function startFleet(where: string, fixture: Fixture, { kind, query = '' }: FleetOptions): Promise<Fleet> {
  const lease = `${MORTAL_LEASE_MS}`;
  const program = join(import.meta.dirname, 'programs/chat-server.ts');
  const servers = [1, 2].map(() => startProgram(program, [where, fixture.provider.url, script, kind, lease]));
  const workers =
    kind === 'agent' ? [1, 2, 3].map(() => startWorker(where, fixture, { leaseMs: MORTAL_LEASE_MS })) : [];
  const heard = servers.map((server) => server.hear<{ type: string; url: string }>(({ type }) => type === 'listening'));
  const urls = (await Promise.all(heard)).map(({ url }) => url);
  await Promise.all(workers.map((worker) => worker.hear<{ type: string }>(({ type }) => type === 'serving')));
  const context = await browser.newContext();
  return {
    servers,
    workers,
    context,
    open: async (server) => openPage(await context.newPage(), `${urls[server]}/?id=chat${query}`),
    async [Symbol.asyncDispose]() {
      await context.close();
      for (const child of [...servers, ...workers]) if (child.process.connected) child.process.send('stop');
      for (const child of [...servers, ...workers]) await child.ended;
    },
  };
}

describe.each(sharedStores(['Redis', 'Postgres']))('$name', (location) => {
  test.each([
    { kind: 'agent' },
    { kind: 'own' },
    { kind: 'agent', query: '&socket' },
    { kind: 'own', query: '&socket' },
    { kind: 'agent', query: '&ag-ui' },
    { kind: 'own', query: '&ag-ui' },
    { kind: 'agent', query: '&tasks' },
  ] as const)(
    'reloaded, then stopped from another tab at another instance while a command runs (%o)',
    async (options) => {
      const { kind, query = '' }: FleetOptions = options;
      await using fixture = await openFixture(({ said, results }) =>
        said.includes('go') && results === 0
          ? {
              parts: [
                { text: 'I work. ' },
                { call: 'bash', id: 'b', input: { command: `echo begun; ${fixture.tree}` } },
              ],
            }
          : undefined,
      );
      const where = await location.open();
      await using store = openStore(where);
      await using fleet = await startFleet(where, fixture, options);
      const first = await fleet.open(0);
      await first.send('go');
      await first.shows('I work. ');
      await until(() => fixture.processes().length > 0);
      await first.page.reload();
      await first.shows('I work. ');
      const second = await fleet.open(1);
      await second.shows('I work. ');
      await second.page.click('button');
      await first.status('ready');
      await second.status('ready');
      await until(async () => (await first.finishes()).length > 0);
      expect(await first.finishes()).toMatchObject([{ isAbort: true, isError: false }]);
      const [task] = (await store.list({ tenant: 'ada', conversation: 'chat' })).tasks;
      expect(task).toMatchObject({
        status: 'cancelled',
        outcome: { reason: { kind: 'user', by: 'ada', via: VIA[query] } },
      });
      // What only a tool of ours can promise: also the processes that left its group are gone.
      if (kind === 'agent') expect(fixture.processes()).toEqual([]);
      expect([await first.replies(), await second.replies()]).toEqual([['I work. '], ['I work. ']]);
      await first.send('next');
      await first.shows('All done.');
      expect(fixture.provider.requests.map(({ refusal }) => refusal).filter(Boolean)).toEqual([]);
      expect(JSON.stringify(fixture.provider.requests.at(-1)!.body)).toMatch(/Interrupted \(user\)/);
      for (const pid of fixture.processes()) process.kill(pid, 'SIGKILL');
    },
  );

  test.each(['agent', 'own'] as const)(
    'whoever makes the reply is killed in the middle of it: another one does, and readers see it once (%s)',
    async (kind) => {
      let asked = 0;
      await using fixture = await openFixture(() => {
        const isFirst = asked++ === 0;
        return { parts: [{ text: isFirst ? ['Once ', { stall: true }] : ['Once ', 'upon ', 'a time.'] }] };
      });
      const where = await location.open();
      await using store = openStore(where);
      await using fleet = await startFleet(where, fixture, { kind });
      const reader = await fleet.open(1);
      const writer = await fleet.open(0);
      await writer.send('go');
      await writer.shows('Once ');
      await reader.page.reload();
      await reader.shows('Once ');
      const [running] = (await store.list({ tenant: 'ada', conversation: 'chat' })).tasks;
      const children = kind === 'agent' ? fleet.workers : fleet.servers;
      const maker = children.find(({ process }) => running!.worker!.startsWith(`${process.pid}-`))!;
      maker.process.kill('SIGKILL');
      const killedAt = performance.now();
      await reader.shows('Once upon a time.');
      expect(performance.now() - killedAt).toBeLessThan(MORTAL_LEASE_MS + 2_000 + 5_000);
      await reader.status('ready');
      expect(await reader.replies()).toEqual(['Once upon a time.']);
      const [task] = (await store.list({ tenant: 'ada', conversation: 'chat' })).tasks;
      expect(task).toMatchObject({ status: 'success', deaths: 1 });
    },
  );
});
