import { until, within } from '../../packages/check/src/clock.ts';
import { WAIT_MS } from '../core/bounds.ts';
import { missing, no, partly, type Scenario, yes } from '../core/scenario.ts';
import { calls, halfText } from './answers.ts';

export const newer: readonly Scenario[] = [
  {
    id: 'replace',
    group: 'newer',
    expects: 'A newer message replaces the running reply.',
    rule: 'One call of the library sends it: the old request is closed, and the new message is answered with the text so far in its history.',
    async run(lab) {
      const fixture = await lab.begin({ answers: [halfText], open: { isConversation: true } });
      if (fixture.run.replace === undefined)
        return missing(lab.peer, 'replace', 'the application must cancel, wait and start again');
      await fixture.sees('upon');
      if (!(await within(WAIT_MS, fixture.run.replace('Something else'))))
        return no('the newer message was not answered');
      const [old, request] = fixture.provider.requests;
      if (old?.closedBy !== 'client') return no('the old request was not closed');
      const said = JSON.stringify(request?.body ?? '');
      if (!said.includes('Something else')) return no('the newer message was not sent');
      return said.includes('upon a time')
        ? yes('it was answered')
        : partly('it was answered, but the text so far is lost');
    },
  },
  {
    id: 'steer',
    group: 'newer',
    expects: 'A message sent while a call runs reaches the model with the next request.',
    rule: 'The request after the call contains it, and the run continues.',
    async run(lab) {
      const fixture = await lab.begin({ answers: [calls('deaf')], tools: (make) => [make.deaf()] });
      if (fixture.run.steer === undefined) return missing(lab.peer, 'steer', 'nothing can be added to a run');
      await fixture.starts('deaf');
      fixture.run.steer('Mind the gap');
      fixture.probe.finish('deaf');
      await until(WAIT_MS, () => fixture.provider.requests.length > 1);
      const isThere = JSON.stringify(fixture.provider.requests[1]?.body ?? '').includes('Mind the gap');
      return isThere ? yes('it is in the next request') : no('it is not in the next request');
    },
  },
];
