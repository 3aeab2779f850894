// The console as people use it: a real browser, a real server, workers and Postgres.
// dear: each of its dozen journeys opens pages that draw what runs.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { createTaskStore, type TaskRecord, type TaskStoreConfig } from '@whoa/tasks';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type ConsoleRig, startConsole } from './console.ts';

const MAX_PAGE_BYTES = 150_000;

let rig: ConsoleRig;
beforeAll(async () => {
  rig = await startConsole();
}, 120_000);
afterAll(async () => {
  await rig?.[Symbol.asyncDispose]();
});
afterEach(() => rig.closePages());

const lastWords = (page: Page): Promise<string> => page.locator('p.say').last().innerText();

test('a person logs in, starts a task, watches it, stops it and reads the report; another one follows', async () => {
  const context = await rig.browser.newContext();
  const page = await context.newPage();
  await page.goto(`${rig.url}/console/conversations/room-204`);
  await page.getByLabel('Token').fill('wrong-token-wrong-token');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('alert').filter({ hasText: 'This token is unknown' }).waitFor();
  await page.getByLabel('Token').fill(rig.token);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByLabel('Agent').selectOption('talker');
  await page.getByLabel('Message', { exact: true }).fill('Where is my parcel?');
  await page.getByLabel('Message', { exact: true }).press('Enter');
  await page.getByText('Oak is free at 4 pm').waitFor();
  await page.getByRole('link', { name: 'Open the task' }).click();
  await page.getByRole('heading', { name: 'Where is my parcel?' }).waitFor();

  const second = await rig.open(new URL(page.url()).pathname.replace('/console/', ''));
  await second.getByText('Oak is free at 4 pm').waitFor();
  await page.getByLabel('Reason').fill('wrong branch');
  await page.getByRole('radio', { name: /^now/ }).check();
  await page.getByRole('button', { name: 'Stop now' }).click();
  await second.getByRole('link', { name: 'Read the stop report' }).waitFor();
  const kept = await lastWords(second);
  const id = decodeURIComponent(new URL(second.url()).pathname.split('/').at(-1)!);
  const task = await rig.client.get(id);
  expect(task).toMatchObject({ status: 'cancelled', outcome: { reason: { by: 'ann', message: 'wrong branch' } } });
  expect(kept.trim()).toBe(task!.outcome!.answer!.trim());

  await page.getByRole('link', { name: 'Read the stop report' }).click();
  await page.getByRole('heading', { name: /^Stopped after .* Nothing was left behind\.$/ }).waitFor();
  await page.getByText('“wrong branch”').waitFor();
  await page.getByText(/reply closed after \d+ characters/).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/console/tasks/${id}/report`);

  // The token is where scripts cannot read it, and in no address.
  const secrets = await page.evaluate(
    () => document.cookie + JSON.stringify([localStorage, sessionStorage]) + location.href,
  );
  expect(secrets).not.toContain(rig.token);
  await context.close();
});

test('a stop from the list gets harder with each press', async () => {
  const id = await rig.start('booker', 'Book a room for six');
  const page = await rig.open('?agent=booker');
  const row = page.getByRole('row').filter({ hasText: 'Book a room for six' });
  await expect.poll(async () => (await rig.client.get(id))?.activity?.calls).toBe(2);
  await row.getByRole('button', { name: /^Stop/ }).click();
  await row.getByText('stopped').waitFor();
  // The booking must not be interrupted, so the stop waited for it.
  await row.getByRole('link', { name: 'Report' }).click();
  await page.getByText('Waited for, because it must not be interrupted.').waitFor();
});

test('everything is halted from a phone, after a typed confirmation, and resumed', async () => {
  const ids = await Promise.all([1, 2].map((n) => rig.start('talker', `Story of halt ${n}`)));
  const page = await rig.open('', { width: 390, height: 800 });
  for (const id of ids) await expect.poll(async () => (await rig.client.get(id))?.status).toBe('running');
  await page.getByRole('button', { name: 'Halt…' }).click();
  const button = page.getByRole('button', { name: 'Halt everything' });
  expect(await button.isDisabled()).toBe(true);
  await page.getByLabel('Type halt to confirm').fill('Halt ');
  await button.click();
  await page.getByText('Nothing runs.').waitFor();
  for (const id of ids) expect((await rig.client.get(id))?.status).toBe('cancelled');
  await page.getByText('Everything is paused: no task starts.').waitFor();
  const later = await rig.start('talker', 'A story that waits');
  await expect.poll(() => page.getByText('A story that waits').count()).toBe(1);
  expect((await rig.client.get(later))?.status).toBe('init');
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await page.getByRole('button', { name: 'Resume everything' }).click();
  await expect.poll(async () => (await rig.client.get(later))?.status).toBe('running');
  expect((await rig.client.queues()).paused).toEqual([]);
  await rig.client.cancel(later, { mode: 'kill' });
});

test('tasks are stopped by filter, after a dry run', async () => {
  const page = await rig.open('?agent=talker');
  const ids = await Promise.all([1, 2, 3].map((n) => rig.start('talker', `Story ${n}`)));
  const other = await rig.start('editor', 'Not this one');
  await page.getByText('Story 3').waitFor();
  await page.getByRole('button', { name: 'Stop by filter…' }).click();
  await page.getByText('Dry run: 3 tasks would be stopped.').waitFor();
  await page.getByRole('combobox', { name: 'Mode' }).selectOption('now');
  await page.getByRole('button', { name: 'Stop 3 tasks' }).click();
  await page.getByText('3 stops accepted.').waitFor();
  for (const id of ids) await expect.poll(async () => (await rig.client.get(id))?.status).toBe('cancelled');
  expect((await rig.client.get(other))?.status).toBe('running');
  await rig.client.cancel(other, { mode: 'kill' });
});

test('one call is stopped, the run continues, and a message reaches it', async () => {
  const id = await rig.start('coder', 'Fix the flaky retry test');
  const page = await rig.open(`tasks/${id}`);
  // A quick page shows the bash of the first turn, which ends by itself.
  await page.getByText('Turn 2', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Stop this call of bash' }).click();
  await page
    .getByText(/^interrupted after/)
    .first()
    .waitFor();
  expect((await rig.client.get(id))?.status).toBe('running');
  await page.getByLabel('Message to the run').fill('Be quick');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('Sent: it is read at the next boundary.').waitFor();
  await page.getByRole('radio', { name: /^kill/ }).check();
  await page.getByRole('button', { name: 'Kill now' }).click();
  await page.getByRole('link', { name: 'Read the stop report' }).click();
  await page.getByRole('heading', { name: /abandoned and may still take effect/ }).waitFor();
});

test('a call cannot be allowed before its last line was in view', async () => {
  const id = await rig.start('editor', 'Remove the old deploy scripts');
  const page = await rig.open(`tasks/${id}`, { height: 320 });
  const yes = page.getByRole('button', { name: 'Yes' });
  await yes.waitFor();
  expect(await yes.isDisabled()).toBe(true);
  await page.locator('.lines li').last().scrollIntoViewIfNeeded();
  await expect.poll(() => yes.isDisabled()).toBe(false);
  expect(await page.locator('.lines').innerText()).toContain('U+202E');
  await page.getByText(/^Asked .* ago; closes in 6 d$/).waitFor();
  await yes.click();
  await page.getByRole('group', { name: 'edit asks to write' }).waitFor();
  await page.getByLabel('Reason for the model').fill('leave that file alone');
  await page.getByRole('button', { name: 'No' }).click();
  await expect.poll(async () => (await rig.client.get(id))?.status).toBe('success');
  const page2 = await rig.open(`tasks/${id}`);
  await page2.getByText('not approved: no effect').waitFor();
  const approvals = await rig.open('approvals');
  const closed = approvals.getByRole('region', { name: 'Closed questions' }).getByRole('listitem');
  await closed.first().waitFor();
  const [last = '', first = ''] = (await closed.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '));
  expect(last).toMatch(/^Remove the old deploy scripts editor \w+ said no: leave that file alone answered: .* ago$/);
  expect(first).toMatch(
    /^Remove the old deploy scripts editor \w+ said yes answered: the worker acted on it after .* ago$/,
  );
});

test('a user answers an agent’s questions, corrects a wrong answer, and the task continues with each', async () => {
  const id = await rig.start('asker', 'Book a room for the board');
  const page = await rig.open(`tasks/${id}`);
  const answer = async (tool: string, text: string): Promise<void> => {
    const card = page.getByRole('group', { name: new RegExp(`^${tool} asks`) });
    await card.getByLabel('Your answer').fill(text);
    await card.getByRole('button', { name: 'Answer' }).click();
  };
  await answer('ask_name', '42');
  await answer('ask_room', 'Pine');
  const card = page.getByRole('group', { name: /^ask_room asks/ });
  await card
    .getByRole('status')
    .filter({ hasText: /^Not taken: .*Oak/ })
    .waitFor();
  expect(await rig.client.get(id)).toMatchObject({ status: 'running', waiting: 1 });
  await answer('ask_room', 'Elm');
  await answer('read_screen', '{"title":"Board"}');
  await page.getByText('It is booked.').waitFor();
  await expect.poll(async () => (await rig.client.get(id))?.status).toBe('success');
  const { questions } = (await rig.client.get(id))!;
  expect(questions).toMatchObject([
    { kind: 'answer', answer: { value: { answer: '42' }, by: 'ann' }, closed: { why: 'answered' } },
    { kind: 'answer', answer: { value: { answer: 'Elm' } }, closed: { why: 'answered' } },
    { kind: 'client', answer: { value: { answer: { title: 'Board' } } }, closed: { why: 'answered' } },
  ]);
});

test('a picture is drawn, what only claims to be one is not, and the same input starts again', async () => {
  const id = await rig.start('painter', 'Paint it red');
  const page = await rig.open(`tasks/${id}`);
  await page.locator('canvas').first().waitFor();
  const red = (): Promise<readonly number[]> =>
    page.evaluate(() => [...(document.querySelector('canvas')?.getContext('2d')?.getImageData(0, 0, 1, 1).data ?? [])]);
  await expect.poll(red).toEqual([255, 0, 0, 255]);
  await page.getByText('image/svg+xml: it cannot be shown').waitFor();
  await page.getByRole('button', { name: 'Start again' }).click();
  await page.waitForURL((url) => !url.pathname.endsWith(id));
  await page.getByRole('heading', { name: 'Paint it red' }).waitFor();
});

test('a newer message replaces the reply to the one before, which keeps its text', async () => {
  const page = await rig.open('conversations/room-205');
  const send = async (words: string): Promise<void> => {
    await page.getByLabel('Message', { exact: true }).fill(words);
    await page.getByRole('button', { name: 'Send' }).click();
  };
  await page.getByLabel('Agent').selectOption('talker');
  await send('Where is my parcel?');
  await page.getByText('Oak is free at 4 pm').waitFor();
  await page.getByRole('radio', { name: 'Stop and do this instead' }).check();
  await send('Never mind, book a room');
  await page.getByText('Never mind, book a room').first().waitFor();
  await page.getByRole('img', { name: 'interrupted here' }).first().waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('link', { name: 'Stop report' }).waitFor();
});

test('a client waits for a server that restarts: nothing is missing and nothing is shown twice', async () => {
  const id = await rig.start('talker', 'Tell me everything');
  const page = await rig.open(`tasks/${id}`);
  await page.getByText('Oak is free at 4 pm').waitFor();
  await rig.restartServer(() => page.getByText('connection lost, trying again').waitFor());
  await page.getByText('nothing missed, nothing twice').waitFor();
  // It has many events; this limit is only for tests that hang.
  await page.getByText('success', { exact: true }).first().waitFor({ timeout: 120_000 });
  expect((await lastWords(page)).trim()).toBe((await rig.client.get(id))!.outcome!.answer!.trim());
});

test('a page that cannot be shown explains what to do', async () => {
  const page = await rig.open('tasks/t-none');
  await page.getByText('No such task').waitFor();
  await page.goto(`${rig.url}/console/nothing/here`);
  await page.getByText('No such page').waitFor();
  await page.goto(`${rig.url}/console/?q=no-such-words`);
  await page.getByText('Nothing matches').waitFor();
  await page.getByRole('button', { name: 'Remove all filters' }).click();
  await page.getByRole('table').waitFor();
});

test('the page of approvals shows what has waited longest, no matter how many newer tasks run', async () => {
  const id = await rig.start('editor', 'Remove the oldest deploy script');
  await expect.poll(async () => (await rig.client.get(id))?.waiting).toBe(1);
  const { tenant } = (await rig.client.get(id))!;
  await using store = createTaskStore(JSON.parse(rig.location) as TaskStoreConfig);
  for (let i = 0; i < 101; i++) {
    const { task } = (await store.create({ tenant, agent: 'served elsewhere', input: 'Go.' })) as { task: TaskRecord };
    await store.claim(task.id, { session: 's', claim: `c${i}`, worker: 'w', leaseMs: 600_000 });
  }
  const page = await rig.open('approvals');
  await page.getByText('1 task waiting for an answer').waitFor();
  await page.getByRole('link', { name: 'Remove the oldest deploy script' }).waitFor();
  await rig.client.cancel(id);
  await page.getByText('Nobody is waited for').waitFor();
});

test('the page is small, and loads nothing from elsewhere', async () => {
  const folder = join(import.meta.dirname, '../../packages/server/console');
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const bytes = files.reduce(
    (sum, { parentPath, name }) => sum + gzipSync(readFileSync(join(parentPath, name))).length,
    0,
  );
  expect(bytes).toBeLessThan(MAX_PAGE_BYTES);
  const response = await fetch(`${rig.url}/console/`);
  expect(response.headers.get('content-security-policy')).toContain("default-src 'self'");
  expect(await response.text()).not.toMatch(/<script(?![^>]*src=)|<style|https?:/);
});

test('no page reported an error', () => {
  expect(rig.problems).toEqual([]);
});
