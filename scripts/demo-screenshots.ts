// Stops the demo at each of its moments and takes screenshots before and after, into .cache/demo (or the folder given).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Page } from 'playwright-core';
import { BIN, createHome } from '../test/command/terminal.ts';
import { buildConsole } from '../test/console/build-console.ts';
import { launchBrowser } from '../test/web/chat-page.ts';

const FOLDER = process.argv[2] ?? join(import.meta.dirname, '../.cache/demo');
const LOOKS = [
  { look: 'light', colorScheme: 'light', width: 1_280, height: 900 },
  { look: 'dark', colorScheme: 'dark', width: 1_280, height: 900 },
  { look: 'phone', colorScheme: 'light', width: 390, height: 844 },
] as const;

/** When each Stop is pressed: what the page shows then. */
const SHOTS: readonly (readonly [name: string, shows: RegExp])[] = [
  ['1-first-words', /On it\./],
  ['2-tests', /test 5 passed/],
  ['3-second-words', /All 24 tests passed, so/],
  ['4-publish', /running for [12]/],
  ['5-last-words', /The release is out\. Since you/],
];

mkdirSync(FOLDER, { recursive: true });
buildConsole();
using home = createHome();
const command = spawn(BIN[0]!, [...BIN.slice(1), 'demo', '--json'], { cwd: home.folder.path, env: home.env });
const [line] = (await once(createInterface(command.stdout), 'line')) as [string];
const { url } = JSON.parse(line) as { url: string };
const browser = await launchBrowser();
try {
  const page = await browser.newPage({ reducedMotion: 'reduce' });
  page.setDefaultTimeout(120_000);
  await page.goto(url);
  await page.getByText('Now send: Ship release 2.4').first().waitFor();
  for (const [index, [name, shows]] of SHOTS.entries()) {
    await begin(page, index);
    // Only what runs is drawn in stacks: earlier runs said the same.
    const live = page.locator('.msgs .col > .stack2');
    const shown = name === '4-publish' ? live.locator('.call', { hasText: 'publish_release' }) : live;
    await shown.getByText(shows).first().waitFor();
    await shoot(page, `${name}-before`, [LOOKS[0]]);
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    if (name === '4-publish') {
      await page.getByText('The run is being stopped').waitFor();
      await shoot(page, `${name}-stopping`, LOOKS);
    }
    await page.getByRole('heading', { name: /^Stopped after/ }).waitFor();
    await shoot(page, `${name}-stopped`, LOOKS);
  }
  await begin(page, SHOTS.length);
  const words = page.locator('.msgs');
  await words.getByText('test 2 passed').last().waitFor();
  await page.getByLabel('Message', { exact: true }).fill('Be quick');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('button', { name: 'Stop this call of bash' }).click();
  await words.getByText('so I do not publish').last().waitFor();
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor({ state: 'detached' });
  await shoot(page, '6-stop-call', LOOKS);
  await page.getByRole('link', { name: 'Tasks' }).click();
  await page.getByRole('table').waitFor();
  await shoot(page, '7-list', LOOKS);
} finally {
  await browser.close();
  command.kill();
  await once(command, 'close');
}

/** Sends the message that the demo works on, and waits until it does. */
async function begin(page: Page, index: number): Promise<void> {
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor({ state: 'detached' });
  await page.getByLabel('Message', { exact: true }).fill(`Ship release 2.4${index === 0 ? '' : `, try ${index + 1}`}`);
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor();
}

async function shoot(page: Page, name: string, looks: readonly (typeof LOOKS)[number][]): Promise<void> {
  for (const { look, colorScheme, width, height } of looks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    await page.screenshot({ path: join(FOLDER, `${name}-${look}.png`) });
    console.log(`${name}-${look}`);
  }
  await page.setViewportSize({ width: LOOKS[0].width, height: LOOKS[0].height });
  await page.emulateMedia({ colorScheme: 'light' });
}
