// Takes the screenshots in docs/images from real programs: the console with a real server, a worker and Postgres, and a terminal.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { createHome } from '../test/command/terminal.ts';
import { type ConsoleRig, startConsole } from '../test/console/console.ts';
import { drawRecording } from './picture/draw.ts';

const IMAGES = join(import.meta.dirname, '../docs/images');
const COLUMNS = 100;
const ROWS = 34;
const LOOKS = [
  { look: 'light', theme: 'light', width: 1_280, height: 900 },
  { look: 'dark', theme: 'dark', width: 1_280, height: 900 },
  { look: 'phone', theme: 'light', width: 390, height: 844 },
] as const;

/** A picture: its name, where it is taken, and when the page is ready. */
interface Shot {
  readonly name: string;
  readonly path: string;
  readonly isReady: (page: Page) => Promise<void>;
  /** Only this part of the page. */
  readonly part?: string;
}

mkdirSync(IMAGES, { recursive: true });
await drawTerminal();
{
  await using rig = await startConsole();
  for (const shot of await arrange(rig)) await take(rig, shot);
  if (rig.problems.length > 0) throw new Error(`the pages complained: ${rig.problems.join('; ')}`);
}

/** Starts tasks of every kind, and brings each to the state in which it is shown. */
async function arrange(rig: ConsoleRig): Promise<readonly Shot[]> {
  const until = async (id: string, isReached: (task: Awaited<ReturnType<typeof rig.client.get>>) => boolean) => {
    const following = rig.client.follow(id);
    while (!isReached(await rig.client.get(id))) if ((await following.next()).done) break;
    await following.return?.();
  };
  const stopped = await rig.start('coder', 'Fix the flaky retry test in packages/queue', { conversation: 'queue-118' });
  await until(stopped, (task) => task?.activity?.calls === 7);
  await wait(4_000);
  await rig.client.cancel(stopped, { mode: 'now', undo: true, reason: 'wrong branch' });
  await until(stopped, (task) => task?.status === 'cancelled');
  await rig.start('failing', 'Read the tariff tables from the PDF');
  await rig.start('host', 'Book a room for six on Tuesday at 3 pm, with a screen.', {
    conversation: 'room-204',
  });
  await wait(600);
  await rig.start('host', 'Make it 4 pm instead.', { conversation: 'room-204', policy: 'replace' });
  await rig.start('editor', 'Remove the old deploy scripts');
  await rig.start('editor', 'Change the billing address for two accounts');
  const running = await rig.start('coder', 'Move the config loader to the new schema');
  await rig.start('talker', 'Where is my parcel? It was due on Tuesday');
  await rig.start('talker', 'Summarise the incident notes of this week');
  await until(running, (task) => task?.waiting === 1);
  await rig.start('booker', 'And book the car park', { conversation: 'room-204', policy: 'queue' });
  return [
    // First, while its last message is being answered.
    {
      name: 'chat',
      path: 'conversations/room-204',
      isReady: (page) => page.getByText('calendar_book').first().waitFor(),
    },
    { name: 'list', path: '', isReady: (page) => page.getByText('And book the car park').waitFor() },
    {
      name: 'approval',
      path: 'approvals',
      isReady: (page) => page.getByRole('button', { name: 'Yes' }).first().waitFor(),
    },
    { name: 'task', path: `tasks/${stopped}`, isReady: (page) => page.getByText('Turn 2', { exact: true }).waitFor() },
    {
      name: 'timeline',
      path: `tasks/${stopped}`,
      part: 'section[aria-label="Timeline"]',
      isReady: (page) => page.getByText('Turn 2', { exact: true }).waitFor(),
    },
    { name: 'report', path: `tasks/${stopped}/report`, isReady: (page) => page.getByText('As text').waitFor() },
  ];
}

async function take(rig: ConsoleRig, { name, path, part, isReady }: Shot): Promise<void> {
  for (const { look, theme, width, height } of LOOKS) {
    const page = await rig.open(path, { theme, width, height });
    await isReady(page);
    // Whatever is measured after the first drawing has been.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    const file = { path: join(IMAGES, `${name}-${look}.png`) };
    if (part === undefined) await page.screenshot(file);
    else await page.locator(part).screenshot(file);
    console.log(`${name}-${look}`);
    await page.context().close();
  }
}

/** A run in a real terminal, with a question about a change of a file. */
async function drawTerminal(): Promise<void> {
  using home = createHome({
    'src/retry.ts': 'export function jitter(base: number): number {\n  return Math.random() * base * 0.2;\n}\n',
    'script.json': JSON.stringify([
      ['I will look where the delay is computed.', { call: 'grep', input: { pattern: 'jitter', path: 'src' } }],
      [
        'The test is flaky because of Math.random. I let it hand in its own.',
        {
          call: 'edit',
          input: {
            path: 'src/retry.ts',
            edits: [{ oldText: 'Math.random() * base', newText: 'random() * base' }],
          },
        },
      ],
      ['Now the tests.', { call: 'bash', input: { command: 'printf "\\033[32mok\\033[0m 61 tests passed\\n"' } }],
      ['Done: the delay takes a random source, and all tests pass.'],
    ]),
  });
  const terminal = home.openTerminal({ columns: COLUMNS, rows: ROWS });
  terminal.type('whoa run --model scripted:script.json "Fix the flaky retry test"');
  terminal.press('Enter');
  await terminal.waitFor(/edit wants to/);
  terminal.type('y');
  terminal.press('Enter');
  await terminal.waitFor(/bash wants to/);
  terminal.type('y');
  terminal.press('Enter');
  await terminal.waitFor(/done in/);
  const screens = [terminal.seeStyled()];
  const svg = drawRecording([{ atMs: 0, screens }], {
    columns: COLUMNS,
    titles: ['whoa run'],
    description: 'A run in a terminal',
  });
  const { launchBrowser } = await import('../test/web/chat-page.ts');
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage({ viewport: { width: 900, height: 760 } });
    await page.setContent(svg);
    await page.locator('svg').screenshot({ path: join(IMAGES, 'terminal.png') });
    console.log('terminal');
  } finally {
    await browser.close();
  }
}
