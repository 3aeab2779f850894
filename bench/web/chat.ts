import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { bundlePage, launchBrowser } from '../../test/web/chat-page.ts';
import { percentile, report } from '../measure/measure.ts';
import type { BenchWindow, TurnTimes } from '../pages/chat.ts';
import type { BenchCase } from '../stores/bare.ts';

const SAMPLES = 40;
const WARM_UP = 5;
/** A model's first token, and its pace. */
const FIRST_TOKEN_MS = 400;
const WORD_MS = 20;
/** The turn is stopped when this many words are on the page. */
const STOP_AFTER = 5;
const WORDS = Array.from({ length: 200 }, (_, index) => `w${index} `);
/** How much longer a real stop may take. */
const STOP_COSTS_MS = 150;

/**
 * What a person sees in Chromium, compared, in turns, with the SDK's own `useChat` and a plain route of the same
 * process.
 */
export async function measureChat({ name, config }: BenchCase): Promise<void> {
  await using provider = await startLoopbackProvider({
    script: () => ({
      beforeHeaders: { stall: wait(FIRST_TOKEN_MS) },
      parts: [{ text: WORDS }],
      pace: { intervalMs: WORD_MS },
    }),
  });
  const folder = mkdtempSync(join(tmpdir(), 'whoa-bench-'));
  const file = join(folder, 'page.js');
  const page = join(import.meta.dirname, '../pages/chat.ts');
  writeFileSync(file, await bundlePage({ page, isInstalled: true, mode: 'production' }));
  const args = [JSON.stringify(config), provider.url, file];
  const server = fork(join(import.meta.dirname, '../children/chat.ts'), args, { execArgv: ['--no-warnings'] });
  const [{ port }] = (await once(server, 'message')) as [{ port: number }];
  const browser = await launchBrowser();
  const times: Record<'ours' | 'plain', TurnTimes[]> = { ours: [], plain: [] };
  try {
    const tab = await browser.newPage();
    await tab.goto(`http://127.0.0.1:${port}/`);
    await tab.waitForFunction(() => 'measure' in window);
    for (let i = 0; i < WARM_UP + SAMPLES; i++) {
      for (const which of ['ours', 'plain'] as const) {
        const measured = await tab.evaluate(
          ({ which: one, words }) => (window as unknown as BenchWindow).measure(one, words),
          { which, words: STOP_AFTER },
        );
        if (i >= WARM_UP) times[which].push(measured);
      }
    }
  } finally {
    await browser.close();
    server.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  }
  const of = (which: 'ours' | 'plain', what: keyof TurnTimes, share: number): number =>
    percentile(
      times[which].map((one) => one[what]),
      share,
    );
  const plainStop = of('plain', 'stopMs', 0.5);
  report({
    name: `server chat ${name}, from Stop to a settled page p50, beside plain useChat + ${STOP_COSTS_MS} ms`,
    ours: of('ours', 'stopMs', 0.5),
    bare: plainStop + STOP_COSTS_MS,
    goal: { atMost: 1 },
    more: {
      unit: 'ms',
      samples: SAMPLES,
      plainMs: Number(plainStop.toPrecision(3)),
      p95: Math.round(of('ours', 'stopMs', 0.95)),
    },
  });
  report({
    name: `server chat ${name}, the first word p50, beside a plain route (first token after ${FIRST_TOKEN_MS} ms)`,
    ours: of('ours', 'firstWordMs', 0.5),
    bare: of('plain', 'firstWordMs', 0.5),
    goal: { atMost: 1.15 },
    more: { unit: 'ms', samples: SAMPLES, p95: Math.round(of('ours', 'firstWordMs', 0.95)) },
  });
}
