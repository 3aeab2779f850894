import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type ChatState, watchStates } from './chat-watch.ts';

const page = Object.assign(new EventTarget(), { hidden: false });

/** Somebody looks at the page, or no longer. */
function look(isLooking: boolean): void {
  page.hidden = !isLooking;
  page.dispatchEvent(new Event('visibilitychange'));
}

beforeEach(() => {
  vi.useFakeTimers();
  page.hidden = false;
  Object.assign(globalThis, { document: page });
});
afterEach(() => {
  vi.useRealTimers();
  Reflect.deleteProperty(globalThis, 'document');
});

let count = 0;

/** A page that watches. `answer` opens a stream of states, or says why not. */
function watching(answer: (index: number, signal: AbortSignal) => Response | Error, name = `watch ${++count}`) {
  const leaving = new AbortController();
  const opened: AbortSignal[] = [];
  const states: ChatState[] = [];
  const open = (signal: AbortSignal): Promise<Response> => {
    opened.push(signal);
    const given = answer(opened.length - 1, signal);
    return given instanceof Error ? Promise.reject(given) : Promise.resolve(given);
  };
  const over = watchStates({ name, open, onState: (state) => states.push(state) }, leaving.signal);
  return { opened, states, over, leave: () => leaving.abort() };
}

const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

/** A stream that says this, and stays open until it is left. */
const stream = (versions: readonly string[], signal: AbortSignal): Response =>
  new Response(
    new ReadableStream<Uint8Array>({
      start(controller) {
        const events = versions.map((version) => `data: ${JSON.stringify({ version, questions: [] })}\n\n`);
        controller.enqueue(new TextEncoder().encode(`retry: 1000\n\n: beat\n\n${events.join('')}`));
        signal.addEventListener('abort', () => controller.error(signal.reason));
      },
    }),
  );

test('a page passes on what the server says, and nothing after it has left, twice', async () => {
  const { states, over, leave, opened } = watching((_, signal) => stream(['1', '2'], signal));
  await settle();
  await vi.waitFor(() => expect(states.map(({ version }) => version)).toEqual(['1', '2']));
  for (let times = 0; times < 2; times++) leave();
  expect(opened[0]!.aborted).toBe(true);
  await vi.advanceTimersByTimeAsync(5_000);
  await over;
  expect(states).toHaveLength(2);
});

test('a page that has left before asks nothing', async () => {
  const { opened, over, leave } = watching(() => new TypeError('network error'));
  leave();
  await vi.advanceTimersByTimeAsync(60_000);
  await over;
  expect(opened.length).toBeLessThanOrEqual(1);
});

test('a lost connection is opened again, after at most five seconds', async () => {
  const { opened, leave, over } = watching((index) =>
    index % 2 ? new Response(null, { status: 503 }) : new TypeError('lost'),
  );
  await vi.advanceTimersByTimeAsync(60_000);
  expect(opened.length).toBeGreaterThan(12);
  expect(opened.length).toBeLessThan(30);
  leave();
  await vi.advanceTimersByTimeAsync(5_000);
  await over;
});

test('a server that closes each stream without a word is not asked again and again', async () => {
  const { opened, leave } = watching(() => new Response(''));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(opened.length).toBeLessThan(30);
  leave();
});

test.for([401, 403, 404])('after a %i a page asks once a minute', async (status) => {
  const { opened, leave } = watching(() => new Response(null, { status }));
  await vi.advanceTimersByTimeAsync(50_000);
  expect(opened.length).toBeLessThanOrEqual(2);
  leave();
});

test('a page at which nobody looks does not watch', async () => {
  look(false);
  const { opened, leave } = watching((_, signal) => stream([], signal));
  await vi.advanceTimersByTimeAsync(120_000);
  expect(opened).toHaveLength(0);
  look(true);
  await vi.waitFor(() => expect(opened).toHaveLength(1));
  look(false);
  expect(opened[0]!.aborted).toBe(true);
  leave();
});

test('of two tabs one watches, and the other when that has left', async () => {
  const name = `watch ${++count}`;
  const first = watching((_, signal) => stream([], signal), name);
  await vi.waitFor(() => expect(first.opened).toHaveLength(1));
  const second = watching((_, signal) => stream([], signal), name);
  await settle();
  expect(second.opened).toHaveLength(0);
  first.leave();
  await vi.waitFor(() => expect(second.opened).toHaveLength(1));
  second.leave();
});
