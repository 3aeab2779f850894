import { randomUUID } from 'node:crypto';
import type { Clock } from '@whoa/core/embed';
import { waitAtMost } from '@whoa/core/internal';
import { encode, type Fields, isError, type Message } from './message.ts';
import type { AgentCleanup, AgentMoment, AgentSpan, ProxiedAgent } from './options.ts';
import { Port, type PortHandlers } from './port.ts';

/** How long an agent that was started again may take to answer. */
const GREET_MS = 60_000;
/** How often an agent may be started again within a minute. */
const MAX_RESTARTS = 30;
const MINUTE_MS = 60_000;
/** How long the rest of what a process wrote may take to be read after its end. */
const REST_MS = 200;
/** How many messages wait for an agent that starts, before the editor is not read. */
const MAX_WAITING = 256;
/** How long an agent may read nothing of what waits for it. */
const STUCK_MS = 10_000;
const NOTHING: AgentCleanup = { verified: 'no', ended: 0, survivors: 0 };

interface LifeOptions extends Pick<PortHandlers, 'onLine' | 'onSkipped'> {
  readonly clock: Clock;
  readonly editor: Port;
  readonly start: () => Promise<ProxiedAgent>;
  readonly follow: (work: Promise<unknown>) => void;
  /** Its process ended, and no one had ended it. */
  readonly onGone: (code: number | null) => void;
  /** Its process is about to be replaced. Returns what to send to the next one first. */
  readonly onRestart: (why: string) => readonly string[];
}

/** The agent's process, and the next one when it had to be ended. */
export class AgentLife {
  /** How the editor greeted, and logged in: to be repeated. */
  hello: Message | undefined;
  login: Message | undefined;
  capabilities: Fields | undefined;
  /** When something of the agent was last read. */
  lastReceivedAt = 0;
  readonly #options: LifeOptions;
  readonly #waiting: string[] = [];
  readonly #own = new Map<string, (message: Message | undefined) => void>();
  #agent: ProxiedAgent | undefined;
  #port: Port | undefined;
  #isReady = false;
  #isOver = false;
  #restarting: Promise<void> | undefined;
  #restarts: number[] = [];

  constructor(options: LifeOptions) {
    this.#options = options;
    options.follow(this.#launch().then(() => this.#flush()));
  }

  send(line: string): void {
    if (this.#isReady) this.#port?.send(line);
    else if (this.#waiting.push(line) > MAX_WAITING) this.#options.editor.pause('waiting', true);
  }

  now(): AgentMoment {
    return this.#agent?.now() ?? { pid: 0, startTime: 0 };
  }

  async endSince(
    moment: AgentMoment,
    { except, onDead }: { readonly except: readonly AgentSpan[]; readonly onDead: () => void },
  ): Promise<AgentCleanup> {
    return (await this.#agent?.endSince(moment, { except, onDead })) ?? NOTHING;
  }

  /** Sends a request of the proxy. Resolves with the response; `undefined` if there is none. */
  async request(method: string, params: Fields): Promise<Message | undefined> {
    const id = `whoa-${randomUUID()}`;
    const { promise, resolve } = Promise.withResolvers<Message | undefined>();
    const timer = this.#options.clock.setTimer(GREET_MS, () => resolve(undefined));
    this.#own.set(id, resolve);
    this.#port?.send(encode({ id, method, params }));
    const answer = await promise;
    timer[Symbol.dispose]();
    this.#own.delete(id);
    return answer;
  }

  /** Takes the response to a request of the proxy. Returns whether it was one. */
  take(message: Message): boolean {
    const finish = typeof message.id === 'string' ? this.#own.get(message.id) : undefined;
    finish?.(message);
    return finish !== undefined;
  }

  /** Resolves when an agent is there. */
  async ready(): Promise<void> {
    await this.#restarting;
  }

  /** Ends the process and starts another. */
  restart(why: string): Promise<void> {
    return (this.#restarting ??= this.#restart(why).finally(() => {
      this.#restarting = undefined;
    }));
  }

  pause(isPaused: boolean): void {
    this.#port?.pause('editor', isPaused);
  }

  /** Asks the agent to end by the end of its input; ends it after `ms`. */
  async end(ms: number): Promise<AgentCleanup> {
    this.#isOver = true;
    for (const finish of this.#own.values()) finish(undefined);
    await this.#restarting?.catch(() => {});
    const agent = this.#agent;
    if (agent === undefined) return NOTHING;
    agent.stdin.end();
    await waitAtMost(agent.exited, ms, this.#options.clock);
    const cleanup = await agent.end();
    this.#port?.close();
    return cleanup;
  }

  async #launch(): Promise<void> {
    const { start, onLine, onSkipped, onGone, clock, follow } = this.#options;
    const agent = await start();
    if (this.#isOver) {
      await agent.end();
      return;
    }
    this.#agent = agent;
    const read = Promise.withResolvers<void>();
    this.#port = new Port(agent.stdout, agent.stdin, {
      onLine: (line) => {
        this.lastReceivedAt = clock.now();
        onLine(line);
      },
      onSkipped,
      onEnd: read.resolve,
      onFull: this.#watchQueue(),
    });
    const watch = async (): Promise<void> => {
      const { code } = await agent.exited;
      await waitAtMost(read.promise, REST_MS, clock);
      if (this.#agent !== agent || this.#isOver) return;
      if (this.#restarting === undefined) onGone(code);
      else for (const finish of this.#own.values()) finish(undefined);
    };
    follow(watch());
  }

  /** An editor that sends more than the agent reads waits; an agent that reads nothing is started again. */
  #watchQueue(): (isFull: boolean) => void {
    const { clock, editor, follow } = this.#options;
    let timer: Disposable | undefined;
    return (isFull) => {
      editor.pause('agent', isFull);
      timer?.[Symbol.dispose]();
      const restart = (): void => follow(this.restart('it read nothing of what was sent to it'));
      timer = isFull ? clock.setTimer(STUCK_MS, restart, { keepAlive: false }) : undefined;
    };
  }

  async #restart(why: string): Promise<void> {
    const { clock, editor, onRestart } = this.#options;
    this.#restarts = [...this.#restarts.filter((at) => clock.now() - at < MINUTE_MS), clock.now()];
    this.#isReady = false;
    this.#port?.close();
    editor.pause('agent', false);
    this.#waiting.push(...onRestart(why));
    await this.#agent?.end();
    if (this.#isOver) return;
    if (this.#restarts.length > MAX_RESTARTS) throw new Error(`the agent had to be restarted too often: ${why}`);
    await this.#launch();
    for (const message of [this.hello, this.login]) {
      if (message?.method === undefined) continue;
      const answer = await this.request(message.method, message.params);
      if (this.#isOver) return;
      if (answer === undefined || isError(answer)) throw new Error('the agent could not be restarted');
    }
    this.#flush();
  }

  #flush(): void {
    this.#isReady = true;
    for (const line of this.#waiting.splice(0)) this.#port?.send(line);
    this.#options.editor.pause('waiting', false);
  }
}
