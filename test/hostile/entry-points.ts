// Every place where a user's value enters.
import { fromAiSdk } from '@whoa/ai-sdk';
import { CancelledError, createInterruptedError, type ToolResult } from '@whoa/core';
import { createApprovals } from '@whoa/core/approval';
import type { Kit } from './kit.ts';

export type Scenario = 'wave' | 'run' | 'sub-agent' | 'conversation' | 'guard' | 'ai-sdk';

export interface EntryPoint {
  /** The kind of place, and which of that kind. */
  readonly kind: string;
  readonly name: string;
  readonly scenarios: readonly Scenario[];
  put(kit: Kit, value: () => unknown): void;
}

const CALLS: readonly Scenario[] = ['wave', 'run', 'sub-agent', 'conversation'];
const RUNS: readonly Scenario[] = ['run', 'sub-agent', 'conversation'];
const WORK: readonly Scenario[] = [...CALLS, 'guard'];
const ENDS: readonly Scenario[] = [...WORK, 'ai-sdk'];

const fail = (value: () => unknown): never => {
  throw value() as Error;
};

/** All of them. */
export const entryPoints: EntryPoint[] = [];

function add(
  kind: string,
  scenarios: readonly Scenario[],
  named: Record<string, (kit: Kit, value: () => unknown) => void>,
) {
  for (const [name, put] of Object.entries(named)) entryPoints.push({ kind, name, scenarios, put });
}

add('result', ENDS, {
  'what a tool returns': (kit, value) => (kit.execute = value),
  'what a tool resolves': (kit, value) => (kit.execute = () => Promise.resolve().then(value)),
  'the content of a result': (kit, value) => (kit.execute = () => ({ content: value() })),
  'a part of the content': (kit, value) =>
    (kit.execute = () => ({ content: [value(), { type: 'text', text: value() }] })),
  'the error flag': (kit, value) => (kit.execute = () => ({ content: 'x', isError: value() })),
});
add('details', ENDS, {
  'the details of a result': (kit, value) => (kit.execute = () => ({ content: 'x', details: value() })),
  'inside the details': (kit, value) => (kit.execute = () => ({ content: 'x', details: { deep: [value()] } })),
});
add('error', ENDS, {
  'what a tool throws': (kit, value) => (kit.execute = () => fail(value)),
  'what a tool rejects with': (kit, value) => (kit.execute = () => Promise.reject(value() as Error)),
  'the cause of an error': (kit, value) => (kit.execute = () => fail(() => new Error('x', { cause: value() }))),
  'the message of an error': (kit, value) =>
    (kit.execute = () => fail(() => Object.assign(new Error('x'), { message: value() }))),
  'what an interrupted tool hands over': (kit, value) =>
    (kit.execute = ({ token }) => fail(() => createInterruptedError(token, value() as ToolResult))),
  'the partial of a cancel': (kit, value) =>
    (kit.execute = () => fail(() => new CancelledError({ kind: 'user', at: 0 }, { partial: value() }))),
});
add('update', CALLS, {
  'what a tool shows': (kit, value) => (kit.begin = ({ update }) => update(value() as ToolResult)),
  'the details it shows': (kit, value) =>
    (kit.begin = ({ update }) => update({ content: 'so far', details: value() } as ToolResult)),
  'what it nests': (kit, value) => (kit.begin = ({ emitNested }) => emitNested(value() as { type: string })),
});
add('cleanup', WORK, {
  'a cleanup': (kit, value) => (kit.begin = ({ defer }) => defer(value() as () => void)),
  'what a cleanup throws': (kit, value) => (kit.begin = ({ defer }) => defer(() => fail(value))),
  'what a cleanup returns': (kit, value) => (kit.begin = ({ defer }) => defer(value)),
});
add('input', CALLS, {
  'the input of a call': (kit, value) => (kit.call.input = value()),
  'inside the input': (kit, value) => (kit.call.input = { list: [value()] }),
});
add('schema', CALLS, {
  'what a schema returns': (kit, value) => (kit.schema = toSchema(value)),
  'what a schema throws': (kit, value) => (kit.schema = toSchema(() => fail(value))),
  'what a schema resolves': (kit, value) => (kit.schema = toSchema(() => Promise.resolve().then(value))),
  'the value of a schema': (kit, value) => (kit.schema = toSchema(() => ({ value: value() }))),
  'the issues of a schema': (kit, value) => (kit.schema = toSchema(() => ({ issues: value() }))),
  'an issue of a schema': (kit, value) =>
    (kit.schema = toSchema(() => ({ issues: [value(), { message: value(), path: [value()] }] }))),
  'a schema': (kit, value) => (kit.schema = value() as Kit['schema']),
});
add('hook', CALLS, {
  'what a hook throws': (kit, value) => (kit.hooks['any'] = () => fail(value)),
  'what a hook returns': (kit, value) => (kit.hooks['any'] = value),
  'what a hook rejects with': (kit, value) => (kit.hooks['call-end'] = () => Promise.reject(value() as Error)),
  'what the hook for errors throws': (kit, value) =>
    Object.assign(kit.hooks, { any: () => fail(value), 'hook-error': () => fail(value) }),
});
for (const name of ['tools', 'concurrency', 'approve', 'hooks', 'lateResults', 'cleanupTimeoutMs', 'world']) {
  add('setting', CALLS, { [name]: (kit, value) => (kit.agent[name] = value()) });
}
for (const name of [
  'name',
  'ladder',
  'budgets',
  'compact',
  'undoTimeoutMs',
  'retry',
  'instructions',
  'model',
  'planner',
]) {
  add('setting', RUNS, { [name]: (kit, value) => (kit.agent[name] = value()) });
}
add('setting', RUNS, {
  'a limit of the budget': (kit, value) => (kit.agent['budgets'] = { maxDurationMs: value(), maxTurns: value() }),
  'a step of the ladder': (kit, value) => (kit.agent['ladder'] = { drainMs: value(), abortMs: value() }),
  'the id of a run': (kit, value) => (kit.run['id'] = value()),
  'what may cancel a run': (kit, value) => (kit.run['token'] = value()),
  'the signal of a run': (kit, value) => (kit.run['signal'] = value()),
  'what waits before a call': (kit, value) => (kit.run['beforeCall'] = value()),
  'all options of a run': (kit, value) => (kit.allOfRun = value),
});
add('setting', CALLS, {
  'the name of a tool': (kit, value) => (kit.tool['name'] = value()),
  'the time of a tool': (kit, value) => (kit.tool['timeoutMs'] = value()),
  'how a tool is cancelled': (kit, value) => (kit.tool['whenCancelled'] = value()),
  'the effects of a tool': (kit, value) => (kit.tool['effects'] = value()),
  'the undo of a tool': (kit, value) => (kit.tool['undo'] = value()),
  'the keys of a tool': (kit, value) => (kit.tool['exclusive'] = value()),
  'the execute of a tool': (kit, value) => (kit.tool['execute'] = value()),
});
for (const name of [
  'name',
  'whenCancelled',
  'timeoutMs',
  'cleanupTimeoutMs',
  'lateResults',
  'key',
  'onWait',
  'token',
  'signal',
]) {
  add('setting', ['guard'], { [`${name} of a guard`]: (kit, value) => (kit.agent[name] = value()) });
}
add('setting', ['conversation'], {
  'the policy': (kit, value) => (kit.conversations['policy'] = value()),
  'how many conversations': (kit, value) => (kit.conversations['maxConversations'] = value()),
  'who hears replies': (kit, value) => (kit.conversations['onReply'] = value()),
  'what a listener to replies throws': (kit, value) => (kit.conversations['onReply'] = () => fail(value)),
  'what describes a cancel': (kit, value) => (kit.conversations['describeCancel'] = value()),
  'what a description throws': (kit, value) => (kit.conversations['describeCancel'] = () => fail(value)),
  'what a description returns': (kit, value) => (kit.conversations['describeCancel'] = value),
  'the wait for more': (kit, value) => (kit.message['debounceMs'] = value()),
  'the policy of a message': (kit, value) => (kit.message['policy'] = value()),
  'the listener of a message': (kit, value) => (kit.message['onEvent'] = () => fail(value)),
});
add('id', RUNS, { 'the id of a call': (kit, value) => (kit.call.callId = value()) });
add('id', ['wave'], { 'the id of a planned call': (kit, value) => (kit.call.callId = value()) });
add('id', ['conversation'], { 'the id of a message': (kit, value) => (kit.message['messageId'] = value()) });
add('name', CALLS, { 'the tool of a call': (kit, value) => (kit.call.tool = value()) });
add('message', RUNS, {
  'what is said': (kit, value) => (kit.said = value()),
  'the content of what is said': (kit, value) => (kit.said = { role: 'user', content: value() }),
  'a part of what is said': (kit, value) => (kit.said = [{ type: 'text', text: value() }]),
  'what is said on the way': (kit, value) => (kit.steer = value),
});
add('message', ['run', 'sub-agent'], {
  'the history': (kit, value) => (kit.run['history'] = value()),
  'a message of the history': (kit, value) => (kit.run['history'] = [value()]),
  'the content of an old message': (kit, value) => (kit.run['history'] = [{ role: 'user', content: value() }]),
  'a part of an old reply': (kit, value) =>
    (kit.run['history'] = [{ role: 'assistant', content: [value()], stopReason: value() }]),
  'an old result': (kit, value) =>
    (kit.run['history'] = [
      { role: 'assistant', content: [{ type: 'call', callId: 'c', tool: 't', input: value() }], stopReason: 'stop' },
      { role: 'tool', callId: 'c', tool: 't', content: value(), details: value() },
    ]),
});
add('model part', RUNS, {
  'a part': (kit, value) => (kit.parts = () => [value()]),
  'the text of a part': (kit, value) => (kit.parts = () => [{ type: 'text', text: value() }]),
  'the thinking of a part': (kit, value) =>
    (kit.parts = () => [
      { type: 'thinking', text: value() },
      { type: 'thinking-end', signature: value() },
    ]),
  'the tokens of a part': (kit, value) =>
    (kit.parts = () => [{ type: 'usage', inputTokens: value(), outputTokens: value() }]),
  'a planned call': (kit, value) => (kit.parts = () => [{ type: 'call-start', callId: value(), tool: value() }]),
  'why it stopped': (kit, value) => (kit.parts = () => [{ type: 'finish', stopReason: value() }]),
  'what a model throws': (kit, value) => (kit.parts = () => fail(value)),
  'what a compaction returns': (kit, value) => (kit.agent['compact'] = value),
  'what a compaction throws': (kit, value) => (kit.agent['compact'] = () => fail(value)),
});
add('lateResults', WORK, {
  'what late results throw': (kit, value) =>
    (kit.agent['lateResults'] = {
      abandon: () => fail(value),
      returned: () => fail(value),
      entries: () => fail(value),
    }),
  'what late results return': (kit, value) =>
    (kit.agent['lateResults'] = { abandon: value, returned: value, entries: value }),
});
add('reason', WORK, {
  'the reason of a cancel': (kit, value) => (kit.reason = value()),
  'the words of a reason': (kit, value) => (kit.reason = { kind: value(), message: value(), by: value(), at: value() }),
});
add('cancel option', CALLS, {
  'how to cancel': (kit, value) => (kit.cancel['mode'] = value()),
  'whether to undo': (kit, value) => (kit.cancel['undo'] = value()),
  'all options of a cancel': (kit, value) => (kit.allOfCancel = value),
});
add('undo', RUNS, {
  'what an undo throws': (kit, value) => Object.assign(kit.tool, { undo: () => fail(value) }),
  'what an undo returns': (kit, value) => Object.assign(kit.tool, { undo: value }),
});
add('key', CALLS, {
  'what the keys are': (kit, value) => Object.assign(kit.tool, { exclusive: value }),
  'one of the keys': (kit, value) => Object.assign(kit.tool, { exclusive: () => [value()] }),
  'what the keys throw': (kit, value) => Object.assign(kit.tool, { exclusive: () => fail(value) }),
});
add('approval', CALLS, {
  'the answer of a person': (kit, value) => (kit.agent['approve'] = value),
  'what an approval throws': (kit, value) => (kit.agent['approve'] = () => fail(value)),
});
add('step', RUNS, {
  'what a planner returns': (kit, value) => (kit.plan = value),
  'what a planner resolves': (kit, value) => (kit.plan = () => Promise.resolve().then(value)),
  'what a planner throws': (kit, value) => (kit.plan = () => fail(value)),
  'the message of a step': (kit, value) => (kit.plan = () => ({ message: value(), calls: [] })),
  'a part of a step': (kit, value) => (kit.plan = () => toStep([value()], [])),
  'the calls of a step': (kit, value) => (kit.plan = () => toStep([], value())),
  'a call of a step': (kit, value) => (kit.plan = () => toStep([], [value()])),
  'the id of a call of a step': (kit, value) =>
    (kit.plan = () => toStep([], [{ id: value(), tool: 'hostile', input: {} }])),
  'what a call of a step needs': (kit, value) =>
    (kit.plan = () => toStep([], [{ id: 'c', tool: 'hostile', input: {}, dependsOn: value(), exclusive: value() }])),
  'what a planner hands over as it fails': (kit, value) =>
    (kit.plan = () => fail(() => Object.assign(new Error('x'), { partial: value() }))),
  'a reply that it hands over': (kit, value) =>
    (kit.plan = () =>
      fail(() => Object.assign(new Error('x'), { partial: { role: 'assistant', content: value(), usage: value() } }))),
});
add('step', RUNS, {
  'what a planner tells': (kit, value) => (kit.tell = () => value()),
  'the text that a planner tells': (kit, value) => (kit.tell = () => ({ type: 'text', text: value() })),
});
add('redaction', RUNS, {
  'what a redaction returns': (kit, value) => (kit.run['redact'] = value),
  'what a redaction throws': (kit, value) => (kit.run['redact'] = () => fail(value)),
});
add('redaction', ['wave'], {
  'what a redaction of a runtime returns': (kit, value) => (kit.agent['redact'] = value),
  'what a redaction of a runtime throws': (kit, value) => (kit.agent['redact'] = () => fail(value)),
});
for (const name of ['beforeTurn', 'beforeCall', 'beforeUndo']) {
  add('wait', ['run', 'sub-agent'], {
    [`what ${name} returns`]: (kit, value) => (kit.run[name] = value),
    [`what ${name} throws`]: (kit, value) => (kit.run[name] = () => fail(value)),
  });
}
add('signal', [...RUNS, 'wave', 'guard', 'ai-sdk'], {
  'what a signal is aborted with': (kit, value) => (kit.abort = value),
});
add('listener', WORK, {
  'a listener to cancels': (kit, value) => (kit.begin = ({ token }) => token.onCancel(value() as () => void)),
  'what a listener to cancels throws': (kit, value) => (kit.begin = ({ token }) => token.onCancel(() => fail(value))),
});
add('approval', CALLS, {
  'the preview of a call': (kit, value) => {
    kit.tool['preview'] = value;
    kit.agent['approve'] = createApprovals({ ask: () => Promise.resolve({ decision: 'yes' }), alwaysUntil: 'the end' });
  },
  'what a person answers': (kit, value) =>
    (kit.agent['approve'] = createApprovals({ ask: value as never, alwaysUntil: 'the end' })),
  'the decision of a person': (kit, value) =>
    (kit.agent['approve'] = createApprovals({
      ask: (() => ({ decision: 'no', why: value() })) as never,
      alwaysUntil: 'x',
    })),
});
add('id', ['wave', 'run'], {
  'the id of a call to cancel': (kit, value) => (kit.cancelCall = () => [value()]),
  'the reason to cancel a call': (kit, value) => (kit.cancelCall = () => ['hostile', value(), value()]),
});
add('id', ['conversation'], {
  'the id of a conversation': (kit, value) => (kit.message['id'] = value()),
});
add('model part', RUNS, {
  'a part of an AI SDK model': (kit, value) => (kit.agent['model'] = aiSdkModel(() => toStream(value()))),
  'the text of such a part': (kit, value) =>
    (kit.agent['model'] = aiSdkModel(() => toStream({ type: 'text-delta', id: value(), delta: value() }))),
  'a call of an AI SDK model': (kit, value) =>
    (kit.agent['model'] = aiSdkModel(() =>
      toStream({ type: 'tool-call', toolCallId: value(), toolName: value(), input: value() }),
    )),
  'the finish of an AI SDK model': (kit, value) =>
    (kit.agent['model'] = aiSdkModel(() => toStream({ type: 'finish', finishReason: value(), usage: value() }))),
  'what an AI SDK model resolves': (kit, value) => (kit.agent['model'] = aiSdkModel(value)),
  'the stream of an AI SDK model': (kit, value) => (kit.agent['model'] = aiSdkModel(() => ({ stream: value() }))),
  'what an AI SDK model throws': (kit, value) => (kit.agent['model'] = aiSdkModel(() => fail(value))),
});
add('message', ['ai-sdk'], {
  'the messages of a loop': (kit, value) => (kit.aiSdk['messages'] = value()),
  'a message of a loop': (kit, value) => (kit.aiSdk['messages'] = [value()]),
  'a part of a message of a loop': (kit, value) =>
    (kit.aiSdk['messages'] = [{ role: 'assistant', content: [value(), { type: 'text', text: value() }] }]),
  'a call of a message of a loop': (kit, value) =>
    (kit.aiSdk['messages'] = [
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: value(), toolName: value(), input: value() }] },
      { role: 'tool', content: [{ type: 'tool-result', toolCallId: value(), toolName: value(), output: value() }] },
    ]),
});
add('id', ['ai-sdk'], { 'the id of a call of a loop': (kit, value) => (kit.aiSdk['toolCallId'] = value()) });
add('input', ['ai-sdk'], { 'the input of a call of a loop': (kit, value) => (kit.aiSdk['input'] = value()) });
for (const name of ['calls', 'bounds', 'onWait', 'token']) {
  add('setting', ['ai-sdk'], { [`${name} of guarded tools`]: (kit, value) => (kit.agent[name] = value()) });
}
add('setting', ['ai-sdk'], {
  'how a guarded tool is bounded': (kit, value) =>
    (kit.agent['bounds'] = { hostile: { whenCancelled: value(), timeoutMs: value() } }),
  'what waiting for a guarded tool throws': (kit, value) =>
    Object.assign(kit.agent, {
      bounds: { hostile: { whenCancelled: 'finish', timeoutMs: 1_000 } },
      onWait: () => fail(value),
    }),
});
add('clock', ['wave', 'run', 'conversation'], {
  'the time': (kit, value) => (kit.clock.now = value),
  'what a clock throws': (kit, value) => (kit.clock.now = () => fail(value)),
  'a timer': (kit, value) => (kit.clock.setTimer = value),
});

function toStep(content: readonly unknown[], calls: unknown): unknown {
  return { message: { role: 'assistant', content, stopReason: 'stop' }, calls };
}

function aiSdkModel(doStream: () => unknown): unknown {
  return fromAiSdk({
    specificationVersion: 'v3',
    provider: 'hostile.chat',
    modelId: 'hostile',
    // A real one is asynchronous.
    doStream: () => Promise.resolve().then(doStream),
  } as never);
}

function toStream(part: unknown): unknown {
  return { stream: ReadableStream.from([part, { type: 'finish', finishReason: { unified: 'stop' }, usage: {} }]) };
}

function toSchema(validate: () => unknown): Kit['schema'] {
  return { '~standard': { version: 1, vendor: 'hostile', validate } } as Kit['schema'];
}
