import { expect, test } from 'vitest';
import { createToken, createTokenAuthenticator } from './tokens.ts';

const show = (authorization: string): Request => new Request('http://localhost', { headers: { authorization } });

test('a token is known by its hash, and by nothing else', () => {
  const [ann, bob] = [createToken(), createToken()];
  const authenticate = createTokenAuthenticator([
    { sha256: ann.sha256, tenant: 'acme', name: 'ann', rights: ['read'] },
    { sha256: bob.sha256.toUpperCase(), tenant: 'acme', name: 'bob', rights: [] },
  ]);
  expect(authenticate(show(`Bearer ${ann.token}`))).toEqual({ tenant: 'acme', name: 'ann', rights: ['read'] });
  expect(authenticate(show(`bearer  ${bob.token}`))).toMatchObject({ name: 'bob' });
  for (const wrong of [`Bearer ${ann.sha256}`, `Bearer ${ann.token}x`, `Basic ${ann.token}`, ann.token, 'Bearer', '']) {
    expect(authenticate(show(wrong)), wrong).toBeUndefined();
  }
  expect(authenticate(new Request(`http://localhost/?token=${ann.token}`))).toBeUndefined();
});

test('an invalid hash is rejected, and not repeated', () => {
  const entry = { sha256: 'whoa_secret', tenant: 'acme', name: 'ann', rights: [] };
  expect(() => createTokenAuthenticator([entry])).toThrow("sha256 of 'ann': expected 64 hex digits");
  expect(() => createTokenAuthenticator([entry])).not.toThrow('whoa_secret');
});
