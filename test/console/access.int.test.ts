// The console can be used by everyone: checked with axe-core in both themes and at the width of a phone.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { forChange } from '../night.ts';
import { type ConsoleRig, startConsole } from './console.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let rig: ConsoleRig;
let stopped: string;
let waiting: string;
beforeAll(async () => {
  rig = await startConsole();
  stopped = await rig.start('coder', 'Fix the flaky retry test in packages/queue');
  waiting = await rig.start('editor', 'Remove the old deploy scripts and change the billing address');
  await rig.start('booker', 'Book a room for six', { conversation: 'room-204' });
  await rig.start('failing', 'Read the tariff tables');
  const isAtWork = async (): Promise<boolean> => (await rig.client.get(stopped))?.activity?.calls === 7;
  await vi.waitUntil(isAtWork, { timeout: 60_000 });
  await rig.client.cancel(stopped, { mode: 'kill', reason: 'wrong branch' });
  const isStopped = async (): Promise<boolean> => (await rig.client.get(stopped))?.status === 'cancelled';
  await vi.waitUntil(isStopped, { timeout: 60_000 });
}, 180_000);
afterAll(async () => {
  await rig?.[Symbol.asyncDispose]();
});
afterEach(() => rig.closePages());

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
}

/** The content security policy refuses scripts that are added to the page; the browser itself may run one. */
const addAxe = (page: Page): Promise<unknown> => page.evaluate(AXE);

interface Axe {
  run(options: object): Promise<{ violations: readonly Violation[] }>;
}

async function findings(page: Page): Promise<readonly string[]> {
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: Axe }).axe.run({ resultTypes: ['violations'] }),
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`),
    );
}

const pages: readonly [name: string, path: () => string, isThere: (page: Page) => Promise<void>][] = [
  ['list', () => '', (page) => page.getByRole('table').waitFor()],
  ['task', () => `tasks/${stopped}`, (page) => page.getByText('Turn 2', { exact: true }).waitFor()],
  ['report', () => `tasks/${stopped}/report`, (page) => page.getByRole('heading', { name: /^Stopped/ }).waitFor()],
  ['approval', () => `tasks/${waiting}`, (page) => page.getByRole('button', { name: 'Yes' }).waitFor()],
  ['approvals', () => 'approvals', (page) => page.getByRole('button', { name: 'Yes' }).waitFor()],
  ['conversation', () => 'conversations/room-204', (page) => page.getByText('Oak is booked').first().waitFor()],
  ['empty', () => '?q=nothing-has-these-words', (page) => page.getByText('Nothing matches').waitFor()],
];

/** For every change: both themes and both widths. */
const LOOKS = forChange(
  (['light', 'dark'] as const).flatMap((theme) => [1_280, 390].map((width) => ({ theme, width }))),
  ({ theme, width }) => (theme === 'light') === width > 1_000,
);

/** Waits until the page is drawn as its theme and width want it. */
const drawn = (page: Page): Promise<void> =>
  page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))));

for (const [name, path, isThere] of pages) {
  test(`no serious finding on the page '${name}', light and dark, wide and narrow`, async () => {
    const page = await rig.open(path());
    await isThere(page);
    await addAxe(page);
    for (const { theme, width } of LOOKS) {
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize({ width, height: 900 });
      await drawn(page);
      await isThere(page);
      const shown = `${theme}, ${width} wide`;
      expect.soft(await findings(page), shown).toEqual([]);
      const overflow = await page.evaluate(() => {
        // A card hides overflowing content, so buttons are checked, too.
        const edges = [...document.querySelectorAll('button')].map((button) => button.getBoundingClientRect().right);
        return Math.max(document.documentElement.scrollWidth, ...edges) - innerWidth;
      });
      expect.soft(overflow, `wider than its window: ${shown}`).toBeLessThanOrEqual(0);
    }
  });
}

test('everything can be reached with the keyboard, Stop first of all', async () => {
  const page = await rig.open(`tasks/${waiting}`);
  await page.getByRole('button', { name: 'Yes' }).waitFor();
  const reached: string[] = [];
  for (let press = 0; press < 60; press++) {
    await page.keyboard.press('Tab');
    reached.push(await page.evaluate(() => (document.activeElement as HTMLElement | null)?.innerText?.trim() ?? ''));
  }
  expect(reached).toContain('Skip to the content');
  expect(reached).toContain('Yes');
  expect(reached).toContain('Stop');
  await page.getByRole('button', { name: 'Stop', exact: true }).focus();
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await rig.client.get(waiting))?.status).toBe('cancelled');
});
