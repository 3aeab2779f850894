import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Command, CommandKind } from './command.ts';
import { Outbox, type Settled } from './outbox.ts';
import { RefusedError } from './server-link.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

let count = 0;
const command = (kind: CommandKind): Command => ({ id: `c${++count}`, kind, chatId: 'c', body: {} });

/** An outbox whose requests are answered by hand. */
function open() {
  const requests: (PromiseWithResolvers<unknown> & { readonly kind: CommandKind; readonly at: number })[] = [];
  const settled: Settled[] = [];
  const outbox = new Outbox({
    name: '/api/chat',
    send({ kind }) {
      const request = { ...Promise.withResolvers<unknown>(), kind, at: Date.now() };
      requests.push(request);
      return request.promise;
    },
    onChange: () => {},
    onSettled: (one) => settled.push(one),
  });
  return { outbox, requests, settled, kinds: () => requests.map(({ kind }) => kind) };
}

test('a stop without a response is sent again every second, until one is answered', async () => {
  const { outbox, requests, settled } = open();
  const stopped = outbox.add(command('stop'));
  await vi.advanceTimersByTimeAsync(4_500);
  expect(requests.length).toBeGreaterThanOrEqual(3);
  const gaps = requests.slice(1).map(({ at }, index) => at - requests[index]!.at);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(1_300);
  requests.at(-1)!.resolve('accepted');
  expect(await stopped).toBe('accepted');
  const before = requests.length;
  requests[0]!.reject(new TypeError('network error'));
  requests[1]!.resolve('unchanged');
  await vi.advanceTimersByTimeAsync(60_000);
  expect([requests.length, settled.length, outbox.pending('c')]).toEqual([before, 1, []]);
  expect(vi.getTimerCount()).toBe(0);
});

test('no more than five requests of a stop are open', async () => {
  const { outbox, requests } = open();
  outbox.add(command('stop')).catch(() => {});
  await vi.advanceTimersByTimeAsync(30_000);
  expect(requests).toHaveLength(5);
  requests[0]!.reject(new DOMException('Timeout', 'TimeoutError'));
  await vi.advanceTimersByTimeAsync(0);
  expect(requests).toHaveLength(6);
});

test('one of the open requests of a stop may take long, because a busy server answers late', async () => {
  const requests: (PromiseWithResolvers<unknown> & { readonly isPatient: boolean })[] = [];
  const send = (_: Command, __: boolean, isPatient: boolean): Promise<unknown> => {
    requests.push({ ...Promise.withResolvers<unknown>(), isPatient });
    return requests.at(-1)!.promise;
  };
  const outbox = new Outbox({ name: '/api/chat', send, onChange: () => {}, onSettled: () => {} });
  const stopped = outbox.add(command('stop'));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(requests.map(({ isPatient }) => isPatient)).toEqual([true, false, false, false, false]);
  // The network has lost it: the next one takes its place.
  for (const { reject } of requests.slice(0, 2)) reject(new DOMException('Timeout', 'TimeoutError'));
  await vi.advanceTimersByTimeAsync(3_000);
  expect(requests.slice(5).map(({ isPatient }) => isPatient)).toEqual([true, false]);
  requests[5]!.resolve('accepted');
  expect(await stopped).toBe('accepted');
});

test('a message without a response is sent again when the network is back, and not before', async () => {
  const { outbox, requests } = open();
  const sent = outbox.add(command('send'));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(requests).toHaveLength(1);
  outbox.retryNow();
  await vi.advanceTimersByTimeAsync(0);
  expect(requests).toHaveLength(2);
  requests[1]!.resolve('stream');
  expect(await sent).toBe('stream');
});

test('a request that was sent just now is not repeated', async () => {
  const { outbox, requests } = open();
  outbox.add(command('send')).catch(() => {});
  outbox.retryNow();
  await vi.advanceTimersByTimeAsync(100);
  expect(requests).toHaveLength(1);
});

test.for([408, 425, 429, 500, 503])('status %i: the command is sent again', async (status) => {
  const { outbox, requests } = open();
  const sent = outbox.add(command('send'));
  requests[0]!.reject(new RefusedError(status, 'Later'));
  await vi.advanceTimersByTimeAsync(0);
  expect(outbox.pending('c')).toMatchObject([{ state: 'waiting' }]);
  await vi.advanceTimersByTimeAsync(300);
  requests[1]!.resolve('taken');
  expect(await sent).toBe('taken');
});

test.for([400, 403, 404, 409, 413])('status %i: the command is refused, and not sent again', async (status) => {
  const { outbox, requests, settled } = open();
  const sent = outbox.add(command('send'));
  requests[0]!.reject(new RefusedError(status, 'No'));
  await expect(sent).rejects.toThrow('No');
  await vi.advanceTimersByTimeAsync(60_000);
  expect([requests.length, outbox.pending('c')]).toEqual([1, []]);
  expect(settled).toMatchObject([{ error: { statusCode: status } }]);
});

test('a command waits as long as the server asks for, up to 30 s; a stop does not', async () => {
  for (const [kind, retryAfterMs, minMs, maxMs] of [
    ['send', 5_000, 5_000, 10_000],
    ['send', 3_600_000, 15_000, 30_000],
    ['stop', 5_000, 0, 1_000],
  ] as const) {
    const { outbox, requests } = open();
    outbox.add(command(kind)).catch(() => {});
    requests[0]!.reject(new RefusedError(429, 'Later', retryAfterMs));
    await vi.advanceTimersByTimeAsync(minMs);
    expect(requests).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(maxMs - minMs);
    expect(requests.length).toBeGreaterThan(1);
    outbox.giveUp(outbox.pending('c')[0]!.id);
  }
});

test.for([
  ['no server answers and the page is shown', undefined, false, 1_000],
  ['a balancer has no server', 502, false, 1_000],
  ['the server answers', 500, false, 5_000],
  ['the user has logged out', 401, false, 5_000],
  ['the page is hidden', undefined, true, 15_000],
] as const)('while %s, a message waits no longer before it is sent again', async ([, status, hidden, maxMs]) => {
  Object.assign(globalThis, { document: Object.assign(new EventTarget(), { hidden }) });
  try {
    const { outbox, requests } = open();
    outbox.add(command('send')).catch(() => {});
    const error = () => (status === undefined ? new TypeError('network error') : new RefusedError(status, 'Later'));
    for (let count = 0; count < 12; count++) {
      requests.at(-1)!.reject(error());
      await vi.advanceTimersToNextTimerAsync();
    }
    const longest = Math.max(...requests.slice(1).map(({ at }, index) => at - requests[index]!.at));
    expect(longest).toBeGreaterThanOrEqual(maxMs / 2);
    expect(longest).toBeLessThanOrEqual(maxMs);
    outbox.giveUp(outbox.pending('c')[0]!.id);
  } finally {
    Reflect.deleteProperty(globalThis, 'document');
  }
});

test('a user who asks for it need not wait', async () => {
  const { outbox, requests } = open();
  outbox.add(command('send')).catch(() => {});
  requests[0]!.reject(new RefusedError(429, 'Later', 3_600_000));
  await vi.advanceTimersByTimeAsync(0);
  outbox.retryNow();
  await vi.advanceTimersByTimeAsync(0);
  expect(requests).toHaveLength(2);
});

test('a command that is given up while it is sent stays forgotten, however the server answers', async () => {
  for (const end of ['resolve', 'reject'] as const) {
    const { outbox, requests, settled } = open();
    const sent = outbox.add(command('send'));
    outbox.giveUp(outbox.pending('c')[0]!.id);
    await expect(sent).rejects.toThrow('given up');
    requests[0]![end](end === 'resolve' ? 'taken' : new TypeError('network error'));
    await vi.advanceTimersByTimeAsync(60_000);
    expect([requests.length, settled.length, outbox.pending('c')]).toEqual([1, 1, []]);
  }
});

test('stops overtake what waits, and the others keep their order', async () => {
  const { outbox, requests, kinds } = open();
  for (const kind of ['send', 'answer', 'stop'] as const) outbox.add(command(kind)).catch(() => {});
  expect(kinds()).toEqual(['send', 'stop']);
  requests[0]!.reject(new TypeError('network error'));
  await vi.advanceTimersByTimeAsync(1_000);
  requests[1]!.resolve('accepted');
  await vi.advanceTimersByTimeAsync(0);
  expect(kinds().at(-1)).toBe('send');
  requests.at(-1)!.resolve('taken');
  await vi.advanceTimersByTimeAsync(0);
  expect(kinds().at(-1)).toBe('answer');
});

test('only the first request of a stop, and one more when the page is closed, outlive the page', async () => {
  const window = new EventTarget();
  Object.assign(globalThis, { window });
  try {
    const sent: [CommandKind, boolean][] = [];
    const send = ({ kind }: Command, keepalive: boolean): Promise<never> => {
      sent.push([kind, keepalive]);
      return Promise.reject(new TypeError('network error'));
    };
    const outbox = new Outbox({ name: '/api/chat', send, onChange: () => {}, onSettled: () => {} });
    for (const kind of ['send', 'stop'] as const) outbox.add(command(kind)).catch(() => {});
    await vi.advanceTimersByTimeAsync(300);
    expect(sent).toEqual([
      ['send', false],
      ['stop', true],
      ['stop', false],
    ]);
    window.dispatchEvent(new Event('pagehide'));
    expect(sent.slice(3)).toEqual([['stop', true]]);
    for (const { id } of outbox.pending('c')) outbox.giveUp(id);
  } finally {
    Reflect.deleteProperty(globalThis, 'window');
  }
});
