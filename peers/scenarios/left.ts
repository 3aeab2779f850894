import { getEventListeners, setMaxListeners } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { QUIET_MS, SOON_MS, WAIT_MS } from '../core/bounds.ts';
import { until, within } from '../core/clock.ts';
import { type Fixture, type Lab, NotReached } from '../core/lab.ts';
import { no, notOffered, type Scenario, yes } from '../core/scenario.ts';
import { calls, halfText } from './answers.ts';

const RUNS = 100;
/** A few listeners may belong to runs that are just ending. */
const FEW = 5;

export const left: readonly Scenario[] = [
  {
    id: 'connection',
    group: 'left',
    expects: 'The provider stops generating, because its connection is closed.',
    rule: 'The provider sees the client leave within 1 s of a stop in the middle of a sentence.',
    async play(lab) {
      const fixture = await lab.begin({ answers: [halfText] });
      await fixture.sees('upon');
      fixture.cancel();
      const request = fixture.provider.requests[0]!;
      const by = await within(request.waitForClose(), SOON_MS);
      return by === 'client' ? yes('the connection was closed') : no('the connection stayed open');
    },
  },
  {
    id: 'no-new-call',
    group: 'left',
    expects: 'A call that had not started when the stop came does not start.',
    rule: 'The first of two calls of one reply cancels the run. The second must not start.',
    async play(lab) {
      const fixture: Fixture = await lab.begin({
        answers: [calls('first', 'second')],
        tools: (witness) => [witness.quick('first', () => fixture.cancel()), witness.quick('second')],
      });
      await fixture.starts('first');
      await fixture.settle();
      await until(() => fixture.witness.has('second', 'start'), 300);
      return fixture.witness.has('second', 'start')
        ? no('the second call started after the cancel')
        : yes('it did not start');
    },
  },
  {
    id: 'no-new-request',
    group: 'left',
    expects: 'When a tool returns after the stop, the model is not asked again.',
    rule: 'A tool ignores its signal and returns after the cancel. No further request arrives in the second after that.',
    async play(lab) {
      const gate = Promise.withResolvers<void>();
      const fixture = await lab.begin({
        answers: [calls('deaf')],
        tools: (witness) => [witness.gated('deaf', gate.promise)],
      });
      await fixture.starts('deaf');
      fixture.cancel();
      gate.resolve();
      await until(() => fixture.witness.has('deaf', 'effect'), WAIT_MS);
      await until(() => fixture.provider.requests.length > 1, QUIET_MS);
      const more = fixture.provider.requests.length - 1;
      return more === 0 ? yes('no further request') : no(`${more} further request(s)`);
    },
  },
  {
    id: 'tool-signal',
    group: 'left',
    expects: 'A running tool is told to stop.',
    rule: 'The tool was given an AbortSignal, and it fires within 1 s of the cancel.',
    async play(lab) {
      const fixture = await lab.begin({ answers: [calls('polite')], tools: (witness) => [witness.polite()] });
      await fixture.starts('polite');
      fixture.cancel();
      const isTold = await until(() => fixture.witness.has('polite', 'signal'), SOON_MS);
      return isTold ? yes('its signal fired') : no('it was not told');
    },
  },
  {
    id: 'late-effect',
    group: 'left',
    expects: 'If a tool still takes effect after the run is over, the application is told.',
    rule: 'A tool ignores its signal and takes effect later. The library reports its end, or the run was not over before it.',
    async play(lab) {
      const fixture = await lab.begin({ answers: [calls('deaf')], tools: (witness) => [witness.deaf('deaf', 3_500)] });
      await fixture.starts('deaf');
      fixture.cancel();
      await until(() => fixture.witness.has('deaf', 'effect') || fixture.isEnded, WAIT_MS);
      const isOverBefore = !fixture.witness.has('deaf', 'effect');
      await until(() => fixture.witness.has('deaf', 'effect'), WAIT_MS);
      const isReported = await until(() => fixture.run.late?.includes('deaf') === true, 300);
      if (isReported) return yes('its late end was reported');
      return isOverBefore
        ? no('the run was over, and its late effect was never reported')
        : yes('the run waited for it');
    },
  },
  {
    id: 'child-process',
    group: 'left',
    expects: 'A process that a tool started with its signal ends.',
    rule: 'The process of spawn(…, { signal }) is gone within 1 s of the cancel.',
    async play(lab) {
      const fixture = await lab.begin({ answers: [calls('child')], tools: (witness) => [witness.child()] });
      await until(() => fixture.witness.has('child', 'pid'), WAIT_MS);
      const pid = fixture.witness.marks('child', 'pid')[0]?.pid ?? 0;
      fixture.cancel();
      const isGone = await until(() => !isAlive(pid), SOON_MS);
      if (isGone) return yes('the process is gone');
      process.kill(pid, 'SIGKILL');
      return no('the process was still there');
    },
  },
  {
    id: 'process-tree',
    group: 'left',
    expects: 'With the library’s own shell tool, every process of a command ends.',
    rule: 'The command starts a process in a session of its own (setsid). It is gone within 3 s of the cancel.',
    async play(lab) {
      const { shell } = lab.peer;
      if (shell === undefined) return notOffered('it has no shell tool of its own');
      const file = `${lab.folder}/pid`;
      const command = `setsid sh -c 'echo $$ > ${file}.new; mv ${file}.new ${file}; exec sleep 60' & sleep 60`;
      const answer = { parts: [{ call: shell, id: 'call_1', input: { command } }] };
      const fixture = await lab.begin({ answers: [answer], open: () => ({ shell: true }) });
      const pid = await readPid(file);
      fixture.cancel();
      const isGone = await until(() => !isAlive(pid), 3_000);
      if (isGone) return yes('all of its processes are gone');
      process.kill(pid, 'SIGKILL');
      return no('the process in its own session survived');
    },
  },
  {
    id: 'sub-agent',
    group: 'left',
    expects: 'An agent that was used as a tool stops with its parent.',
    rule: 'The sub-agent speaks when the parent is cancelled. Its connection is closed within 1 s, and nothing more is sent.',
    async play(lab) {
      const reason = lab.peer.notOffered['sub-agent'];
      if (reason !== undefined) return notOffered(reason);
      const answer = {
        parts: [
          { call: lab.peer.helper ?? 'helper', id: 'call_1', input: { note: 'x', task: 'x', input: 'x', prompt: 'x' } },
        ],
      };
      const fixture = await lab.begin({ answers: [answer, halfText], open: () => ({ helper: [] }) });
      const request = await within(fixture.provider.waitForRequest(1), WAIT_MS);
      if (request === undefined) throw new NotReached('the sub-agent never began');
      await request.waitForStall();
      fixture.cancel();
      const by = await within(request.waitForClose(), SOON_MS);
      await until(() => fixture.provider.requests.length > 2, 500);
      if (by !== 'client') return no('the sub-agent kept its connection');
      const isMore = fixture.provider.requests.length > 2;
      return isMore ? no('another request followed') : yes('it stopped with its parent');
    },
  },
  {
    id: 'listeners',
    group: 'left',
    expects: 'Runs leave no listeners on a signal that lives longer than they do.',
    rule: `After ${RUNS} finished runs with one signal, at most ${FEW} listeners are left on it.`,
    async play(lab) {
      if (!lab.peer.takesSignal) return notOffered('a run takes no signal of the caller');
      const fixture = await lab.open({ answers: [] });
      const { signal } = new AbortController();
      setMaxListeners(0, signal);
      for (let run = 0; run < RUNS; run++) await within(fixture.start('Begin', { signal }).ended, WAIT_MS);
      // What hangs on a garbage-collected request is taken off with it, by Node itself.
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
    async play(lab) {
      const unhandled: string[] = [];
      const listener = (error: unknown): unknown => unhandled.push(String(error));
      process.on('unhandledRejection', listener);
      await stopThreeTimes(lab);
      await until(() => unhandled.length > 0, 300);
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
      tools: (witness) => [witness.polite(), witness.deaf('rude', 600, 'throw')],
    });
    await fixture.starts(name);
    fixture.cancel();
    await fixture.settle();
    if (name === 'rude') await until(() => fixture.witness.has('rude', 'effect'), WAIT_MS);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function readPid(file: string): Promise<number> {
  if (!(await until(() => existsSync(file), WAIT_MS * 2))) throw new NotReached('the command never started');
  return Number(readFileSync(file, 'utf8'));
}

async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  await wait(100);
}
