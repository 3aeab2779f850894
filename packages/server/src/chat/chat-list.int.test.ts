// Stored chats: they are rendered on the server, listed and removed, with the rights of the user.
import type { UIMessage } from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from '../../../../test/server/app-database.ts';
import { CALL, KINDS, openChat, say } from '../../../../test/server/chat-harness.ts';
import { type BorrowedServer, borrowPostgres } from '../../../../test/servers/borrow.ts';
import type { USER_RIGHTS } from '../http/access/principal.ts';
import { type ChatHandler, createChatHandler } from './chat-handler.ts';

const ask = (
  handler: ChatHandler,
  method: string,
  path: string,
  { user = 'ada', body }: { user?: string; body?: object } = {},
) =>
  handler.fetch(
    new Request(`http://app.test/api/chat${path}`, {
      method,
      headers: { 'x-user': user, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    }),
  );
const talk = async (handler: ChatHandler, id: string, text: string, user?: string) =>
  (await ask(handler, 'POST', '', { body: { id, messages: [say(`u-${id}`, text)] }, ...(user && { user }) })).text();
const HELLO = { parts: [{ text: 'Hello.' }] };
const lookers = (...rights: (typeof USER_RIGHTS)[number][]) => ({ tenant: 'ada', name: 'bob', rights });

test.for(KINDS)('a chat is rendered on the server as its page shows it (%s)', async (kind) => {
  await using site = await openChat(kind, [HELLO], createChatHandler);
  await talk(site.handler, 'a', 'Hi');
  const shown = (await (await ask(site.handler, 'GET', '/a/messages')).json()) as UIMessage[];
  expect(shown).toHaveLength(2);
  expect(await site.handler.messages('a', 'ada')).toEqual(shown);
  expect(await site.handler.messages('a', lookers('read'))).toEqual(shown);
  expect(await site.handler.messages('a', 'eve')).toEqual([]);
  for (const nobody of [null, '', lookers('start', 'cancel')])
    await expect(site.handler.messages('a', nobody)).rejects.toMatchObject({ code: 'forbidden' });
});

test.for(KINDS)('chats are listed in pages, with their first words (%s)', async (kind) => {
  await using site = await openChat(kind, () => HELLO, createChatHandler);
  for (const id of ['a', 'b', 'c']) await talk(site.handler, id, ` What is\n${id}? `);
  await talk(site.handler, 'd', 'Mine', 'eve');
  const first = await site.handler.chats('ada', { limit: 2 });
  expect(first.chats).toMatchObject([{ id: 'a', title: 'What is a?' }, { id: 'b' }]);
  expect(await (await ask(site.handler, 'GET', `?cursor=${first.next}`)).json()).toMatchObject({
    chats: [{ id: 'c' }],
  });
  expect((await site.handler.chats('eve')).chats.map(({ id }) => id)).toEqual(['d']);
  expect((await ask(site.handler, 'GET', '?limit=many')).status).toBe(400);
  await expect(site.handler.chats(lookers('start'))).rejects.toMatchObject({ code: 'forbidden' });
});

test('a chat in the database of the application is listed there', async () => {
  using db = openDatabase();
  await using site = await openChat('own loop', [HELLO], (options) =>
    createChatHandler({ ...options, history: db.history } as typeof options & { agent?: never }),
  );
  await talk(site.handler, 'a', 'Hi');
  expect(await site.handler.messages('a', 'ada')).toHaveLength(2);
  expect((await ask(site.handler, 'GET', '')).status).toBe(404);
  expect((await ask(site.handler, 'DELETE', '/a')).status).toBe(204);
  expect((await site.store.list({ tenant: 'ada', conversation: 'a' })).tasks).toEqual([]);
  expect(await site.handler.messages('a', 'ada')).toHaveLength(2);
});

describe.each(['memory', 'postgres'] as const)('%s', (kind) => {
  let server: BorrowedServer | undefined;
  beforeAll(async () => {
    if (kind !== 'memory') server = await borrowPostgres();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  test('a chat is removed with all that is known of it, and its reply is stopped', async () => {
    await using site = await openChat('own loop', [CALL, HELLO, HELLO], (options) =>
      createChatHandler({ ...options, ...(server && { store: server.url }) }),
    );
    const talking = talk(site.handler, 'a', 'Hi');
    await site.hands.started.promise;
    for (const user of [lookers('start'), lookers('read', 'cancel')])
      await expect(site.handler.remove('a', user)).rejects.toMatchObject({ code: 'forbidden' });
    expect((await ask(site.handler, 'DELETE', '/a', { user: 'eve' })).status).toBe(204);
    expect((await site.handler.chats('ada')).chats).toHaveLength(1);
    expect((await ask(site.handler, 'DELETE', '/a')).status).toBe(204);
    await talking;
    expect(await site.handler.chats('ada')).toEqual({ chats: [] });
    expect(await site.handler.messages('a', 'ada')).toEqual([]);
    expect(await site.handler.remove('a', 'ada')).toBe(true);
    expect(await talk(site.handler, 'a', 'Anew')).toContain('Hello.');
    expect(await site.handler.messages('a', 'ada')).toHaveLength(2);
  });
});
