// P4 Quiet at the end: when the end can be read, nothing runs any more and nothing starts later: no process, however it
// tried to escape, no stream, no tool. Work that could not be stopped is named, never hidden.
import { checkHistory } from '@whoa/core/testing';
import { describe, expect, test } from 'vitest';
import { openFixture, until } from './fixture.ts';
import { everySurface } from './surfaces/all.ts';

const TREE_PROCESSES = 5;

describe.concurrent.each(everySurface())('$name', (surface) => {
  test('all processes of a command, including those that left their group, have ended when the end is reported', async () => {
    let command = '';
    await using fixture = await openFixture(({ results }) =>
      results === 0
        ? {
            parts: [
              { call: 'bash', id: 'b', input: { command } },
              { call: 'wait', id: 'w' },
            ],
          }
        : undefined,
    );
    command = fixture.tree;
    await using harness = await surface.open(fixture);
    const prompt = await harness.start('go');
    await fixture.started('wait');
    await until(() => fixture.processes().length >= TREE_PROCESSES);
    await prompt.cancel({ message: 'enough' }, { mode: 'now' });
    const end = await prompt.end();
    expect(fixture.processes()).toEqual([]);
    expect(fixture.provider.openResponses).toBe(0);
    expect(Object.fromEntries(end.calls.map(({ callId, state }) => [callId, state]))).toEqual({
      b: 'interrupted',
      w: 'interrupted',
    });
    expect(end.report).toMatchObject({ isClean: true });
    expect(fixture.provider.requests).toHaveLength(1);
    expect(checkHistory(await prompt.history())).toEqual([]);
  });
});

describe.concurrent.each(everySurface(['SQLite']))('$name', (surface) => {
  test('the connection to the model is closed when the end is reported', async () => {
    await using fixture = await openFixture([{ parts: [{ text: ['Once upon ', { stall: true }, 'a time'] }] }]);
    await using harness = await surface.open(fixture);
    const prompt = await harness.start('go');
    const request = await fixture.provider.waitForRequest(0);
    await request.waitForStall();
    await until(async () => (await prompt.readText()) === 'Once upon ');
    await prompt.cancel({ message: 'enough' }, { mode: 'graceful' });
    expect(await prompt.end()).toMatchObject({ status: 'cancelled', text: 'Once upon ' });
    expect(await request.waitForClose()).toBe('client');
    await fixture.provider.waitForIdle();
    expect(fixture.provider.requests).toHaveLength(1);
  });
});
