import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { combineAuthenticators, createLogin, type LoginOptions } from './login.ts';
import type { Principal } from './principal.ts';
import { createToken, createTokenAuthenticator } from './tokens.ts';

const ANN: Principal = { tenant: 'acme', name: 'ann', rights: ['read'] };

const page = (cookie = '', url = 'http://localhost/'): Request =>
  new Request(url, { headers: cookie === '' ? {} : { cookie } });

function setUp(options: LoginOptions = {}) {
  const { clock } = createVirtualWorld();
  return { clock, login: createLogin({ clock, ...options }) };
}

const getPair = (cookie: string): string => cookie.split(';')[0]!;

test('a code is exchanged once for a cookie that scripts and other sites cannot use', () => {
  const { login } = setUp();
  const code = login.createCode(ANN);
  const cookie = login.exchangeCode(code, page())!;
  expect(cookie).toMatch(/^whoa=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
  expect(cookie).not.toContain(code);
  expect(login.authenticate(page(`theme=dark; ${getPair(cookie)}`))).toEqual(ANN);
  expect(login.exchangeCode(code, page())).toBeUndefined();
  expect(login.authenticate(page(`whoa=${code}`))).toBeUndefined();
  expect(login.authenticate(page())).toBeUndefined();
});

test('a code that is too old is worth nothing, and neither is a session', async () => {
  const { login, clock } = setUp({ codeTtlMs: 1_000, sessionTtlMs: 5_000 });
  const late = login.createCode(ANN);
  const cookie = login.exchangeCode(login.createCode(ANN), page())!;
  await clock.advance(1_000);
  expect(login.exchangeCode(late, page())).toBeUndefined();
  expect(login.authenticate(page(getPair(cookie)))).toEqual(ANN);
  await clock.advance(4_000);
  expect(login.authenticate(page(getPair(cookie)))).toBeUndefined();
});

test('over HTTPS, or behind a proxy that does, the cookie is secure and of this host alone', () => {
  const https = setUp().login;
  expect(https.exchangeCode(https.createCode(ANN), page('', 'https://app.example'))).toMatch(
    /^__Host-whoa=.*; Secure$/,
  );
  const behind = setUp({ isSecure: true }).login;
  const cookie = behind.exchangeCode(behind.createCode(ANN), page())!;
  expect(cookie).toMatch(/^__Host-whoa=.*; Secure$/);
  expect(behind.authenticate(page(getPair(cookie)))).toEqual(ANN);
  expect(behind.authenticate(page(getPair(cookie).replace('__Host-', '')))).toBeUndefined();
});

test('two pages on one host do not log each other out, because cookies ignore ports', () => {
  const [demo, console] = [setUp().login, setUp().login];
  const first = getPair(demo.exchangeCode(demo.createCode(ANN), page('', 'http://127.0.0.1:4001'))!);
  const second = getPair(console.exchangeCode(console.createCode(ANN), page('', 'http://127.0.0.1:4002'))!);
  expect([first, second]).toMatchObject([expect.stringMatching(/^whoa-4001=/), expect.stringMatching(/^whoa-4002=/)]);
  expect(demo.authenticate(page(`${first}; ${second}`, 'http://127.0.0.1:4001'))).toEqual(ANN);
  expect(console.authenticate(page(`${first}; ${second}`, 'http://127.0.0.1:4002'))).toEqual(ANN);
});

test('a logout ends the session, even for a copied cookie', () => {
  const { login } = setUp();
  const cookie = getPair(login.exchangeCode(login.createCode(ANN), page())!);
  expect(login.logout(page(cookie))).toMatch(/^whoa=; Path=\/; Max-Age=0;/);
  expect(login.authenticate(page(cookie))).toBeUndefined();
});

test('a token is exchanged for a cookie that outlives the server, where tokens are accepted', async () => {
  const { token, sha256 } = createToken();
  const tokens = createTokenAuthenticator([{ ...ANN, sha256 }]);
  const cookie = (await setUp({ tokens }).login.exchangeToken(token, page()))!;
  expect(cookie).toMatch(/^whoa=token\.\S+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
  const another = setUp({ tokens }).login;
  expect(await another.authenticate(page(getPair(cookie)))).toEqual(ANN);
  expect(await setUp().login.authenticate(page(getPair(cookie)))).toBeUndefined();
  expect(await another.authenticate(page('whoa=token.'))).toBeUndefined();
  for (const wrong of ['', 'no', 'a b', 'x; Domain=evil', 'a\r\nb']) {
    expect(await another.exchangeToken(wrong, page())).toBeUndefined();
  }
  expect(await setUp().login.exchangeToken(token, page())).toBeUndefined();
});

test('several authenticators are tried in order', async () => {
  const none = () => undefined;
  expect(await combineAuthenticators(none, () => 'ann')(page())).toBe('ann');
  expect(await combineAuthenticators(none, none)(page())).toBeUndefined();
});
