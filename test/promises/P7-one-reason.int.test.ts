// P7 One reason: the first reason is reported everywhere, completely and unchanged: receipt, outcome, events, store,
// journal, report, terminal. Third parties, the model and MCP servers, get only its kind.
import type { CancelReason } from '@whoa/core';
import { checkHistory } from '@whoa/core/testing';
import { describe, expect, test } from 'vitest';
import { openTestServer } from '../tools/mcp-server.ts';
import { openFixture } from './fixture.ts';
import { commandSurface, startCommand } from './surfaces/command.ts';
import { createLocalAgent, runSurface } from './surfaces/run.ts';
import { sharedStores, taskSurface } from './surfaces/task.ts';

const SECRET = 'canary-7f3a';
const REASON = { kind: 'superseded', message: `because ${SECRET}`, by: 'ada', via: 'the test' };

describe.concurrent.each([runSurface, ...sharedStores().map(taskSurface)])('$name', (surface) => {
  test('gives one reason of ten everywhere, and the model learns its kind only', async () => {
    await using fixture = await openFixture(({ index }) =>
      index === 0 ? { parts: [{ call: 'wait', id: 'w' }] } : undefined,
    );
    await using harness = await surface.open(fixture);
    const prompt = await harness.start('go');
    await fixture.started('wait');
    const receipts = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        prompt.cancel({ ...REASON, message: `${REASON.message} ${i}` }, { mode: 'now' }),
      ),
    );
    const winner = receipts.find(({ result }) => result === 'accepted')!.reason!;
    expect(winner).toEqual({ ...REASON, message: expect.stringContaining(SECRET) as string, at: winner.at });
    for (const { reason } of receipts) if (reason !== undefined) expect(reason).toEqual(winner);
    const { reason, report, calls } = await prompt.end();
    expect([reason, report?.reason, calls[0] && (calls[0] as { reason?: CancelReason }).reason]).toEqual([
      winner,
      winner,
      winner,
    ]);
    expect(checkHistory(await prompt.history())).toEqual([]);
    expect(JSON.stringify(fixture.provider.requests.map(({ body, headers }) => [body, headers]))).not.toContain(SECRET);
  });
});

test('a reason given in one terminal is the reason in the store and in every other terminal', async () => {
  await using fixture = await openFixture([{ parts: [{ call: 'wait', id: 'w' }] }]);
  await using harness = await commandSurface.open(fixture);
  const prompt = await harness.start('go');
  await fixture.started('wait');
  const receipt = await prompt.cancel({ message: SECRET }, { mode: 'now' });
  expect(receipt).toMatchObject({ result: 'accepted', reason: { kind: 'user', message: SECRET, via: 'whoa cancel' } });
  const { reason, report } = await prompt.end();
  expect([reason, report?.reason]).toEqual([receipt.reason, receipt.reason]);
  const { lines } = await startCommand(fixture, ['tasks', '--json']).over;
  expect(lines).toMatchObject([{ outcome: { reason: receipt.reason } }]);
  expect(checkHistory(await prompt.history())).toEqual([]);
});

test('the next turn tells the model the kind of the reason, and an MCP server gets no more', async () => {
  await using server = await openTestServer('stdio');
  await using fixture = await openFixture([
    {
      parts: [
        { call: 'test_count', id: 'm', input: {} },
        { call: 'wait', id: 'w' },
      ],
    },
  ]);
  const { agent, close } = createLocalAgent(fixture, { tools: server.mcp.tools });
  const run = agent.run('go');
  await server.waitForLog('began');
  await fixture.started('wait');
  run.cancel(REASON, { mode: 'now' });
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'cancelled', reason: REASON });
  await agent.run('and now?', { history: outcome.messages }).outcome;
  const told = JSON.stringify(fixture.provider.requests.map(({ body }) => body));
  expect(told).toContain('(superseded)');
  expect(told + server.log()).not.toContain(SECRET);
  await close();
});
