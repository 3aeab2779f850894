import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { VirtualClock } from '@whoa/core/testing';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { CALL, say, stage } from '../../../../test/server/chat-stage.ts';
import { createChatHandler } from '../chat/chat-handler.ts';
import { serveWebSockets } from './node-upgrade.ts';

const PING_MS = 15_000;

test('a peer that answers no ping is cut off, its reply goes on, and one that answers stays', async () => {
  await using fixture = await stage('agent', [CALL, { parts: [{ text: 'Done.' }] }], createChatHandler);
  const clock = new VirtualClock();
  const server = createServer();
  const sockets = serveWebSockets(server, fixture.handler, { clock });
  onTestFinished(() => {
    sockets[Symbol.dispose]();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/api/chat`;
  const headers = { 'x-user': 'ada' };
  const [alive, dead] = [new WebSocket(url, { headers }), new WebSocket(url, { headers, autoPong: false })];
  const closed = once(dead, 'close');
  await Promise.all([once(alive, 'open'), once(dead, 'open')]);
  const answerTo = (frame: { requestId: string }): Promise<string> =>
    new Promise((resolve) => {
      alive.on('message', (data: Buffer) => data.includes(frame.requestId) && resolve(data.toString()));
      alive.send(JSON.stringify({ ...frame, type: 'resume', id: 'none' }));
    });
  dead.send(JSON.stringify({ type: 'send', requestId: 'r', id: 'c', messages: [say('u', 'Go')], headers: {} }));
  await fixture.hands.started.promise;
  for (let pings = 0; pings < 2; pings++) {
    const asked = once(alive, 'ping');
    await clock.advance(PING_MS);
    await asked;
    // What comes after its pong has been answered, so the pong has come.
    expect(await answerTo({ requestId: `after-${pings}` })).toContain('no-active');
  }
  expect((await closed)[0]).toBe(1006);
  const text = new Promise<string>((resolve) => {
    let all = '';
    alive.on('message', (data: Buffer) => {
      all += data.toString();
      if (all.includes('"end"')) resolve(all);
    });
  });
  alive.send(JSON.stringify({ type: 'resume', requestId: 'r', id: 'c' }));
  fixture.hands.release.resolve('done');
  expect(await text).toMatch(/Let me see\. .*Done\..*"finish"/s);
  alive.terminate();
});
