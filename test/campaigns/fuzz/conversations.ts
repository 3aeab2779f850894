// Random conversations in virtual time: messages of all policies, with contexts, tokens, delays and ids that repeat, are cancelled,
// withdrawn, removed, evicted and disposed, also from hooks. The oracle shares no code with `checkHistory`.
import {
  type CancellationToken,
  type Conversations,
  createAgent,
  createConversations,
  defineTool,
  type Reply,
  type StopMode,
  CancellationToken as Token,
} from '@whoa/core';
import type { Model } from '@whoa/core/model';
import { createVirtualWorld } from '@whoa/core/testing';
import { z } from 'zod';
import { Dice } from './dice.ts';
import { type AnyMessage, Found, findUnmatched, settle } from './found.ts';
import { wait } from './run-tools.ts';

const IDS = ['A', 'A', 'A', 'B', 'C'] as const;
const POLICIES = ['replace', 'queue', 'merge', 'steer', 'reject'] as const;
const MODES: readonly StopMode[] = ['graceful', 'now', 'kill'];
const STATUSES: ReadonlySet<string> = new Set([
  'answered',
  'failed',
  'cancelled',
  'superseded',
  'rejected',
  'merged',
  'steered',
  'duplicate',
]);

export async function fuzzConversations({
  from,
  count,
}: {
  readonly from: number;
  readonly count: number;
}): Promise<Found> {
  const found = new Found();
  for (let seed = from; seed < from + count; seed++) {
    found.where = `conversation ${seed}`;
    await new FuzzedConversations(seed, found).run();
  }
  return found;
}

interface Sent {
  readonly id: string;
  readonly messageId: string | undefined;
  readonly user: string;
  readonly text: string;
  reply?: Reply;
}

class FuzzedConversations {
  readonly #dice: Dice;
  readonly #found: Found;
  readonly #world: ReturnType<typeof createVirtualWorld>;
  readonly #conversations: Conversations;
  readonly #sent: Sent[] = [];
  readonly #delivered: Reply[] = [];
  readonly #tokens: CancellationToken[] = [];
  readonly #running = new Map<string, number>();
  /** Conversations that were forgotten at some time. */
  readonly #removed = new Set<string>();
  readonly #maxConversations: number;
  #movesLeft: number;
  #disposing: PromiseLike<void> | undefined;
  #isDisposed = false;
  #calls = 0;

  constructor(seed: number, found: Found) {
    const dice = new Dice(seed);
    this.#dice = dice;
    this.#found = found;
    this.#world = createVirtualWorld({ seed });
    this.#movesLeft = 2 + dice.below(3);
    this.#maxConversations = dice.chance(0.3) ? 1 + dice.below(2) : Infinity;
    const tool = defineTool({
      name: 'work',
      description: 'Works',
      inputSchema: z.unknown(),
      inputJsonSchema: { type: 'object' },
      effects: 'read',
      ...(dice.chance(0.3) && { whenCancelled: 'finish' as const, timeoutMs: 500 }),
      execute: async (_input, { signal }) => {
        this.#act('tool');
        await wait(this.#world.clock, dice.pick([0, 20, 300]), dice.chance(0.7) ? signal : undefined);
        return 'worked';
      },
    } as Parameters<typeof defineTool>[0]);
    const agent = createAgent({
      name: 'a',
      world: this.#world,
      model: this.#createModel(),
      tools: [tool],
      stopMode: dice.pick(['graceful', 'now', 'kill'] as const),
    });
    this.#conversations = createConversations({
      agent,
      world: this.#world,
      policy: dice.pick(POLICIES),
      maxConversations: this.#maxConversations,
      onReply: async (reply) => {
        this.#act('onReply');
        await wait(this.#world.clock, dice.pick([0, 10, 100]));
        this.#delivered.push(reply);
      },
      hooks: { any: ({ type }) => this.#act(`hook ${type}`) },
    });
  }

  async run(): Promise<void> {
    const { clock } = this.#world;
    for (let left = 3 + this.#dice.below(8); left > 0; left--)
      clock.setTimer(this.#dice.pick([0, 0, 1, 20, 60, 200, 500]), () =>
        this.#dice.chance(0.75) ? this.#say() : this.#move('timer'),
      );
    for (let step = 0; step < 2_000; step++) {
      await settle();
      if (clock.fireNext()) continue;
      await settle();
      if (!clock.fireNext()) break;
    }
    await settle();
    this.#check();
  }

  #createModel(): Model {
    const dice = this.#dice;
    const { clock } = this.#world;
    const calls = (): string => `c${++this.#calls}`;
    const act = (where: string): void => this.#act(where);
    async function* reply(isAnswer: boolean, signal: AbortSignal) {
      act('model');
      if (dice.chance(0.05)) throw new Error('the model failed');
      if (isAnswer && dice.chance(0.6)) {
        const call = { callId: calls(), tool: 'work' };
        yield { type: 'call-start', ...call } as const;
        yield { type: 'call-end', ...call, input: {} } as const;
      } else
        for (let words = 1 + dice.below(3); words > 0; words--) {
          await wait(clock, dice.pick([0, 5, 50]), signal);
          act('text');
          yield { type: 'text', text: 'word ' } as const;
        }
      yield { type: 'finish', stopReason: 'stop' } as const;
    }
    return {
      name: 'random',
      stream: ({ messages }, { signal }) => {
        const unmatched = findUnmatched(messages as readonly AnyMessage[]);
        this.#found.expect(unmatched === undefined, `a request has ${unmatched}`);
        return reply(messages.at(-1)!.role === 'user', signal);
      },
    };
  }

  #say(): void {
    const dice = this.#dice;
    const [id, number] = [dice.pick(IDS), this.#sent.length + 1];
    const messageId = dice.chance(0.1) ? `m${1 + dice.below(number)}` : dice.chance(0.7) ? `m${number}` : undefined;
    const one: Sent = { id, messageId, user: dice.pick(['ann', 'bob']), text: `text ${number}` };
    this.#sent.push(one);
    const token = dice.chance(0.2) ? new Token({ clock: this.#world.clock }) : undefined;
    if (token !== undefined) this.#tokens.push(token);
    const policy = dice.chance(0.7) ? dice.pick(POLICIES) : undefined;
    this.#found.count(policy ?? 'the usual policy');
    const options = {
      ...(policy && { policy }),
      ...(messageId && { messageId }),
      ...(dice.chance(0.3) && { debounceMs: dice.pick([1, 50, 200]) }),
      ...(token && { token }),
      context: { user: one.user },
      onEvent: ({ type }: { readonly type: string }) => this.#watch(id, type),
    };
    this.#conversations.processMessage(id, one.text, options).then(
      (reply) => (one.reply = reply),
      (error: unknown) => this.#found.expect(false, `a message was rejected: ${String(error)}`),
    );
  }

  #watch(id: string, type: string): void {
    const running = this.#running.get(id) ?? 0;
    if (type === 'run-start') {
      this.#found.expect(running === 0, 'two runs of one conversation at the same time');
      this.#found.expect(!this.#isDisposed, 'a run started after everything was disposed');
      this.#running.set(id, running + 1);
    } else if (type === 'run-end') this.#running.set(id, running - 1);
    this.#act(`event ${type}`, 0.01);
  }

  #act(where: string, probability = 0.03): void {
    if (this.#dice.chance(where === 'hook message-received' ? 0.1 : probability)) this.#move(where);
  }

  #move(where: string): void {
    if (this.#movesLeft-- <= 0) return;
    const dice = this.#dice;
    const move = dice.pick([
      'cancel',
      'cancel',
      'message',
      'message',
      'withdraw',
      'remove',
      'remove',
      'dispose',
    ] as const);
    this.#found.count(where === 'hook message-received' ? `${move} while a message is received` : move);
    const id = dice.pick(['A', 'B'] as const);
    if (move === 'cancel') this.#cancel(id);
    else if (move === 'message') this.#say();
    else if (move === 'withdraw') this.#tokens.at(-1)?.cancel('withdrawn', { mode: dice.pick(MODES) });
    else if (move === 'remove') {
      this.#conversations.remove(id);
      this.#removed.add(id);
    } else if (dice.chance(0.3) && this.#disposing === undefined) this.#dispose();
  }

  #cancel(id: string): void {
    const isRunning = (this.#running.get(id) ?? 0) > 0;
    const { result } = this.#conversations.cancel(id, 'stop', { mode: this.#dice.pick(MODES) });
    this.#found.expect(!isRunning || result !== 'too-late', 'a cancel was too late for a run that was running');
  }

  #dispose(): void {
    const before = this.#sent.filter(({ reply }) => reply === undefined);
    this.#disposing = this.#conversations[Symbol.asyncDispose]().then(() => {
      this.#isDisposed = true;
      const running = [...this.#running.values()].filter((count) => count > 0);
      this.#found.expect(running.length === 0, 'disposed while a run was running');
      // A reply resolves in the same turn of the event loop.
      setImmediate(() =>
        this.#found.expect(
          before.every(({ reply }) => reply !== undefined),
          'disposed while a message had no reply',
        ),
      );
    });
  }

  #check(): void {
    const [sent, found] = [this.#sent, this.#found];
    const isEvicting = this.#maxConversations !== Infinity;
    for (const { id, messageId, reply, text } of sent) {
      found.expect(reply !== undefined, 'a message got no reply');
      if (reply === undefined) continue;
      found.count(reply.status);
      found.expect(STATUSES.has(reply.status), `a reply is ${reply.status}`);
      found.expect(reply.conversationId === id, 'a reply is of another conversation');
      found.expect(messageId === undefined || reply.messageId === messageId, 'a reply is to another message');
      const twins = sent.filter((one) => one.id === id && one.messageId === messageId);
      if (reply.status === 'duplicate') found.expect(twins.length > 1, 'a message is a duplicate of none');
      if (reply.status !== 'answered') continue;
      found.expect(reply.outcome?.status === 'success', 'an answer without an outcome');
      found.expect(this.#delivered.includes(reply), 'an answer was not sent');
      if (isEvicting || this.#removed.has(id)) continue;
      const isKept = this.#conversations.history(id).some(({ role, content }) => role === 'user' && content === text);
      found.expect(isKept, 'an answered message is not in the history');
    }
    for (const id of new Set(IDS)) {
      const history = this.#conversations.history(id);
      const unmatched = findUnmatched(history as readonly AnyMessage[]);
      found.expect(unmatched === undefined, `a history has ${unmatched}`);
      const texts = history.flatMap(({ role, content }) => (role === 'user' ? [content] : []));
      found.expect(new Set(texts).size === texts.length, 'a history has a message twice');
    }
    for (const { statistics } of this.#tokens)
      found.expect(statistics.children + statistics.listeners === 0, 'a message token kept something');
    found.expect(this.#world.clock.pending === 0, `${this.#world.clock.pending} timers were left`);
  }
}
