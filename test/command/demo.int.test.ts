// The demo as a person sees it: one command, a page in a real browser, a button that stops.
import { execFileSync } from 'node:child_process';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { buildConsole } from '../console/build-console.ts';
import { until } from '../promises/fixture.ts';
import { findChromium } from '../web/chromium.ts';
import { startCommand } from './process.ts';
import { createHome } from './terminal.ts';

let browser: Browser;
beforeAll(async () => {
  buildConsole();
  browser = await chromium.launch({
    executablePath: findChromium(),
    args: [
      '--no-sandbox',
      '--disable-dev-shm-usage',
      '--disable-gpu',
      '--disable-software-rasterizer',
      '--disable-background-networking',
      '--disable-site-isolation-trials',
    ],
  });
});
afterAll(() => browser.close());

async function startDemo() {
  const home = createHome();
  onTestFinished(() => home[Symbol.dispose]());
  const command = startCommand(home, ['demo']);
  const { url } = (await command.waitFor({ type: 'listening' })) as { url: string };
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  const problems: string[] = [];
  const open = async (address: string): Promise<Page> => {
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    await page.goto(address);
    return page;
  };
  return { command, url, open, problems };
}

async function send(page: Page, words: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(words);
  await page.getByRole('button', { name: 'Send' }).click();
}

const shows = (page: Page, words: RegExp): Promise<void> => page.getByText(words).first().waitFor();

/** How many processes of the demo's command run. */
function running(): number {
  const all = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' });
  return all.split('\n').filter((line) => line.includes('test $n passed')).length;
}

test('Stop stops: the report is shown, no process is left, and the next message works', async () => {
  const { command, url, open, problems } = await startDemo();
  const page = await open(url);
  const stop = page.getByRole('button', { name: 'Stop', exact: true });
  await shows(page, /Now send: Ship release 2\.4/);
  await send(page, 'Ship release 2.4');
  await shows(page, /test 2 passed/);
  expect(running()).toBeGreaterThan(0);
  await stop.click();
  await shows(page, /Stopped after .* Nothing was left behind\./);
  await shows(page, /2 processes ended, none survived/);
  await until(() => running() === 0);
  await page.locator('summary', { hasText: 'bash' }).click();
  await shows(page, /Output so far:\s+test 1 passed\s+test 2 passed/);

  await send(page, 'Ship the next one');
  await page.locator('.call', { hasText: 'bash' }).waitFor();
  // A reload shows the same content as before, and only a stop stops the run.
  await page.reload();
  await page
    .locator('.call', { hasText: 'publish_release' })
    .getByText(/running for/)
    .waitFor();
  await stop.click();
  await shows(page, /Waited for, because it must not be interrupted/);
  // Rejected or missing resources of the page would be reported here.
  expect(problems).toEqual([]);
  command.kill('SIGTERM');
  expect(await command.closed).toEqual([0, null]);
});

test('a stopped call and a message are answered, nothing is published, and Stop stays until the run has ended', async () => {
  const { url, open, problems } = await startDemo();
  const page = await open(url);
  const stop = page.getByRole('button', { name: 'Stop', exact: true });
  await shows(page, /Now send: Ship release 2\.4/);
  await stop.waitFor({ state: 'detached' });
  await send(page, 'Ship release 2.4');
  await shows(page, /test 2 passed/);
  await send(page, 'Be quick');
  await page.getByRole('button', { name: 'Stop this call of bash' }).click();
  await shows(page, /delivered to this run/);
  await stop.waitFor();
  await shows(page, /You said “Be quick” while I worked.*You stopped the tests after \d+ of 24, so I do not publish\./);
  await stop.waitFor({ state: 'detached' });
  expect(await page.getByText('publish_release').count()).toBe(0);
  await shows(page, /It was delivered to a run in progress/);
  expect(await page.locator('.talk > header .st').innerText()).toBe('success');
  expect(problems).toEqual([]);
});

test('the address works once, and no one gets in without it', async () => {
  const { url, open } = await startDemo();
  const page = await open(url);
  await page.getByRole('button', { name: 'Send' }).waitFor();
  expect(page.url()).not.toContain('#');
  const { origin } = new URL(url);
  expect((await fetch(`${origin}/v1/conversations/demo`)).status).toBe(401);
  const policy = (await fetch(url)).headers.get('content-security-policy');
  expect(policy).toContain("default-src 'self'");
  const other = await browser.newContext();
  onTestFinished(() => other.close());
  const stranger = await other.newPage();
  await stranger.goto(url);
  await stranger
    .getByRole('alert')
    .getByText(/unknown, expired or used/)
    .waitFor();
});
