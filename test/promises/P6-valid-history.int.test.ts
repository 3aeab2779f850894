// P6 Valid history: after a cancel at the worst moment every call has exactly one result, each result matches the
// tool's real effect, and a provider that rejects what the vendors reject accepts the next request.
import { rmSync, writeFileSync } from 'node:fs';
import { findRefusals, type ScriptedResponse } from '@whoa/ai-sdk/testing';
import { type Message, toText } from '@whoa/core';
import type { CallState } from '@whoa/core/embed';
import { prepareMessages } from '@whoa/core/model';
import { checkHistory } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { formats } from '../ai-sdk/providers.ts';
import { openEditor } from '../command/editor.ts';
import { openStore } from '../tasks/open-store.ts';
import { DONE, type Fixture, openFixture, until } from './fixture.ts';
import { createLocalAgent } from './surfaces/run.ts';
import { followTask, sharedStores, startWorker } from './surfaces/task.ts';

/** A tool that finishes, one that obeys its signal, one that ignores it, one that must finish, and one more. */
const FIVE: ScriptedResponse = {
  parts: [
    { text: 'I do five things. ' },
    { call: 'look', id: 'c1' },
    { call: 'wait', id: 'c2' },
    { call: 'deaf', id: 'c3' },
    { call: 'pay', id: 'c4' },
    { call: 'book', id: 'c5' },
  ],
};
const TOLD: Readonly<Record<string, [CallState, string]>> = {
  c1: ['finished', 'found'],
  c2: ['interrupted', 'Interrupted (superseded) before it finished. Output so far:\nwaited a little'],
  c3: [
    'unknown',
    'Outcome unknown: it was still running when the wait for it ended (superseded). It may have taken effect.',
  ],
  c4: ['finished', 'paid'],
  c5: ['not-started', 'Not started: cancelled (superseded). It had no effect.'],
};

async function allUnderWay(fixture: Fixture): Promise<void> {
  for (const tool of ['wait', 'deaf', 'pay']) await fixture.started(tool);
  await until(() => fixture.effects().some(({ tool, phase }) => tool === 'look' && phase === 'resolve'));
}

/** What the provider gets for each call, in the request after the cancel. */
function readSecondRequest(fixture: Fixture): string {
  expect(fixture.provider.requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined]);
  return JSON.stringify(fixture.provider.requests[1]!.body);
}

test.each(formats)(
  '%s: five calls in five states are reported to the model, and the next turn is accepted',
  async (format) => {
    await using fixture = await openFixture([FIVE]);
    // Three at a time: the fifth waits for a place that it never gets.
    const { agent, recorder, close } = createLocalAgent(fixture, { format, concurrency: 3 });
    writeFileSync(fixture.at('hold-pay'), '');
    const run = recorder.run(agent.run('go'));
    await allUnderWay(fixture);
    run.cancel({ kind: 'superseded', message: 'not for the model' }, { mode: { abortMs: 100 } });
    rmSync(fixture.at('hold-pay'));
    const outcome = await run.outcome;
    const told = outcome.calls.map(({ callId, state, content }) => [callId, [state, toText(content)]]);
    expect(Object.fromEntries(told)).toEqual(TOLD);
    expect(checkHistory(recorder.history)).toEqual([]);
    expect(findRefusals(prepareMessages([...outcome.messages, { role: 'user', content: 'and now?' }]))).toEqual([]);

    expect(await agent.run('and now?', { history: outcome.messages }).outcome).toMatchObject({ text: DONE });
    const request = readSecondRequest(fixture);
    for (const [, content] of Object.values(TOLD)) expect(request).toContain(content.split('\n')[0]);
    for (const private_ of ['for people', 'not for the model']) expect(request).not.toContain(private_);
    await close();
  },
);

test.concurrent.each(sharedStores())(
  'a conversation on $name continues after a task of it was cancelled in five states',
  async (location) => {
    await using fixture = await openFixture([FIVE]);
    const where = await location.open();
    await using store = openStore(where);
    await using worker = startWorker(where, fixture);
    const say = async (input: string) => {
      const receipt = await store.create({ tenant: 'acme', agent: 'tester', input, conversation: fixture.mark });
      return followTask(store, { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id }, fixture);
    };
    const first = await say('go');
    await allUnderWay(fixture);
    await first.cancel({ kind: 'superseded' }, { mode: 'now' });
    const { calls } = await first.end();
    expect(Object.fromEntries(calls.map(({ callId, state }) => [callId, state]))).toMatchObject({
      c1: 'finished',
      c2: 'interrupted',
      c3: 'unknown',
      c4: 'finished',
    });
    expect(await (await say('and now?')).end()).toMatchObject({ status: 'success', text: DONE });
    expect(readSecondRequest(fixture)).toContain(TOLD['c3']![1]);
    expect(checkHistory(await first.history())).toEqual([]);
    const { history } = (await store.conversation({ tenant: 'acme', conversation: fixture.mark }))!;
    expect(findRefusals(prepareMessages(history as unknown as Message[]))).toEqual([]);
    worker.process.send('stop');
    await worker.ended;
  },
);

test('a session in an editor continues after a prompt of it was cancelled in five states', async () => {
  await using fixture = await openFixture([FIVE]);
  const editor = await openEditor(fixture.home);
  const answer = editor.prompt('go');
  await allUnderWay(fixture);
  await editor.cancel();
  expect(await answer).toMatchObject({ stopReason: 'cancelled' });
  expect(await editor.prompt('and now?')).toMatchObject({ stopReason: 'end_turn' });
  expect(readSecondRequest(fixture)).toContain('Outcome unknown');
  // The person was shown an end of every call, too.
  const ends = editor.shown.flatMap((update) =>
    update.sessionUpdate === 'tool_call_update' && (update.status === 'completed' || update.status === 'failed')
      ? [update.toolCallId]
      : [],
  );
  expect(ends).toHaveLength(5);
  await editor.close();
});
