import { until, within } from '../../packages/check/src/clock.ts';
import { DEAF_MS, SOON_MS, WAIT_MS } from '../core/bounds.ts';
import { type Fixture, type Lab, NotReached } from '../core/lab.ts';
import { no, notOffered, partly, type Scenario, type Verdict, yes } from '../core/scenario.ts';
import { calls, halfArguments, halfText, silence } from './answers.ts';

const SAMPLES = 20;
const FAST_MS = 50;

const SOON = `The run ends within ${SOON_MS / 1000} s and the library reports it as cancelled.`;

/** Cancels, and checks when and how the run ends. */
async function judgeStop(fixture: Fixture, limitMs: number = SOON_MS): Promise<Verdict> {
  fixture.cancel();
  const settled = await fixture.settle();
  if (settled === undefined) return no(`the run was still active ${WAIT_MS / 1000} s after the cancel`);
  const { ending, afterMs } = settled;
  if (afterMs > limitMs) return no(`the run ended only ${afterMs} ms after the cancel (${ending.says})`);
  const when = afterMs <= FAST_MS ? `within ${FAST_MS} ms` : `after about ${Math.ceil(afterMs / 100) * 100} ms`;
  return ending.isCancelled
    ? yes(`ended ${when}: ${ending.says}`)
    : partly(`ended ${when}, but not as cancelled: ${ending.says}`);
}

async function whileModel(lab: Lab, what: 'thinks' | 'speaks' | 'calls'): Promise<Verdict> {
  const answers = { thinks: silence, speaks: halfText, calls: halfArguments('quick') };
  const fixture = await lab.begin({ answers: [answers[what]], tools: (make) => [make.quick()] });
  if (what === 'speaks') await fixture.sees('upon');
  else await (await fixture.provider.waitForRequest(0)).waitForStall();
  return judgeStop(fixture);
}

async function sampleLatency(lab: Lab): Promise<number[]> {
  const samples: number[] = [];
  const answers = Array.from({ length: SAMPLES }, () => halfText);
  const fixture = await lab.open({ answers });
  for (let turn = 0; turn < SAMPLES; turn++) {
    const run = fixture.start('Begin');
    await fixture.sees('upon');
    const from = performance.now();
    run.cancel('the user asked');
    if (!(await within(WAIT_MS, run.ended))) return [];
    samples.push(performance.now() - from);
  }
  return samples.sort((one, other) => one - other);
}

export const time: readonly Scenario[] = [
  {
    id: 'while-thinking',
    group: 'time',
    expects: 'A cancel before the model has sent anything ends the run.',
    rule: SOON,
    run: (lab) => whileModel(lab, 'thinks'),
  },
  {
    id: 'while-speaking',
    group: 'time',
    expects: 'A cancel mid-sentence ends the run.',
    rule: SOON,
    run: (lab) => whileModel(lab, 'speaks'),
  },
  {
    id: 'while-calling',
    group: 'time',
    expects: 'A cancel while the arguments of a call arrive ends the run, and the call is not made.',
    rule: `${SOON} The tool never starts.`,
    run: (lab) => whileModel(lab, 'calls'),
  },
  {
    id: 'polite-tool',
    group: 'time',
    expects: 'A cancel while a tool runs that listens to its signal ends the run.',
    rule: SOON,
    async run(lab) {
      const fixture = await lab.begin({ answers: [calls('polite')], tools: (make) => [make.polite()] });
      await fixture.starts('polite');
      return judgeStop(fixture);
    },
  },
  {
    id: 'deaf-tool',
    group: 'time',
    expects: 'A tool that ignores its signal and never returns cannot block the run.',
    rule: `The run ends within ${DEAF_MS / 1000} s.`,
    async run(lab) {
      const fixture = await lab.begin({ answers: [calls('deaf')], tools: (make) => [make.deaf()] });
      await fixture.starts('deaf');
      return judgeStop(fixture, DEAF_MS);
    },
  },
  {
    id: 'before-start',
    group: 'time',
    expects: 'A run that is given an aborted signal does nothing.',
    rule: 'No request reaches the provider, and the run ends within 1 s as cancelled.',
    async run(lab) {
      if (!lab.peer.takesSignal) return notOffered("a run does not take the caller's signal");
      const fixture = await lab.open({ answers: [halfText] });
      fixture.cancelledAt = performance.now();
      fixture.start('Begin', { signal: AbortSignal.abort() });
      return judgeNothingSent(fixture);
    },
  },
  {
    id: 'same-tick',
    group: 'time',
    expects: 'A cancel in the same tick as the start is not lost.',
    rule: 'The run ends within 1 s as cancelled, and no request stays open.',
    async run(lab) {
      const fixture = await lab.begin({ answers: [halfText] });
      fixture.cancel();
      return judgeNothingSent(fixture);
    },
  },
  {
    id: 'twice',
    group: 'time',
    expects: 'A second cancel does no harm, and the first reason stays.',
    rule: `${SOON} If the library shows a reason, it is the first.`,
    async run(lab) {
      const fixture = await lab.begin({ answers: [halfText] });
      await fixture.sees('upon');
      fixture.run.cancel('the first');
      fixture.run.cancel('the second');
      const verdict = await judgeStop(fixture);
      const reason = (await fixture.settle())?.ending.reason;
      return reason?.includes('second') === true ? no('the second reason replaced the first') : verdict;
    },
  },
  {
    id: 'after-end',
    group: 'time',
    expects: 'A cancel after the end changes nothing, and the next turn works.',
    rule: 'The finished run still counts as finished, and the next turn is answered.',
    async run(lab) {
      const fixture = await lab.begin({ answers: [{ parts: [{ text: 'Done.' }] }] });
      const { ending } = (await fixture.settle()) ?? {};
      if (ending === undefined || ending.isCancelled) throw new NotReached('the run without a cancel did not finish');
      fixture.cancel();
      const next = await fixture.next(ending.session);
      return next.ending.isCancelled ? no(`the next turn: ${next.ending.says}`) : yes('the next turn was answered');
    },
  },
  {
    id: 'between-retries',
    group: 'time',
    expects: 'A cancel while the library waits to ask an overloaded provider again ends the wait.',
    rule: `${SOON} No further request is sent.`,
    async run(lab) {
      const busy = { status: 503, message: 'Overloaded', headers: { 'retry-after': '5' } };
      const fixture = await lab.begin({ answers: [busy, busy, busy, busy] });
      await (await fixture.provider.waitForRequest(0)).waitForClose();
      if (await until(300, () => fixture.isEnded)) return notOffered('a rejected request was not sent again');
      const sent = fixture.provider.requests.length;
      const verdict = await judgeStop(fixture);
      await until(5_500, () => fixture.provider.requests.length > sent);
      return fixture.provider.requests.length > sent ? no('it asked again after the cancel') : verdict;
    },
  },
  {
    id: 'latency',
    group: 'time',
    expects: 'A stop feels immediate.',
    rule: `The median of ${SAMPLES} stops mid-sentence is at most ${FAST_MS} ms.`,
    async run(lab) {
      const samples = await sampleLatency(lab);
      const median = samples[Math.floor(samples.length / 2)];
      if (median === undefined) return no('a run did not end');
      return (median <= FAST_MS ? yes : no)(`median ${median.toFixed(1)} ms`);
    },
  },
];

async function judgeNothingSent(fixture: Fixture): Promise<Verdict> {
  const settled = await fixture.settle();
  await until(300, () => fixture.provider.openResponses > 0);
  if (settled === undefined) return no(`the run was not over ${WAIT_MS / 1000} s later`);
  if (fixture.provider.openResponses > 0) return no('the model was asked, and the request stayed open');
  const { says, isCancelled } = settled.ending;
  const sent = fixture.provider.requests.length === 0 ? 'nothing was sent' : 'a request was sent and closed';
  const isSilent = fixture.provider.requests.length === 0;
  if (!isCancelled) return (isSilent ? partly : no)(`${sent}, but the library does not call it cancelled: ${says}`);
  return isSilent ? yes(sent) : partly(sent);
}
