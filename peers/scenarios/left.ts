import { getEventListeners, setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { until, within } from '../../packages/check/src/clock.ts';
import { QUIET_MS, SOON_MS, WAIT_MS } from '../core/bounds.ts';
import { type Fixture, type Lab, NotReached } from '../core/lab.ts';
import { no, notOffered, type Scenario, yes } from '../core/scenario.ts';
import { createChildTool } from '../core/tools.ts';
import { calls, halfText } from './answers.ts';

const RUNS = 100;
/** A few listeners may belong to runs that are just ending. */
const FEW = 5;
/** When a tool that ignores its signal takes effect, or rejects. */
const LATE_MS = 3_500;
const REJECTS_MS = 600;

export const left: readonly Scenario[] = [
  {
    id: 'connection',
    group: 'left',
    expects: 'The provider stops generating, because its connection is closed.',
    rule: 'The provider sees the client leave within 1 s of a stop mid-sentence.',
    async run(lab) {
      const fixture = await lab.begin({ answers: [halfText] });
      await fixture.sees('upon');
      fixture.cancel();
      const request = fixture.provider.requests[0]!;
      await within(SOON_MS, request.waitForClose());
      return request.closedBy === 'client' ? yes('the connection was closed') : no('the connection stayed open');
    },
  },
  {
    id: 'no-new-call',
    group: 'left',
    expects: 'A call that had not started when the stop came does not start.',
    rule: 'The first of two calls of one reply cancels the run. The second must not start.',
    async run(lab) {
      const fixture: Fixture = await lab.begin({
        answers: [calls('first', 'second')],
        tools: (make) => [make.quick('first', () => fixture.cancel()), make.quick('second')],
      });
      await fixture.starts('first');
      await fixture.settle();
      await until(300, () => fixture.probe.hasStarted('second'));
      return fixture.probe.hasStarted('second')
        ? no('the second call started after the cancel')
        : yes('it did not start');
    },
  },
  {
    id: 'no-new-request',
    group: 'left',
    expects: 'When a tool returns after the stop, the model is not called again.',
    rule: 'A tool ignores its signal and returns after the cancel. No further request arrives in the second after that.',
    async run(lab) {
      const fixture = await lab.begin({ answers: [calls('deaf')], tools: (make) => [make.deaf()] });
      await fixture.starts('deaf');
      fixture.cancel();
      fixture.probe.finish('deaf');
      await fixture.finishes('deaf');
      await until(QUIET_MS, () => fixture.provider.requests.length > 1);
      const more = fixture.provider.requests.length - 1;
      return more === 0 ? yes('no further request') : no(`${more} further request(s)`);
    },
  },
  {
    id: 'tool-signal',
    group: 'left',
    expects: 'A running tool is notified of the stop.',
    rule: 'The tool was given an AbortSignal, and it fires within 1 s of the cancel.',
    async run(lab) {
      const fixture = await lab.begin({ answers: [calls('polite')], tools: (make) => [make.polite()] });
      await fixture.starts('polite');
      fixture.cancel();
      const left = await fixture.probe.waitForEnd('polite', SOON_MS);
      return left.length === 0 ? yes('its signal fired') : no('it was not told');
    },
  },
  {
    id: 'late-effect',
    group: 'left',
    expects: 'If a tool still takes effect after the run has ended, the application learns it.',
    rule: 'A tool ignores its signal and takes effect later. The library reports its end, or the run was not over before it.',
    async run(lab) {
      const fixture = await lab.begin({ answers: [calls('deaf')], tools: (make) => [make.deaf()] });
      await fixture.starts('deaf');
      fixture.cancel();
      const isOverBefore = await until(LATE_MS, () => fixture.isEnded);
      fixture.probe.finish('deaf');
      await fixture.finishes('deaf');
      const isReported = await until(300, () => fixture.run.late?.includes('deaf') === true);
      if (isReported) return yes('its late end was reported');
      return isOverBefore
        ? no('the run had ended, and its late effect was never reported')
        : yes('the run waited for it');
    },
  },
  {
    id: 'child-process',
    group: 'left',
    expects: 'A process that a tool started with its signal ends.',
    rule: 'The process of spawn(…, { signal }) is gone within 1 s of the cancel.',
    async run(lab) {
      const fixture = await lab.begin({
        answers: [calls('child')],
        tools: (_make, probe) => [createChildTool('child', probe)],
      });
      await fixture.starts('child');
      fixture.cancel();
      const left = await fixture.probe.waitForEnd('child', SOON_MS);
      return left.length === 0 ? yes('the process is gone') : no('the process was still there');
    },
  },
  {
    id: 'process-tree',
    group: 'left',
    expects: 'With the library’s own shell tool, every process of a command ends.',
    rule: 'The command starts a process in a separate session (setsid). It is gone within 3 s of the cancel.',
    async run(lab) {
      const { shell } = lab.peer;
      if (shell === undefined) return notOffered('it has no shell tool');
      const fixture = await lab.begin({
        answers: (probe) => [
          { parts: [{ call: shell, id: 'call_1', input: { command: probe.command('tree', 'tree') } }] },
        ],
        open: { shell: true },
      });
      await fixture.starts('tree', 'tree');
      fixture.cancel();
      const left = await fixture.probe.waitForEnd('tree', 3_000);
      if (left.length === 0) return yes('all of its processes are gone');
      return no(left.includes('detached') ? 'the process in its own session survived' : 'a process survived');
    },
  },
  {
    id: 'sub-agent',
    group: 'left',
    expects: 'An agent that was used as a tool stops with its parent.',
    rule: 'The sub-agent is streaming when the parent is cancelled. Its connection is closed within 1 s, and nothing more is sent.',
    async run(lab) {
      const reason = lab.peer.notOffered['sub-agent'];
      if (reason !== undefined) return notOffered(reason);
      const answer = {
        parts: [
          { call: lab.peer.helper ?? 'helper', id: 'call_1', input: { note: 'x', task: 'x', input: 'x', prompt: 'x' } },
        ],
      };
      const fixture = await lab.begin({ answers: [answer, halfText], open: { helper: [] } });
      const started = fixture.provider.waitForRequest(1);
      if (!(await within(WAIT_MS, started))) throw new NotReached('the sub-agent never began');
      const request = await started;
      await request.waitForStall();
      fixture.cancel();
      await within(SOON_MS, request.waitForClose());
      await until(500, () => fixture.provider.requests.length > 2);
      if (request.closedBy !== 'client') return no('the sub-agent kept its connection');
      const isMore = fixture.provider.requests.length > 2;
      return isMore ? no('another request followed') : yes('it stopped with its parent');
    },
  },
  {
    id: 'listeners',
    group: 'left',
    expects: 'Runs leave no listeners on a signal that outlives them.',
    rule: `After ${RUNS} finished runs with one signal, at most ${FEW} listeners are left on it.`,
    async run(lab) {
      if (!lab.peer.takesSignal) return notOffered("a run does not take the caller's signal");
      const fixture = await lab.open({ answers: [] });
      const { signal } = new AbortController();
      setMaxListeners(0, signal);
      for (let run = 0; run < RUNS; run++) await within(WAIT_MS, fixture.start('Begin', { signal }).ended);
      // Node itself removes listeners of a garbage-collected request.
      for (let round = 0; round < 3; round++) await collectGarbage();
      const count = getEventListeners(signal, 'abort').length;
      return count <= FEW ? yes(`${count} listeners`) : no(`${count} listeners`);
    },
  },
  {
    id: 'unhandled',
    group: 'left',
    expects: 'A stop never causes an unhandled rejection, which would end the process.',
    rule: 'A stop in a sentence, one in a call, and one after which a tool rejects late: no unhandledRejection event.',
    async run(lab) {
      const unhandled: string[] = [];
      const listener = (error: unknown): unknown => unhandled.push(String(error));
      process.on('unhandledRejection', listener);
      await stopThreeTimes(lab);
      await until(300, () => unhandled.length > 0);
      process.off('unhandledRejection', listener);
      return unhandled.length === 0 ? yes('none') : no(`unhandled: ${unhandled[0]?.slice(0, 100)}`);
    },
  },
];

async function stopThreeTimes(lab: Lab): Promise<void> {
  const sentence = await lab.begin({ answers: [halfText] });
  await sentence.sees('upon');
  sentence.cancel();
  for (const name of ['polite', 'rude']) {
    const fixture = await lab.begin({
      answers: [calls(name)],
      tools: (make) => [make.polite(), make.rude()],
    });
    await fixture.starts(name);
    fixture.cancel();
    await fixture.settle(name === 'rude' ? REJECTS_MS : WAIT_MS);
    if (!fixture.probe.finish('rude')) continue;
    await fixture.finishes('rude');
    await fixture.settle();
  }
}

async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  await wait(100);
}
