// Hostile strings through every field of the console: they are shown, and have no other effect.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { openStore } from '../tasks/open-store.ts';
import { shownHostile } from './agents.ts';
import { type ConsoleRig, startConsole } from './console.ts';

/** At least so many of the strings are tried. */
const ENOUGH = isNight ? 500 : 100;
/** The pages of one of so many are opened. */
const STEP = isNight ? 40 : 10;

/** Tasks that are created at the same time. */
const AT_ONCE = 100;

let rig: ConsoleRig;
beforeAll(async () => {
  rig = await startConsole();
}, 120_000);
afterAll(async () => {
  await rig?.[Symbol.asyncDispose]();
});
afterEach(() => rig.closePages());

/** Traces that injected markup would leave: elements that the console never creates, and attributes that run code. */
const findIntruders = (): readonly string[] =>
  [...document.querySelectorAll('#root *')].flatMap((element) => {
    const isForeign = /^(script|iframe|object|embed|img|image|video|audio|link|meta|base|style|foreignobject)$/i.test(
      element.tagName,
    );
    const handlers = [...element.attributes].filter(
      ({ name, value }) => /^on/i.test(name) || (name !== 'value' && /^\s*(javascript|data|vbscript):/i.test(value)),
    );
    return isForeign || handlers.length > 0 ? [element.outerHTML.slice(0, 200)] : [];
  });

test(`${shownHostile.length} strings as words, inputs and details of calls`, async () => {
  const id = await rig.start('hostile', 'Everything at once');
  await expect.poll(async () => (await rig.client.get(id))?.status, { timeout: 120_000 }).toBe('success');
  // A tall window has fewer steps.
  const page = await rig.open(`tasks/${id}`, { height: 3_000 });
  await page
    .getByText('Done.')
    .first()
    .waitFor({ state: 'attached' })
    .catch(() => {});
  const calls = (await rig.client.get(id))!.activity!.calls;
  expect(calls).toBeGreaterThanOrEqual(ENOUGH);
  // Walk down the page and open every call on the way.
  const opened = await page.evaluate(async () => {
    const seen = new Set<string>();
    const pause = (): Promise<void> => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
    for (let still = 0; still < 40; ) {
      const closed = [...document.querySelectorAll<HTMLElement>('article.call')].filter(
        ({ id: callId }) => !seen.has(callId),
      );
      for (const card of closed) {
        seen.add(card.id);
        const button = card.querySelector<HTMLElement>('button[aria-expanded=false]');
        button?.click();
        card.querySelectorAll<HTMLElement>('input[type=radio]').forEach((radio) => {
          radio.click();
        });
      }
      still = closed.length === 0 ? still + 1 : 0;
      scrollBy(0, innerHeight / 2);
      await pause();
    }
    return seen.size;
  });
  expect(opened).toBeGreaterThanOrEqual(ENOUGH);
  expect(await page.evaluate(findIntruders)).toEqual([]);
  expect(rig.problems).toEqual([]);
});

test(`${shownHostile.length} strings as titles, conversations, agents, reasons, questions and tenants`, async () => {
  const usable = shownHostile.filter((text) => text.isWellFormed() && !text.includes('\0') && text.length > 0);
  const short = usable.map((text) => text.slice(0, 150)).filter((text) => text.isWellFormed());
  await using store = openStore(rig.location);
  const create = async (text: string, index: number): Promise<string[]> => {
    const agent = text === '*' ? '_' : text;
    const receipt = await store.create({ tenant: 'acme', agent, input: text, conversation: `${index} ${text}` });
    if (!('task' in receipt)) return [];
    const { id } = receipt.task;
    await store.cancel({ tenant: 'acme', id }, { kind: 'user', message: text, by: text });
    return [id];
  };
  const ids: string[] = [];
  for (let i = 0; i < short.length; i += AT_ONCE)
    ids.push(...(await Promise.all(short.slice(i, i + AT_ONCE).map((text, index) => create(text, i + index)))).flat());
  expect(ids.length).toBeGreaterThanOrEqual(ENOUGH);
  const page = await rig.open('');
  await page.getByRole('table').waitFor();
  await page.evaluate(async () => {
    for (let step = 0; step < 60; step++) {
      scrollBy(0, 500);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  expect(await page.evaluate(findIntruders)).toEqual([]);
  await page.goto(`${rig.url}/console/conversations`);
  await page.locator('.side a').first().waitFor();
  expect(await page.evaluate(findIntruders)).toEqual([]);
  // Like a link in the page: the page is not reloaded each time.
  const go = (path: string): Promise<void> =>
    page.evaluate((to) => {
      history.pushState(null, '', to);
      dispatchEvent(new PopStateEvent('popstate'));
      return new Promise((resolve) => requestAnimationFrame(() => resolve()));
    }, `/console/${path}`);
  for (const id of ids.filter((_, index) => index % STEP === 0)) {
    await go(`tasks/${id}`);
    await page.getByText('Nothing was said or done').waitFor();
    await page.getByRole('button', { name: 'Raw JSON' }).click();
    await page.locator('pre.raw', { hasText: id }).waitFor();
    expect(await page.evaluate(findIntruders)).toEqual([]);
  }
  for (const text of short.filter((_, index) => index % STEP === 0)) {
    await go(`?${new URLSearchParams({ q: text, agent: text, conversation: text })}`);
    await page.locator('h1').waitFor();
    expect(await page.evaluate(findIntruders)).toEqual([]);
  }
  expect(rig.problems).toEqual([]);
});
