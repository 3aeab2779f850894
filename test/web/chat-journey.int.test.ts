// End to end: instances, workers and the store in separate processes, people in a real browser.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TaskStore } from '@whoa/tasks';
import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { forChange } from '../night.ts';
import { type Fixture, openFixture, until } from '../promises/fixture.ts';
import { MORTAL_LEASE_MS, type OpenSharedStore, sharedStores, startWorker } from '../promises/surfaces/task.ts';
import { measureSlowness } from '../slowness.ts';
import { type Child, startProgram } from '../tasks/child.ts';
import { openStore } from '../tasks/open-store.ts';
import { bundlePage, type ChatPage, launchBrowser, openContext, openPage } from './chat-page.ts';

let browser: Browser;
let context: BrowserContext;
let folder: string;
let script: string;
beforeAll(async () => {
  browser = await launchBrowser();
  context = await openContext(browser);
  folder = mkdtempSync(join(tmpdir(), 'whoa-web-'));
  script = join(folder, 'page.js');
  writeFileSync(script, await bundlePage());
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

/** How a page is opened, and what its stop comes over. */
const WAYS = [
  { kind: 'agent', query: '', via: 'chat' },
  { kind: 'agent', query: '&ag-ui', via: 'ag-ui' },
  { kind: 'agent', query: '&tasks', via: 'http' },
  { kind: 'own', query: '', via: 'chat' },
  { kind: 'own', query: '&ag-ui', via: 'ag-ui' },
] as const;

/** Two instances on one store. An agent has three workers; an own loop runs in the instances. */
interface Fleet extends AsyncDisposable {
  readonly fixture: Fixture;
  readonly store: TaskStore;
  readonly servers: readonly Child[];
  readonly workers: readonly Child[];
  open(server: number, query: string): Promise<ChatPage>;
}

async function startFleet(kind: 'agent' | 'own', location: OpenSharedStore): Promise<Fleet> {
  let stories = 0;
  const fixture: Fixture = await openFixture(({ said, results }) => {
    if (said.includes('story')) return { parts: [{ text: ['Once ', ...(stories++ === 0 ? [STALL] : REST)] }] };
    if (!said.includes('go') || results > 0) return undefined;
    const input = { command: `echo begun; ${fixture.tree}` };
    return { parts: [{ text: 'I work. ' }, { call: 'bash', id: 'b', input }] };
  });
  const where = await location.open();
  const store = openStore(where);
  const program = join(import.meta.dirname, 'programs/chat-server.ts');
  const args = [where, fixture.provider.url, script, kind, `${MORTAL_LEASE_MS}`];
  const servers = [1, 2].map(() => startProgram(program, args));
  const workers =
    kind === 'agent' ? [1, 2, 3].map(() => startWorker(where, fixture, { leaseMs: MORTAL_LEASE_MS })) : [];
  const heard = servers.map((server) => server.hear<{ type: string; url: string }>(({ type }) => type === 'listening'));
  const urls = (await Promise.all(heard)).map(({ url }) => url);
  await Promise.all(workers.map((worker) => worker.hear<{ type: string }>(({ type }) => type === 'serving')));
  return {
    fixture,
    store,
    servers,
    workers,
    open: async (server, query) => openPage(await context.newPage(), `${urls[server]}/?${query}`),
    async [Symbol.asyncDispose]() {
      for (const child of [...servers, ...workers]) if (child.process.connected) child.process.send('stop');
      for (const child of [...servers, ...workers]) await child.ended;
      await store[Symbol.asyncDispose]();
      await fixture[Symbol.asyncDispose]();
    },
  };
}

/** A server of a store and five processes, on a busy machine. */
const START_MS = 180_000;
const STALL = { stall: true } as const;
const REST = ['upon ', 'a time.'];

/** The scenarios of `npm run long -- web` play both kinds on both stores, and some of them an own loop for every change. */
const SCENES = forChange(
  [
    { kind: 'agent', name: 'SQLite' },
    { kind: 'own', name: 'Postgres' },
  ] as const,
  ({ kind }) => kind === 'agent',
);

describe.each(SCENES)('$name, $kind', ({ name, kind }) => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet(kind, sharedStores([name])[0]!);
  }, START_MS);
  afterAll(() => fleet[Symbol.asyncDispose]());
  afterEach(async () => {
    for (const page of context.pages().slice(1)) await page.close();
  });

  test.each(forChange(WAYS, ({ via }) => via === 'chat').filter((way) => way.kind === kind))(
    'reloaded, then stopped from another tab at another instance while a command runs (via $via)',
    async ({ query, via }) => {
      const { fixture, store } = fleet;
      const open = (server: number) => fleet.open(server, `id=${via}${query}`);
      const first = await open(0);
      await first.send('go');
      await first.shows('I work. ');
      await until(() => fixture.processes().length > 0);
      await first.page.reload();
      await first.shows('I work. ');
      const second = await open(1);
      await second.shows('I work. ');
      await second.page.click('button');
      await first.status('ready');
      await second.status('ready');
      await until(async () => (await first.finishes()).length > 0);
      expect(await first.finishes()).toMatchObject([{ isAbort: true, isError: false }]);
      const [task] = (await store.list({ tenant: 'ada', conversation: via })).tasks;
      expect(task).toMatchObject({ status: 'cancelled', outcome: { reason: { kind: 'user', by: 'ada', via } } });
      // What only a tool of ours can promise: also the processes that left its group are gone.
      if (kind === 'agent') expect(fixture.processes()).toEqual([]);
      expect([await first.replies(), await second.replies()]).toEqual([['I work. '], ['I work. ']]);
      await first.send('next');
      await first.shows('All done.');
      expect(fixture.provider.requests.map(({ refusal }) => refusal).filter(Boolean)).toEqual([]);
      expect(JSON.stringify(fixture.provider.requests.at(-1)!.body)).toMatch(/Interrupted \(user\)/);
      for (const pid of fixture.processes()) process.kill(pid, 'SIGKILL');
      await until(() => fixture.processes().length === 0);
    },
  );

  // The last one, because the fleet is smaller afterwards.
  test('if the process that makes a reply is killed midway, another one continues, and readers see it once', async () => {
    const { store, workers, servers } = fleet;
    const reader = await fleet.open(1, 'id=told');
    const writer = await fleet.open(0, 'id=told');
    await writer.send('a story');
    await writer.shows('Once ');
    await reader.page.reload();
    await reader.shows('Once ');
    const [running] = (await store.list({ tenant: 'ada', conversation: 'told' })).tasks;
    const children = kind === 'agent' ? workers : servers;
    const maker = children.find(({ process }) => running!.worker!.startsWith(`${process.pid}-`))!;
    maker.process.kill('SIGKILL');
    const killedAt = performance.now();
    await reader.shows('Once upon a time.');
    expect(performance.now() - killedAt).toBeLessThan(MORTAL_LEASE_MS + 2_000 + 5_000 * measureSlowness());
    await reader.status('ready');
    expect(await reader.replies()).toEqual(['Once upon a time.']);
    const [task] = (await store.list({ tenant: 'ada', conversation: 'told' })).tasks;
    expect(task).toMatchObject({ status: 'success', crashes: 1 });
  });
});
