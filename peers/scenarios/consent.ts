import { until, within } from '../../packages/check/src/clock.ts';
import { QUIET_MS, SOON_MS, WAIT_MS } from '../core/bounds.ts';
import { type Fixture, type Lab, NotReached } from '../core/lab.ts';
import { no, notOffered, type Scenario, yes } from '../core/scenario.ts';
import { calls } from './answers.ts';

interface Asked {
  readonly fixture: Fixture;
  readonly answer: (isAllowed: boolean) => void;
}

/** Starts a run whose call waits for approval. A deaf question stays open when it is withdrawn. */
async function ask(lab: Lab, isDeaf: boolean): Promise<Asked> {
  const question = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<boolean>();
  const fixture = await lab.begin({
    answers: [calls('pay')],
    tools: (make) => [{ ...make.quick('pay'), needsApproval: true }],
    open: {
      approve: (signal) => {
        question.resolve();
        if (isDeaf) return answer.promise;
        return new Promise((resolve) => {
          signal?.addEventListener('abort', () => resolve(false), { once: true });
          answer.promise.then(resolve, resolve);
        });
      },
    },
  });
  if (!(await within(WAIT_MS, question.promise))) throw new NotReached('the person was never asked');
  return { fixture, answer: answer.resolve };
}

export const consent: readonly Scenario[] = [
  {
    id: 'pending-question',
    group: 'consent',
    expects: 'A stop during an approval request ends the run without an answer.',
    rule: 'The run ends within 1 s of the cancel, and the call never starts.',
    async run(lab) {
      const reason = lab.peer.notOffered['consent'];
      if (reason !== undefined) return notOffered(reason);
      const asked = await ask(lab, false);
      asked.fixture.cancel();
      const settled = await asked.fixture.settle(SOON_MS);
      const hasRun = asked.fixture.probe.hasStarted('pay');
      asked.answer(false);
      if (hasRun) return no('the call ran');
      return settled ? yes('the run was over, and nothing ran') : no('the run waited for the answer');
    },
  },
  {
    id: 'late-yes',
    group: 'consent',
    expects: 'A late approval runs nothing.',
    rule: 'The run is cancelled, then the question is approved. The call never starts.',
    async run(lab) {
      const reason = lab.peer.notOffered['consent'];
      if (reason !== undefined) return notOffered(reason);
      const asked = await ask(lab, true);
      asked.fixture.cancel();
      await asked.fixture.settle(SOON_MS);
      asked.answer(true);
      const hasRun = await until(QUIET_MS, () => asked.fixture.probe.hasStarted('pay'));
      return hasRun ? no('the call ran after the stop') : yes('nothing ran');
    },
  },
];
