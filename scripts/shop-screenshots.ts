// Takes screenshots of the shop chat in each of its states, into .cache/shop (or the folder given). SHOP_CHAT is a folder with the
// built application in `after`, as examples/apps/shop-chat/README.md says how to build it:
//   SHOP_CHAT=FOLDER node --conditions=@whoa/source scripts/shop-screenshots.ts
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { isReady, logIn, openShop, say, stopButton } from '../test/apps/shop.ts';
import { until } from '../test/promises/fixture.ts';

const FOLDER = process.argv[2] ?? join(import.meta.dirname, '../.cache/shop');
const LOOKS = [
  { look: 'light', colorScheme: 'light', width: 1_000, height: 720 },
  { look: 'dark', colorScheme: 'dark', width: 1_000, height: 720 },
  { look: 'phone', colorScheme: 'light', width: 390, height: 844 },
] as const;

mkdirSync(FOLDER, { recursive: true });
await using shop = await openShop('after', undefined);

const first = await shop.context.newPage();
await first.goto(shop.toAddress('/login'));
await shoot(first, 'login');
await logIn(first, 'ada', 'secret');
await first.waitForSelector('text=Hello ada');

const { page } = await shop.open();
await shoot(page, 'empty');
await say(page, 'Find my lamp');
await page.waitForSelector('text=Searching…');
await shoot(page, 'working');
await page.waitForSelector('text=Done');
await isReady(page);
await say(page, 'Refund order 1');
await page.waitForSelector('text=Refund order 1?');
await shoot(page, 'asked');
await shop.context.setOffline(true);
await page.click('button:text("Yes")');
await page.waitForSelector('text=We keep trying');
await shoot(page, 'offline');
await shop.context.setOffline(false);
await until(() => shop.log().includes('refund 1 started'));
await stopButton(page).click();
await page.waitForSelector('text=Stopping…');
await shoot(page, 'stopping');
await page.waitForSelector('text=Stopped after');
await isReady(page);
await shoot(page, 'stopped');
await say(page, 'Find my lamp');
await page.waitForSelector('text=Searching… >> nth=-1');
await stopButton(page).click();
await page.waitForSelector('text=The search was interrupted.');
await say(page, 'Refund order 2');
await page.waitForSelector('text=Refund order 2?');
await stopButton(page).click();
await page.waitForSelector('text=Not started');
await shoot(page, 'stopped-asked');
await first.goto(shop.toAddress('/'));
await shoot(first, 'chats');

async function shoot(shown: Page, name: string): Promise<void> {
  for (const { look, colorScheme, width, height } of LOOKS) {
    await shown.emulateMedia({ colorScheme });
    await shown.setViewportSize({ width, height });
    await shown.evaluate(() => {
      scrollTo(0, document.body.scrollHeight);
      return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    });
    await shown.screenshot({ path: join(FOLDER, `${name}-${look}.png`) });
  }
  console.log(name);
}
