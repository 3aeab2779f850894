// A page over plain HTTP: browsers give it no `crypto.randomUUID`, no `crypto.subtle` and no locks.
import type { Route } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ALL, HALF, type Lab, openLab } from './browser.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await openLab();
});
afterAll(() => lab[Symbol.asyncDispose]());

test('a page over plain HTTP sends, stops, and keeps its commands over a reload', async () => {
  await using site = lab.open({ isInsecure: true });
  const chat = await site.page();
  const has = await chat.page.evaluate(() => [
    isSecureContext,
    'randomUUID' in crypto,
    'subtle' in crypto,
    'locks' in navigator,
  ]);
  expect(has).toEqual([false, false, false, false]);
  await chat.send(`say half ${site.id}`);
  await chat.shows(HALF);
  await chat.page.click('button');
  await chat.page.waitForSelector('footer');
  await chat.status('ready');
  expect([await site.ends(), await chat.replies()]).toEqual([['cancelled'], [HALF]]);
  const abort = (route: Route): Promise<void> => route.abort('connectionreset');
  await chat.page.route('**/api/chat', abort);
  const lost = chat.page.waitForEvent('requestfailed');
  await chat.send(`say all ${site.id}`);
  await lost;
  await chat.page.reload();
  await chat.page.waitForFunction(() => document.querySelectorAll('p.user').length === 2);
  await chat.page.unroute('**/api/chat', abort);
  await chat.shows(ALL);
  await chat.status('ready');
  expect(await chat.evaluate((page) => page.errors)).toEqual([]);
  expect(await site.ends()).toEqual(['cancelled', 'success']);
});
