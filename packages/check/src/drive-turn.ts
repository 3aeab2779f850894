import type { Turn, TurnEnd } from './adapter.ts';
import { expect, type Scenario, Violation } from './check.ts';
import { within } from './clock.ts';
import type { CheckHarness } from './harness/check-harness.ts';
import { type Action, getProbeMode, promptFor, secondKey, toReplyText } from './harness/script.ts';
import { isAttack } from './probe/probe.ts';

/** How long an agent may take to reach the moment that a check is about. */
const START_MS = 60_000;
/** How long words may take from the model to the client, before a check continues without them. */
const SHOW_MS = 2_000;

/** Thrown when the moment that a check is about was never reached, so that it says nothing. */
export class Unclear extends Error {}

/** A turn whose agent acts. */
export interface StartedPrompt {
  readonly turn: Turn;
  readonly key: string;
}

/** Starts a turn and waits until the agent is working on it. */
export async function begin(scenario: Scenario, action: Action): Promise<StartedPrompt> {
  const key = scenario.harness.makeKey();
  const turn = scenario.conversation.start(promptFor(action, key));
  const ended = turn.ended.then(({ kind, detail }) => {
    throw new Unclear(`the turn ended before the agent was in the middle of it: ${kind} (${detail})`);
  });
  const reached = Promise.race([waitForPhase(scenario, action, { turn, key }), ended]);
  if (!(await within(START_MS, reached)))
    throw new Unclear(`after ${START_MS / 1_000} s it was not in the middle of '${action}'`);
  await reached;
  return { turn, key };
}

/** The actions during which the probe runs. */
const CALLS: readonly Action[] = ['call', 'call-tree', 'call-unresponsive', 'two-calls'];

/** Waits until the agent acts. */
async function waitForPhase(scenario: Scenario, action: Action, { turn, key }: StartedPrompt): Promise<void> {
  const { features, harness } = scenario;
  if (action === 'reply') return;
  if (CALLS.includes(action) || isAttack(action)) return harness.probe.waitForStart(key, getProbeMode(action));
  const request = await harness.waitForRequest(key, action === 'call-then-stream' ? 1 : 0);
  await request.waitForStall();
  // Not all agents show words immediately.
  if (action === 'think' || typeof features['text'] === 'string') return;
  const word = toReplyText(key)[1].trim();
  await within(
    SHOW_MS,
    turn.waitFor((one) => one.what === 'text' && one.text.includes(word)),
  );
}

/** Waits for the end of a turn. */
export async function settle({ settleMs }: Scenario, turn: Turn, ms: number = settleMs): Promise<TurnEnd> {
  if (!(await within(ms, turn.ended))) throw new Violation(`the turn had not ended ${ms / 1_000} s later`);
  return turn.ended;
}

/** Cancels a turn during an action and expects that it ends as cancelled. */
export async function stopDuring(scenario: Scenario, action: Action): Promise<StartedPrompt> {
  const started = await begin(scenario, action);
  await stop(scenario, started);
  return started;
}

/** Cancels a turn and expects that it ends as cancelled. */
export async function stop(scenario: Scenario, started: StartedPrompt): Promise<void> {
  await scenario.conversation.cancel();
  expectCancelled(scenario, await settle(scenario, started.turn));
  await settleOutside(scenario, started);
}

/** Where the client does not see how a cancelled turn ends, waits until its model and its tools have stopped. */
export async function settleOutside({ features, harness, settleMs }: Scenario, started: StartedPrompt): Promise<void> {
  if (features['outcome'] === true) return;
  await expectModelStopped(harness, started.key, settleMs);
  for (const key of [started.key, secondKey(started.key)]) {
    const left = await harness.probe.waitForEnd(key, settleMs);
    expect(left.length === 0, `its tool was still running ${settleMs / 1_000} s after the cancel`);
  }
}

/** Expects that the model gets no more requests for a prompt. */
export async function expectModelStopped(harness: CheckHarness, key: string, ms: number): Promise<void> {
  const closed = Promise.all(harness.requestsFor(key).map((request) => request.waitForClose()));
  expect(await within(ms, closed), `the model was still replying ${ms / 1_000} s later`);
}

/** Expects that a turn has ended, and only once. */
export function expectOneEnd({ observations }: Turn): void {
  const ends = observations.flatMap((one) => (one.what === 'end' ? [one.end.detail] : []));
  expect(ends.length === 1, `the turn ended ${ends.length} times: ${ends.join(', ')}`);
}

/** Waits for the end of a turn that no one cancels, and expects that it is complete. */
export async function expectCompleted(scenario: Scenario, turn: Turn): Promise<void> {
  const { kind, detail } = await settle(scenario, turn, 4 * scenario.settleMs);
  expect(kind === 'completed', `the prompt ended as '${kind}' (${detail})`);
}

/** Expects that a turn ended as cancelled, in a protocol that can report it. */
export function expectCancelled({ features }: Scenario, { kind, detail }: TurnEnd): void {
  if (features['outcome'] !== true) return;
  expect(kind === 'cancelled', `the turn ended as '${kind}' (${detail})`);
}

/** Sends a plain prompt and expects an answer to it. */
export async function expectReply(scenario: Scenario): Promise<void> {
  const key = scenario.harness.makeKey();
  const turn = scenario.conversation.start(promptFor('reply', key));
  expect(await within(START_MS, turn.ended), `the next prompt had no answer after ${START_MS / 1_000} s`);
  const { kind, detail } = await turn.ended;
  expect(kind === 'completed', `the next prompt ended as '${kind}' (${detail})`);
  expect(scenario.harness.requestsFor(key).length > 0, 'the next prompt was answered without asking the model');
}
