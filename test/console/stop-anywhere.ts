// A conversation keeps its Stop while anything runs in it, whatever happens to newer messages: every policy, moment and page.
// A change runs each of them once, the night all together.
import type { Policy } from '@whoa/core';
import type { TaskSummary } from '@whoa/tasks';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type GatedConsole, startGatedConsole } from './gated-console.ts';

/** One page of a conversation from which everything is stopped. */
export interface StopCase {
  readonly policy: Policy;
  readonly moment: (typeof MOMENTS)[number];
  readonly where: (typeof WHERE)[number];
}

let rig: GatedConsole;

/** The choices of the composer. Others can only be made by other clients. */
const CHOICES: Readonly<Partial<Record<Policy, string>>> = {
  steer: 'Tell it now',
  queue: 'After this',
  replace: 'Stop and do this instead',
};
const POLICIES = ['steer', 'queue', 'replace', 'merge', 'reject'] as const satisfies Policy[];
/** When Stop is looked for: the message waits, the run that reads it thinks, and that run is in its next call. */
const MOMENTS = ['before', 'during', 'after'] as const;
const WHERE = ['the same page', 'a reloaded page', 'a second tab'] as const;

const findStop = (page: Page) => page.getByRole('button', { name: 'Stop', exact: true });

async function send(page: Page, words: string): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill(words);
  await page.getByRole('button', { name: 'Send' }).click();
}

/** Starts a run, and waits until it is in its first call. */
async function begin(conversation: string): Promise<Page> {
  const page = await rig.open(`conversations/${conversation}`);
  await page.getByLabel('Agent').waitFor();
  await send(page, `Begin ${conversation}`);
  const { replies, calls } = rig.gates(conversation);
  await replies.open('call');
  await calls.arrival();
  await findStop(page).waitFor();
  return page;
}

/** Notes in the page if it ever has no Stop. */
const watchStop = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const all = (): string[] => [...document.querySelectorAll('footer button')].map(({ textContent }) => textContent);
    new MutationObserver(() => {
      if (!all().includes('Stop')) document.body.dataset['missed'] = 'Stop';
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  });

async function sendSecond(page: Page, conversation: string, policy: Policy): Promise<void> {
  const choice = CHOICES[policy];
  if (choice === undefined) {
    const receipt = await rig.client.create({ agent: 'worker', input: 'Second', conversation, policy });
    expect(receipt.result).toBe(policy === 'reject' ? 'rejected' : 'created');
    return;
  }
  await page.getByRole('radio', { name: choice }).check();
  await send(page, 'Second');
  await expect.poll(async () => (await rig.client.list({ conversation })).tasks.length).toBe(2);
}

/** Continues from the first call until a run waits for the reply to the second message, or is in the call after that. */
async function deliver(conversation: string, policy: Policy, moment: 'during' | 'after'): Promise<void> {
  const { replies, calls } = rig.gates(conversation);
  await calls.open('end');
  if (policy === 'queue' || policy === 'merge') await replies.open('end');
  await replies.arrival();
  if (moment === 'during') return;
  await replies.open('call');
  await calls.arrival();
}

const live = async (conversation: string): Promise<readonly TaskSummary[]> =>
  (await rig.client.list({ conversation })).tasks.filter(({ endedAt }) => endedAt === undefined);

/** Header and side list call the conversation what its current task is. */
async function expectShown(page: Page, conversation: string): Promise<void> {
  const status = async (): Promise<string | undefined> => {
    const { current } = (await rig.client.conversation(conversation))!;
    const task = (await rig.client.get(current!))!;
    return { init: 'queued', running: 'running', cancelling: 'stopping' }[task.status as string];
  };
  const shown = async (): Promise<readonly string[]> => [
    await page.locator('.talk > header .st').innerText(),
    await page.locator('.side [aria-current] .st').innerText(),
  ];
  await expect.poll(async () => (await shown()).join()).toBe(`${await status()},${await status()}`);
}

export const ALL_CASES: readonly StopCase[] = POLICIES.flatMap((policy) =>
  MOMENTS.flatMap((moment) => WHERE.map((where) => ({ policy, moment, where }))),
);

async function stopFrom({ policy, moment, where }: StopCase): Promise<void> {
  const conversation = `${policy}-${moment}-${where.replaceAll(' ', '-')}`;
  const page = await begin(conversation);
  await watchStop(page);
  await sendSecond(page, conversation, policy);
  if (moment !== 'before') await deliver(conversation, policy, moment);
  const second = await rig.open(`conversations/${conversation}`);
  await findStop(second).waitFor();
  expect(await page.evaluate(() => document.body.dataset['missed'])).toBeUndefined();
  if (where === 'a reloaded page') await page.reload();
  for (const one of [page, second]) {
    await findStop(one).waitFor();
    await expectShown(one, conversation);
  }
  await findStop(where === 'a second tab' ? second : page).click();
  await expect.poll(() => live(conversation)).toEqual([]);
  for (const one of [page, second]) {
    await findStop(one).waitFor({ state: 'detached' });
    await one.getByRole('link', { name: 'Stop report' }).waitFor();
  }
}

export function testStops(cases: readonly StopCase[]): void {
  beforeAll(async () => {
    rig = await startGatedConsole();
  }, 120_000);
  afterAll(async () => {
    await rig?.[Symbol.asyncDispose]();
  });
  afterEach(() => rig.closePages());

  test.for(cases)(
    'a message to $policy: $moment its delivery, Stop is on every page, and $where stops everything',
    stopFrom,
  );

  test('no page reported an error', () => {
    expect(rig.problems).toEqual([]);
  });
}
