import { until, within } from '../../packages/check/src/clock.ts';
import { SOON_MS, WAIT_MS } from '../core/bounds.ts';
import { callsIn } from '../core/request.ts';
import { missing, no, partly, type Scenario, yes } from '../core/scenario.ts';
import { calls, halfText } from './answers.ts';

export const target: readonly Scenario[] = [
  {
    id: 'sibling',
    group: 'target',
    expects: 'A stop of one run does not affect another run of the same agent.',
    rule: 'Two runs at the same time, one is cancelled. The other one finishes with its text.',
    async run(lab) {
      const gate = Promise.withResolvers<void>();
      const goesOn = { parts: [{ text: ['I go ', { stall: gate.promise }, 'on.'] }] };
      const fixture = await lab.begin({ answers: [halfText, goesOn] });
      const first = fixture.run;
      await fixture.sees('upon');
      const second = fixture.start('Begin');
      await fixture.sees('I go');
      first.cancel('the user asked');
      const isStopped = await within(SOON_MS, first.ended);
      gate.resolve();
      const isOver = await within(WAIT_MS, second.ended);
      if (!isStopped) return no('the cancelled run did not end');
      if (!isOver) return no('the other run: did not end');
      const { isCancelled, says } = await second.ended;
      const isWhole = !isCancelled && second.text().includes('on.');
      return isWhole ? yes('the other run finished') : no(`the other run: ${says}`);
    },
  },
  {
    id: 'one-call',
    group: 'target',
    expects: 'One call can be stopped, and the run continues with the others.',
    rule: 'Of two running calls one is cancelled. The model is called again with the results of both.',
    async run(lab) {
      const fixture = await lab.begin({
        answers: [calls('deaf', 'polite')],
        tools: (make) => [make.deaf(), make.polite()],
      });
      if (fixture.run.cancelCall === undefined) return missing(lab.peer, 'one-call', 'only a whole run can be stopped');
      await fixture.starts('polite');
      await fixture.starts('deaf');
      fixture.run.cancelCall('polite');
      fixture.probe.finish('deaf');
      const isOver = await within(WAIT_MS, fixture.run.ended);
      const request = fixture.provider.requests[1];
      if (!isOver || request === undefined) return no('the run did not continue');
      const results = callsIn(request).map(({ tool, result }) => `${tool}: ${result?.slice(0, 60)}`);
      return results.length === 2 ? yes(results.join('; ')) : no(results.join('; '));
    },
  },
  {
    id: 'soft-stop',
    group: 'target',
    expects: 'A run can be asked to stop after the call that is running.',
    rule: 'The call finishes, the model is not called again, the run has ended, and the next turn has the result.',
    async run(lab) {
      const fixture = await lab.begin({ answers: [calls('deaf')], tools: (make) => [make.deaf()] });
      if (fixture.run.stopSoftly === undefined) return missing(lab.peer, 'soft-stop', 'a stop is always immediate');
      await fixture.starts('deaf');
      fixture.run.stopSoftly();
      fixture.probe.finish('deaf');
      const settled = await fixture.settle();
      if (!(await fixture.finishes('deaf'))) return no('the call did not finish');
      if (settled === undefined) return no('the run did not end');
      await until(300, () => fixture.provider.requests.length > 1);
      if (fixture.provider.requests.length > 1) return no('the model was asked again');
      const { request, ending: next } = await fixture.next(settled.ending.session);
      if (request === undefined) return partly(`it stopped, but the next turn sent nothing: ${next.says}`);
      const isKept = callsIn(request).some(({ result }) => result?.includes('deaf is done'));
      return isKept
        ? yes('the call finished, and the next turn has its result')
        : partly('it stopped, but the result is lost');
    },
  },
];
