import {
  createAgent,
  defineTool,
  formatStopReport,
  type Json,
  type Message,
  type StopReport,
  type Tool,
} from '@whoa/core';
import { callTools, type Planner, reply, type Step } from '@whoa/core/model';
import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { claimFor, expireSessions } from '../../../../../test/tasks/claimed.ts';
import { createMemoryStore } from '../../ledger/memory.ts';
import { createRunner } from '../store-runner.ts';
import { readRecoveryState } from './resume.ts';

const TASK = { tenant: 'acme', agent: 'assistant', input: 'book it' };
const INPUT = { role: 'user', content: 'book it' };

function tool(name: string, replay: 'safe' | 'never', ran: string[]): Tool {
  const undo = (): void => void ran.push(`undo ${name}`);
  const isMail = name === 'mail';
  return defineTool({
    name,
    description: name,
    inputSchema: z.object({}),
    effects: isMail ? 'write' : 'read',
    replay,
    ...(!isMail && { undo }),
    execute: () => {
      ran.push(name);
      return `${name} ran`;
    },
  }) as Tool;
}

/** A task whose worker wrote this much and then died. */
async function crashed(
  events: readonly Json[],
  options: {
    cancelled?: boolean;
    undo?: boolean;
    conversation?: string;
    version?: string;
    resume?: 'any' | 'same-version';
    /** After the crash this tool is called again, and its call is followed by a cancel with undo. */
    cancelsIn?: string;
    /** Every undo fails with this message. */
    undoFails?: string;
    budgets?: { readonly repeats: number };
    /** The tool that the agent calls in every turn after the crash. */
    callsAgain?: string;
  } = {},
) {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  const receipt = await store.create({ ...TASK, conversation: options.conversation });
  const id = receipt.result === 'created' ? receipt.task.id : '';
  const claim = await claimFor(store, id, { worker: 'dead', leaseMs: 1_000 });
  await store.append(claim, { after: 0, events });
  const ref = { tenant: 'acme', id };
  if (options.cancelled) await store.cancel(ref, { by: 'ann' }, { undo: options.undo === true });
  await expireSessions(store, world, 1_000);
  const ran: string[] = [];
  const seen: (readonly Message[])[] = [];
  const planner: Planner = {
    async next(history, { token }): Promise<Step> {
      seen.push([...history]);
      const { cancelsIn, callsAgain } = options;
      if (callsAgain !== undefined) return callTools([{ id: `n${seen.length}`, tool: callsAgain, input: {} }]);
      if (cancelsIn === undefined) return reply('done');
      if (seen.length === 1) return callTools([{ id: 'n0', tool: cancelsIn, input: {} }]);
      await store.cancel(ref, { by: 'ann' }, { undo: true });
      await new Promise<void>((resolve) => void token.onCancel(() => resolve()));
      return reply('done');
    },
  };
  const { undoFails } = options;
  const fail = (): never => {
    throw new Error(undoFails);
  };
  const tools = [tool('look', 'safe', ran), tool('pay', 'never', ran), tool('mail', 'never', ran)].map((one) =>
    undoFails !== undefined && 'undo' in one ? { ...one, undo: fail } : one,
  );
  const { version, resume } = options;
  const { budgets } = options;
  const agent = createAgent({ name: 'assistant', planner, tools, world, budgets, ...(version && { version }) });
  const runner = createRunner({ store, agents: { assistant: agent }, world, ...(resume && { resume }) });
  const response = await runner.runExisting(ref);
  await runner[Symbol.asyncDispose]();
  return { response, record: (await store.get(ref))!, ran, history: seen.at(-1) ?? [], turns: seen.length };
}

const turn = (...tools: string[]): Json => {
  const calls = tools.map((name, i) => ({ id: `c${i}`, tool: name, input: {} }));
  const { message } = tools.length > 0 ? callTools(calls, 'let me') : reply('finished');
  return { type: 'turn-end', turn: 1, message } as unknown as Json;
};
const start: Json = { type: 'run-start', agent: 'assistant', input: INPUT };
const intent = (callId: string): Json => ({ type: 'call-intent', callId, tool: 'x' });
const end = (callId: string, name: string): Json => ({
  type: 'call-end',
  result: { callId, tool: name, state: 'finished', content: 'ok', isError: false, endedAt: 1 },
});

test('a run that had not completed a turn starts from its input', async () => {
  const { response, history } = await crashed([start, { type: 'text', text: 'I was ab' }]);
  expect(response).toMatchObject({ status: 'success', answer: 'done' });
  expect(history).toEqual([INPUT]);
});

test('a call that may not be repeated is unknown after a crash, and the model sees it', async () => {
  const { ran, history, response } = await crashed([start, turn('pay'), intent('c0')]);
  expect(ran).toEqual([]);
  expect(history.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
  expect(history[2]).toMatchObject({ state: 'unknown', callId: 'c0' });
  expect(JSON.stringify(history[3])).toContain('pay (c0)');
  expect(response.status).toBe('success');
});

const createStart = (version: string): Json => ({ type: 'run-start', agent: 'assistant', input: INPUT, version });

test('a run of another version of the agent is resumed, and the model sees what changed', async () => {
  const past = [createStart('v1'), turn('pay', 'fly'), intent('c0'), end('c0', 'pay'), intent('c1')];
  const { history, response, record } = await crashed(past, { version: 'v2' });
  expect(response.status).toBe('success');
  const notice = JSON.stringify(history.at(-1));
  expect(notice).toContain('instructions or tools have changed');
  expect(notice).toContain('You no longer have these tools: fly.');
  expect(record.status).toBe('success');
});

test('a run of the same version, or of one that is not known, is resumed without a word about it', async () => {
  for (const [from, version] of [
    ['v1', 'v1'],
    [undefined, 'v2'],
  ]) {
    const past = [from === undefined ? start : createStart(from), turn('pay'), intent('c0'), end('c0', 'pay')];
    const { history, response } = await crashed(past, { version: version!, resume: 'same-version' });
    expect(response.status).toBe('success');
    expect(JSON.stringify(history)).not.toContain('changed');
  }
});

test("a run of another version fails under 'same-version', reports its finished calls, and runs nothing again", async () => {
  const past = [createStart('v1'), turn('pay', 'look'), intent('c0'), end('c0', 'pay'), intent('c1')];
  const options = { version: 'v2', resume: 'same-version', conversation: 'c' } as const;
  const { response, record, ran, turns } = await crashed(past, options);
  expect([ran, turns]).toEqual([[], 0]);
  expect(response.status).toBe('failed');
  expect(record.outcome?.error?.code).toBe('AGENT_VERSION');
  expect(record.outcome?.error?.message).toContain('requeue it');
  expect(record.outcome?.answer).toBe('let me');
});

test('a run that had done nothing yet starts again, with any version', async () => {
  const { response } = await crashed([createStart('v1')], { version: 'v2', resume: 'same-version' });
  expect(response.status).toBe('success');
});

test('the journal contains the version of the agent', async () => {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  const agent = createAgent({ name: 'assistant', planner: { next: () => reply('done') }, world, version: 'v7' });
  await using runner = createRunner({ store, agents: { assistant: agent }, world });
  const { id } = await runner.run(TASK);
  const [first] = await store.read({ tenant: 'acme', id });
  expect(first?.event).toMatchObject({ type: 'run-start', version: 'v7' });
});

test('a call that is safe to repeat runs again', async () => {
  const { ran, history } = await crashed([start, turn('look'), intent('c0')]);
  expect(ran).toEqual(['look']);
  expect(history[2]).toMatchObject({ state: 'finished', content: 'look ran' });
});

test('calls that had not begun are continued, and the model gets no message about the restart', async () => {
  const { ran, history } = await crashed([start, turn('pay', 'look')]);
  expect(ran).toEqual(['pay', 'look']);
  expect(history.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool']);
  expect(history[2]).toMatchObject({ state: 'finished', callId: 'c0' });
});

test('a run that was lost between two turns continues without a message about the restart', async () => {
  const { history, response } = await crashed([start, turn('pay'), intent('c0'), end('c0', 'pay')]);
  expect(history.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  expect(response.status).toBe('success');
});

test('a run whose own reply came last gets a message to continue: no provider takes a history that ends so', async () => {
  const { message } = reply('and then');
  const cut = { type: 'turn-end', turn: 1, message: { ...message, stopReason: 'length' } } as unknown as Json;
  const { history } = await crashed([start, cut]);
  expect(history.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
  expect(history.at(-1)).toMatchObject({ isNotice: true });
});

test('a call that depends on others starts only if they succeeded', async () => {
  const plan = callTools([
    { id: 'c0', tool: 'pay', input: {} },
    { id: 'c1', tool: 'mail', input: {}, dependsOn: ['c0'] },
    { id: 'c2', tool: 'look', input: {}, dependsOn: ['c1'] },
  ]);
  const content = plan.message.content.map((part, i) => ({ ...part, ...(i > 0 && { dependsOn: [`c${i - 1}`] }) }));
  const planned = { type: 'turn-end', turn: 1, message: { ...plan.message, content } } as unknown as Json;
  const states = async (...events: Json[]) => {
    const { history, ran } = await crashed([start, planned, ...events]);
    return [history.flatMap((one) => (one.role === 'tool' ? [`${one.callId} ${one.state}`] : [])).toSorted(), ran];
  };
  const finished = ['c0 finished', 'c1 finished', 'c2 finished'];
  expect(await states()).toEqual([finished, ['pay', 'mail', 'look']]);
  expect(await states(intent('c0'), end('c0', 'pay'))).toEqual([finished, ['mail', 'look']]);
  const done = [intent('c0'), end('c0', 'pay'), intent('c1'), end('c1', 'mail'), intent('c2')];
  expect(await states(...done)).toEqual([finished, ['look']]);
  expect(await states(intent('c0'))).toEqual([['c0 unknown', 'c1 not-started', 'c2 not-started'], []]);
});

test('results that were written down are kept, each once', async () => {
  const { ran, history } = await crashed([start, turn('pay', 'look'), intent('c0'), end('c0', 'pay'), intent('c1')]);
  expect(ran).toEqual(['look']);
  const results = history.filter(({ role }) => role === 'tool');
  expect(results).toMatchObject([
    { callId: 'c0', state: 'finished' },
    { callId: 'c1', state: 'finished' },
  ]);
});

test('a run that had finished its reply is a success without running again', async () => {
  const { response, turns } = await crashed([start, turn()]);
  expect([response.status, response.answer, turns]).toEqual(['success', 'finished', 0]);
});

test('a task that was being cancelled is settled from its journal and runs nothing', async () => {
  const events = [
    start,
    turn('pay', 'look'),
    intent('c0'),
    { type: 'turn-start', turn: 2 },
    { type: 'text', text: 'half' },
  ];
  const { response, record, ran, turns } = await crashed(events, { cancelled: true, conversation: 'c' });
  expect([response.status, response.answer, ran, turns]).toEqual(['cancelled', 'half', [], 0]);
  expect(record.outcome).toMatchObject({
    isComplete: false,
    reason: { by: 'ann' },
    stopReport: {
      isClean: false,
      calls: [
        { callId: 'c0', state: 'unknown' },
        { callId: 'c1', state: 'not-started' },
      ],
    },
  });
});

test('a run that crashed twice resumes with everything both workers wrote', async () => {
  const notice = { role: 'user', content: 'The process you ran in was restarted; continue where you left off.' };
  const { history } = await crashed([
    start,
    turn('pay'),
    intent('c0'),
    end('c0', 'pay'),
    { type: 'run-start', input: notice },
    turn('look'),
  ]);
  expect(history.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user', 'assistant', 'tool']);
  expect(history.at(-1)).toMatchObject({ tool: 'look', state: 'finished' });
});

test('an undo that was begun and not ended is unknown', () => {
  const entries = [start, turn('pay'), end('c0', 'pay'), { type: 'undo-start', callId: 'c0', tool: 'pay' }];
  const { undone } = readRecoveryState(
    entries.map((event, i) => ({ position: i + 1, epoch: 1, at: 1, event, claimHash: 'c', said: i })),
  );
  expect(undone.get('c0')).toEqual({ state: 'unknown' });
});

test('a cancel with undo reverts the calls of a lost worker once, last call first', async () => {
  const events = [start, turn('look', 'pay'), intent('c0'), end('c0', 'look'), intent('c1'), end('c1', 'pay')];
  const { ran, record } = await crashed(events, { cancelled: true, undo: true });
  expect(ran).toEqual(['undo pay', 'undo look']);
  expect(record.outcome?.stopReport).toMatchObject({ calls: [{ undo: 'undone' }, { undo: 'undone' }] });
});

test('the report of a task that no worker held has whole milliseconds, and why an undo failed', async () => {
  const finished = { ...(end('c0', 'pay') as { result: object }).result, endedAt: -20_211.5915 };
  const events = [start, turn('pay'), intent('c0'), { type: 'call-end', result: finished } as Json];
  const { record } = await crashed(events, { cancelled: true, undo: true, undoFails: 'changed since' });
  const stop = record.outcome?.stopReport as unknown as StopReport;
  expect(stop.calls).toMatchObject([{ undo: 'failed', undoError: 'changed since' }]);
  for (const ms of [stop.settledAfterMs, ...stop.calls.map(({ afterMs }) => afterMs)])
    expect(Number.isInteger(ms)).toBe(true);
  expect(formatStopReport(stop)).toMatch(/before the stop {2}pay finished, undo failed, changed since\n/);
});

test('the report names what a lost worker had finished and cannot be undone', async () => {
  const events = [start, turn('look', 'mail'), intent('c0'), end('c0', 'look'), intent('c1'), end('c1', 'mail')];
  const { record } = await crashed(events, { cancelled: true, undo: true });
  expect(record.outcome?.stopReport).toMatchObject({ notUndone: [{ callId: 'c1', tool: 'mail' }] });
  const kept = await crashed(events, { cancelled: true });
  expect(kept.record.outcome?.stopReport).not.toHaveProperty('notUndone');
});

test('a run that continued after a crash and is cancelled undoes the calls before the crash too, after its own', async () => {
  const events = [start, turn('look', 'mail', 'pay', 'look'), intent('c0'), end('c0', 'look'), end('c1', 'mail')];
  const { ran, record } = await crashed([...events, end('c2', 'pay'), intent('c3')], { cancelsIn: 'pay' });
  expect(ran).toEqual(['look', 'pay', 'undo pay', 'undo look', 'undo pay', 'undo look']);
  expect(record).toMatchObject({ status: 'cancelled', outcome: { stopReport: { isClean: true } } });
  expect(record.outcome?.stopReport).toMatchObject({
    notUndone: [{ callId: 'c1', tool: 'mail' }],
    calls: [
      { callId: 'c0', undo: 'undone' },
      { callId: 'c2', undo: 'undone' },
      { callId: 'c3', undo: 'undone' },
      { callId: 'n0', tool: 'pay', undo: 'undone' },
    ],
  });
});

test('an undo that a lost worker had started is not started again, and is reported as unknown', async () => {
  const events = [
    start,
    turn('pay'),
    intent('c0'),
    end('c0', 'pay'),
    { type: 'undo-start', callId: 'c0', tool: 'pay' },
  ];
  const { ran, record } = await crashed(events, { cancelled: true, undo: true });
  expect(ran).toEqual([]);
  expect(record.outcome?.stopReport).toMatchObject({ isClean: false, calls: [{ callId: 'c0', undo: 'unknown' }] });
});

test('a run that never got beyond its input gets it once, no matter how often it crashed', async () => {
  const { history } = await crashed([start, start, start]);
  expect(history).toEqual([INPUT]);
});

test('a call whose input was too large for the journal is not run again, though it would be safe', async () => {
  const input = { cut: true, bytes: 5_000_000 };
  const { message } = callTools([{ id: 'c0', tool: 'look', input }]);
  const cut = { type: 'turn-end', turn: 1, message, cut: 5_000_000 } as unknown as Json;
  const started = await crashed([start, cut, intent('c0')]);
  expect(started.ran).toEqual([]);
  expect(started.history[2]).toMatchObject({ state: 'unknown' });
  expect((await crashed([start, cut])).history[2]).toMatchObject({ state: 'not-started' });
});

test('a call known only in part is not undone, and that is reported', async () => {
  const events = [start, turn('pay'), intent('c0'), { ...(end('c0', 'pay') as object), cut: 100 }];
  const { ran, record } = await crashed(events, { cancelled: true, undo: true });
  expect(ran).toEqual([]);
  expect(record.outcome?.stopReport).toMatchObject({ isClean: false, calls: [{ callId: 'c0', undo: 'unknown' }] });
});

test('a call that is made again and again is counted over a crash', async () => {
  const call = (id: string) => ({ type: 'call', callId: id, tool: 'look', input: {} });
  const events = ['c1', 'c2'].flatMap((id, at) => [
    { type: 'turn-end', turn: at + 1, message: { role: 'assistant', content: [call(id)], stopReason: 'tool-use' } },
    {
      type: 'call-end',
      result: { callId: id, tool: 'look', state: 'finished', content: 'look ran', isError: false, endedAt: 1 },
    },
  ]);
  const budgets = { repeats: 3 };
  const { record, ran } = await crashed([{ type: 'run-start', input: INPUT }, ...events], {
    budgets,
    callsAgain: 'look',
  });
  expect(ran).toEqual(['look']);
  const reason = { kind: 'budget', message: 'the run reached its repeats of 3: it made the same call again and again' };
  expect(record.outcome).toMatchObject({ status: 'cancelled', reason });
});
