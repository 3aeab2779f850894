import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { CancellationToken, createRuntime, type Tool } from '@whoa/core';
import { type Finding, stillUnknown } from '@whoa/core/effects';
import { within } from './running-call.ts';
import type { ToolContractCase } from './tool-contract.ts';

/** A tool with `findOut`, and what its contract needs. Each case creates its own and disposes it. */
export interface FindOutSubject extends Partial<AsyncDisposable> {
  readonly tool: Tool;
  /** The input of a call that takes effect. */
  readonly input: unknown;
  /** Makes unreachable what `findOut` asks. */
  readonly disconnect: () => Promise<void>;
}

/** The options of the contract of `findOut`. */
export interface FindOutContractOptions {
  /** Creates the tool for one case, with an input for it. */
  readonly create: () => FindOutSubject | Promise<FindOutSubject>;
  /** The longest that one look may take, and that it may take to stop. */
  readonly timeoutMs?: number;
}

const LOOK_MS = 5_000;

/**
 * Checks that a tool's `findOut` says no more than its evidence, as cases for any test runner.
 *
 * @returns The cases.
 */
export function createFindOutContract({ create, timeoutMs = LOOK_MS }: FindOutContractOptions): ToolContractCase[] {
  return CASES.map(({ id, name, check }) => ({
    id,
    name,
    async run() {
      const subject = await create();
      try {
        await check(new Looks(subject, timeoutMs), subject);
      } finally {
        await subject[Symbol.asyncDispose]?.();
      }
    },
  }));
}

/** The calls and looks of one case. */
class Looks {
  readonly #subject: FindOutSubject;
  readonly timeoutMs: number;

  constructor(subject: FindOutSubject, timeoutMs: number) {
    assert.ok(subject.tool.findOut !== undefined, `'${subject.tool.name}' has no findOut`);
    this.#subject = subject;
    this.timeoutMs = timeoutMs;
  }

  /** Whether a call under a key takes effect. */
  async call(effectKey: string): Promise<boolean> {
    const { tool, input } = this.#subject;
    const runtime = createRuntime({ tools: [{ ...tool, findOut: stillUnknown }] });
    const [result] = await runtime.execute([{ id: 'call', tool: tool.name, input, effectKey }]);
    return result?.state === 'finished' && !result.isError;
  }

  async look(effectKey: string, token = new CancellationToken()): Promise<Finding['found'] | 'error'> {
    const { tool, input } = this.#subject;
    const about = { callId: 'call', effectKey, startedAt: Date.now(), signal: token.signal };
    const looking = Promise.resolve().then(() => tool.findOut!(input, about));
    const found = looking.then(
      (finding) => finding.found,
      () => 'error' as const,
    );
    return within(this.timeoutMs, found, 'findOut did not return in time');
  }
}

interface FindOutCase {
  readonly id: ToolContractCase['id'];
  readonly name: string;
  readonly check: (looks: Looks, subject: FindOutSubject) => Promise<void>;
}

const CASES: readonly FindOutCase[] = [
  {
    id: 'finds-out',
    name: 'a call that took effect is found, each time it is asked about',
    async check(looks) {
      const key = randomUUID();
      assert.ok(await looks.call(key), 'the call of the contract did not finish');
      assert.deepEqual([await looks.look(key), await looks.look(key)], ['finished', 'finished']);
    },
  },
  {
    id: 'finds-out-other-key',
    name: 'the effect of another call is not taken for this one',
    async check(looks) {
      await looks.call(randomUUID());
      assert.notEqual(await looks.look(randomUUID()), 'finished');
    },
  },
  {
    id: 'finds-out-late-effect',
    name: 'a call that is said to have had no effect can have none any more',
    async check(looks) {
      const key = randomUUID();
      const first = await looks.look(key);
      const arrived = await looks.call(key);
      if (first === 'not-started') assert.ok(!arrived, 'notStarted() for an effect that was still on its way');
      const second = await looks.look(key);
      if (arrived) assert.notEqual(second, 'not-started', 'notStarted() for an effect that is there');
      else assert.notEqual(second, 'finished', 'finished() for an effect that is not there');
    },
  },
  {
    id: 'finds-out-in-time',
    name: 'a look that is cancelled returns',
    async check(looks) {
      const token = new CancellationToken();
      const looking = looks.look(randomUUID(), token);
      token.cancel({}, { mode: 'now' });
      await looking;
    },
  },
  {
    id: 'finds-out-while-down',
    name: 'while its service is down nothing is proved',
    async check(looks, { disconnect }) {
      const key = randomUUID();
      await looks.call(key);
      await disconnect();
      assert.ok(['unknown', 'error'].includes(await looks.look(key)), 'it reports something that it cannot have asked');
    },
  },
];
