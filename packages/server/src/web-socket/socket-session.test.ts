import { VirtualClock } from '@whoa/core/testing';
import type { UIMessageChunk } from 'ai';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAccess } from '../access/access.ts';
import type { Identity } from '../access/principal.ts';
import type { Chat } from '../chat/chat.ts';
import { type SocketLike, SocketSession } from './socket-session.ts';

/** The other end of a socket, which reads what was sent when it is told to. */
class FakeSocket implements SocketLike {
  readyState = 1;
  bufferedAmount = 0;
  readonly frames: { type: string; requestId: string; code?: string; chunk?: UIMessageChunk }[] = [];
  closed: { code: number | undefined; reason: string | undefined } | undefined;
  readonly #listeners = new Map<string, (event: { data: unknown }) => void>();

  send(data: string): void {
    this.bufferedAmount += data.length;
    this.frames.push(JSON.parse(data) as (typeof this.frames)[number]);
  }

  close(code?: number, reason?: string): void {
    this.readyState = 3;
    this.closed = { code, reason };
    this.#listeners.get('close')?.({ data: undefined });
  }

  addEventListener(type: string, listener: (event: { data: unknown }) => void): void {
    this.#listeners.set(type, listener);
  }

  receive(frame: unknown): void {
    this.#listeners.get('message')!({ data: typeof frame === 'string' ? frame : JSON.stringify(frame) });
  }

  receiveRaw(data: unknown): void {
    this.#listeners.get('message')!({ data });
  }
}

const KILOBYTES = 'x'.repeat(64 * 1024);

function open(chunks: number = Infinity) {
  const clock = new VirtualClock();
  const socket = new FakeSocket();
  const seen = { pulled: 0, open: 0 };
  const who: { identity: Identity } = { identity: 'ada' };
  const chat = {
    active: (_: unknown, id: string) => Promise.resolve(id === 'none' ? undefined : { tenant: 'ada', id }),
    async *stream(_: unknown, signal: AbortSignal): AsyncGenerator<UIMessageChunk> {
      seen.open++;
      try {
        for (; seen.pulled < chunks && !signal.aborted; seen.pulled++) {
          yield await Promise.resolve({ type: 'text-delta', id: 't', delta: KILOBYTES });
        }
      } finally {
        seen.open--;
      }
    },
  } as unknown as Chat;
  const access = createAccess({
    authenticate: () => who.identity,
    hosts: 'any',
    clock,
    limits: { requestsBurst: 1_000, maxStreams: 40 },
  });
  const errors: unknown[] = [];
  const request = new Request('http://app.test/api/chat');
  const session = new SocketSession(socket, { chat, access, request, clock, onError: (error) => errors.push(error) });
  onTestFinished(async () => {
    session.close(1000, '');
    await clock.advance(1_000);
    await session.ended;
    expect([clock.pending, seen.open, errors]).toEqual([0, 0, []]);
  });
  const types = (requestId: string) =>
    socket.frames.filter((frame) => frame.requestId === requestId).map((f) => f.type);
  return { clock, socket, session, seen, who, types };
}

const resume = (requestId: string, id = 'c') => ({ type: 'resume', requestId, id, headers: {}, body: {} });

describe('a slow reader', () => {
  test('is sent no more than it reads, and goes on where it was', async () => {
    const { clock, socket, seen, types } = open(40);
    socket.receive(resume('r'));
    await clock.advance(1_000);
    expect(socket.bufferedAmount).toBeLessThan(1.2 * 1024 * 1024);
    const before = seen.pulled;
    expect(before).toBeLessThan(20);
    await clock.advance(20_000);
    expect(seen.pulled).toBe(before);
    socket.bufferedAmount = 0;
    await clock.advance(1_000);
    expect(seen.pulled).toBeGreaterThan(before);
    while (seen.pulled < 40) {
      socket.bufferedAmount = 0;
      await clock.advance(1_000);
    }
    expect(types('r')).toEqual(['start', ...Array.from({ length: 40 }, () => 'chunk'), 'end']);
  });

  test('that reads a little now and then is not cut off', async () => {
    const { clock, socket } = open();
    socket.receive(resume('r'));
    for (let i = 0; i < 10; i++) {
      await clock.advance(20_000);
      socket.bufferedAmount -= 10_000;
    }
    expect(socket.closed).toBeUndefined();
  });

  test('that reads nothing at all is cut off, and may come back', async () => {
    const { clock, socket } = open();
    socket.receive(resume('r'));
    await clock.advance(31_000);
    expect(socket.closed).toMatchObject({ code: 1013 });
  });

  test('gets no answers piled up either', async () => {
    const { clock, socket } = open();
    socket.bufferedAmount = 5 * 1024 * 1024;
    socket.receive({ type: 'nonsense', requestId: 'r' });
    await clock.advance(0);
    expect(socket.closed).toMatchObject({ code: 1013 });
    expect(socket.frames).toEqual([]);
  });
});

test('only so many replies are read at once; one that is aborted makes room', async () => {
  const { clock, socket, types } = open();
  socket.bufferedAmount = 2 * 1024 * 1024;
  for (let i = 0; i < 33; i++) socket.receive(resume(`r${i}`));
  await clock.advance(10);
  expect(types('r31')).toEqual(['start']);
  expect(socket.frames.find(({ requestId }) => requestId === 'r32')).toMatchObject({ code: 'too-many-streams' });
  socket.receive({ type: 'abort', requestId: 'r0' });
  await clock.advance(100);
  expect(types('r0')).toEqual(['start']);
  socket.receive(resume('again'));
  await clock.advance(10);
  expect(types('again')).toEqual(['start']);
});

test.each([
  ['a frame that is not text', 1003, (socket: FakeSocket) => socket.receiveRaw(new Uint8Array(3))],
  ['a frame that is too large', 1009, (socket: FakeSocket) => socket.receiveRaw(' '.repeat(4 * 1024 * 1024 + 1))],
  [
    'too many frames at once',
    1008,
    (socket: FakeSocket) => {
      for (let i = 0; i < 300; i++) socket.receive(resume(`r${i}`, 'none'));
    },
  ],
])('%s closes the socket', async (_, code, send) => {
  const { clock, socket } = open();
  send(socket);
  await clock.advance(0);
  expect(socket.closed?.code).toBe(code);
});

test('a user who has been signed out since is told so', async () => {
  const { clock, socket, who } = open();
  who.identity = null;
  socket.receive(resume('r'));
  await clock.advance(0);
  expect(socket.frames).toMatchObject([{ type: 'error', requestId: 'r', code: 'unauthenticated' }]);
});

test('a socket on which nothing happens says now and then that it lives', async () => {
  const { clock, socket } = open();
  await clock.advance(31_000);
  expect(socket.frames.map(({ type }) => type)).toEqual(['ping']);
  socket.bufferedAmount = 0;
  await clock.advance(15_000);
  expect(socket.frames.map(({ type }) => type)).toEqual(['ping', 'ping']);
});

test('part of a reply is not replayed, since it may be cut otherwise the next time', async () => {
  const { clock, socket } = open();
  socket.receive({ ...resume('r'), lastSequence: 3 });
  await clock.advance(0);
  expect(socket.frames).toMatchObject([{ type: 'error', code: 'invalid' }]);
});
