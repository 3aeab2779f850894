import { type Agent, CancellationToken, type CancelReasonInit, type Content, toText } from '@whoa/core';
import { type Ask, createApprovals } from '@whoa/core/approval';
import { waitUntilLevel } from '@whoa/core/embed';
import { describeError, toVisibleLine } from '@whoa/core/internal';
import type { AcpSession, McpServer } from '../options.ts';
import { Prompt } from '../prompt/prompt.ts';
import { Saver } from '../prompt/saver.ts';
import type { SessionRecord } from '../store/store.ts';
import type { PromptResult, Update } from '../updates.ts';
import { AgentSlot } from './agent-slot.ts';
import type { ConnectionContext } from './connection-context.ts';
import { createAsk } from './permission.ts';
import { PromptRun, toPromptResult } from './prompt-run.ts';
import { replay } from './replay.ts';

/** How many prompts may wait in a session. */
const MAX_WAITING_MESSAGES = 64;
const TOO_MANY = `${MAX_WAITING_MESSAGES} prompts are already waiting; wait until one ends`;
const BUSY = 'a prompt is running; cancel it, or wait until it ends';
/** A slower save continues in the background. */
const SAVE_MS = 2_000;
const MAX_TITLE_CHARACTERS = 120;
const ALWAYS_UNTIL = 'until this session is closed';

export interface StartedPrompt {
  /** The id of the user's message once it is in the history; `undefined` if it never will be. */
  readonly inserted: Promise<string | undefined>;
  /** Never rejects. */
  readonly end: Promise<PromptResult>;
}

/** One session: it runs prompts one at a time with its own agent, and saves a record. */
export class Session {
  readonly #around: ConnectionContext;
  readonly #token: CancellationToken;
  readonly #prompts = new Set<Prompt>();
  readonly #saver = new Saver(() => this.#write());
  readonly #ask: Ask;
  readonly #approve: AcpSession['approve'];
  readonly #retired: AgentSlot[] = [];
  /** Texts for the user that wait for a prompt. */
  readonly #notices: string[] = [];
  #mcpServers: readonly McpServer[];
  #record: SessionRecord;
  #slot: AgentSlot;
  #lastPrompt: Prompt | undefined;
  #live: PromptRun | undefined;
  /** How many message ids the client has seen. */
  #named = 0;

  constructor(record: SessionRecord, mcpServers: readonly McpServer[], around: ConnectionContext) {
    this.#record = record;
    this.#mcpServers = mcpServers;
    this.#around = around;
    this.#token = new CancellationToken({ parent: around.token, name: `session ${record.id}` });
    this.#slot = this.#createSlot();
    this.#ask = createAsk({ sessionId: record.id, client: around.client, asking: () => this.#live?.asking });
    this.#approve = createApprovals({ ask: this.#ask, alwaysUntil: ALWAYS_UNTIL });
  }

  get record(): SessionRecord {
    return this.#record;
  }

  /** Creates the agent, so that its errors are known before the first prompt. */
  async open(): Promise<Agent> {
    const slot = this.#slot;
    try {
      return await slot.open(() => this.#around.options.createAgent(this.#describe(slot)));
    } catch (error) {
      // The next prompt tries again.
      if (this.#slot === slot) this.#retire();
      throw error;
    }
  }

  /** Reserves the place of the next prompt, synchronously. */
  reserve({ waitsForAnswer = true }: { readonly waitsForAnswer?: boolean } = {}): Prompt {
    const { policy = 'queue', stopMode = 'graceful' } = this.#around.options;
    if (policy === 'replace') {
      for (const prompt of this.#prompts) prompt.cancel({ kind: 'superseded', via: 'session/prompt' }, stopMode);
    }
    // Decide here, where prompts arrive one by one: later, each prompt of a burst would see all the others.
    const refusal =
      this.#prompts.size > MAX_WAITING_MESSAGES
        ? TOO_MANY
        : policy === 'reject' && this.#prompts.size > 0
          ? BUSY
          : undefined;
    const prompt = new Prompt(this.#token, {
      mode: this.#around.mode,
      previous: this.#lastPrompt,
      refusal,
      waitsForAnswer,
      onSettled: (settled) => this.#prompts.delete(settled),
    });
    // A refused prompt neither waits nor makes others wait.
    if (refusal !== undefined) return prompt;
    this.#lastPrompt = prompt;
    this.#prompts.add(prompt);
    return prompt;
  }

  /** Runs a reserved prompt, after the previous one has settled. */
  start(prompt: Prompt, content: Content): StartedPrompt {
    const inserted = Promise.withResolvers<string | undefined>();
    const end = this.#work(prompt, content, inserted.resolve)
      .catch((error: unknown): PromptResult => ({ stop: 'error', message: describeError(error) }))
      .finally(() => {
        inserted.resolve(undefined);
        prompt.ended();
      });
    return { inserted: inserted.promise, end };
  }

  /** Cancels the current prompts: the running one and those that wait. Does nothing if there are none. */
  cancel(reason: CancelReasonInit): void {
    for (const prompt of this.#prompts) prompt.cancel(reason);
  }

  /** Stops one call. Returns why not, if it cannot. */
  cancelCall(callId: string, reason: CancelReasonInit): string | undefined {
    for (const prompt of this.#prompts) {
      const receipt = prompt.cancelCall(callId, reason);
      if (receipt.result === 'refused') return receipt.message;
      if (receipt.result !== 'too-late') return undefined;
    }
    return 'the call is unknown, has ended, or has not started';
  }

  /** Changes a setting. The next prompt gets an agent created with it. */
  async choose(id: string, value: string): Promise<void> {
    if (this.#record.settings[id] === value) return;
    this.#record = { ...this.#record, settings: { ...this.#record.settings, [id]: value } };
    this.#retire();
    await this.#closeRetired();
    // Don't save a session without prompts.
    if (this.#record.messages.length > 0) await this.#saver.save();
  }

  /** Replaces the MCP servers with those the client wants now. */
  reconnect(mcpServers: readonly McpServer[]): void {
    if (JSON.stringify(mcpServers) === JSON.stringify(this.#mcpServers)) return;
    this.#mcpServers = mcpServers;
    this.#retire();
  }

  /** Shows the client everything so far; a running prompt continues. */
  async replay(): Promise<void> {
    const { tools } = await this.open();
    const messages = this.#live?.journal.soFar ?? this.#record.messages;
    for (const update of replay(messages, { cwd: this.#record.cwd, tools })) await this.#send(update);
  }

  /** Cancels what runs, waits until it is settled, and releases everything. */
  async close(reason: CancelReasonInit): Promise<void> {
    this.cancel(reason);
    await Promise.all([...this.#prompts].map((prompt) => prompt.settled));
    await Promise.all([this.#closeRetired(), this.#slot.close()]);
    this.#token[Symbol.dispose]();
  }

  async #work(prompt: Prompt, content: Content, onInserted: (messageId: string) => void): Promise<PromptResult> {
    if (!prompt.take()) return { stop: 'cancelled' };
    if (prompt.refusal !== undefined) return { stop: 'error', message: prompt.refusal };
    if (prompt.previous !== undefined) {
      const wait = await waitUntilLevel(prompt.previous.settled, prompt.token, 'drain');
      if (wait.by === 'level') return { stop: 'cancelled' };
    }
    let slot = this.#slot;
    let opened = await waitUntilLevel(this.open(), prompt.token, 'drain');
    // A setting may have changed meanwhile, and with it the agent.
    while (opened.by === 'value' && slot !== this.#slot) {
      slot = this.#slot;
      opened = await waitUntilLevel(this.open(), prompt.token, 'drain');
    }
    if (opened.by === 'error') return { stop: 'error', message: describeError(opened.error) };
    if (opened.by === 'level') {
      await this.#keep([...this.#record.messages, { role: 'user', content }]);
      return { stop: 'cancelled' };
    }
    return this.#run(prompt, { agent: opened.value, content, onInserted });
  }

  async #run(
    prompt: Prompt,
    { agent, content, onInserted }: { agent: Agent; content: Content; onInserted: (messageId: string) => void },
  ): Promise<PromptResult> {
    const live = new PromptRun({
      prompt,
      agent,
      content,
      record: this.#record,
      namedBefore: this.#named,
      around: this.#around,
      send: (update) => this.#send(update),
      save: () => this.#saver.save(),
    });
    const title =
      this.#record.title === undefined ? toVisibleLine(toText(content), MAX_TITLE_CHARACTERS) || 'Untitled' : undefined;
    if (title !== undefined) this.#record = { ...this.#record, title };
    this.#live = live;
    onInserted(live.messageId);
    try {
      const outcome = await live.run({ title, notices: this.#notices.splice(0) });
      const end = toPromptResult(outcome);
      this.#live = undefined;
      this.#named = live.journal.named;
      await this.#keep(outcome.messages);
      await live.end(end);
      return end;
    } finally {
      this.#live = undefined;
      await this.#closeRetired();
    }
  }

  async #keep(messages: SessionRecord['messages']): Promise<void> {
    this.#record = { ...this.#record, messages };
    await this.#saver.save();
  }

  async #write(): Promise<void> {
    const { store, onError, world } = this.#around;
    const now = world.clock.now();
    this.#record = { ...this.#record, updatedAt: Math.round(now) };
    const messages = this.#live?.journal.snapshotAt(now) ?? this.#record.messages;
    const bound = new CancellationToken({ name: 'save', clock: world.clock });
    bound.cancelAfter(SAVE_MS, { kind: 'deadline' }, { mode: 'kill' });
    const end = await waitUntilLevel(store.save({ ...this.#record, messages }), bound, 'kill');
    bound[Symbol.dispose]();
    if (end.by === 'error') onError(end.error);
    if (end.by === 'level') onError(new Error(`Session ${this.#record.id} was not saved within ${SAVE_MS} ms`));
  }

  /** Never rejects, and never waits for a client that has disconnected. */
  async #send(update: Update): Promise<void> {
    const { client, gone } = this.#around;
    if (!gone.isCancelled) await waitUntilLevel(client.update(this.#record.id, update), gone, 'drain');
  }

  #createSlot(): AgentSlot {
    return new AgentSlot(this.#token, this.#around.onError);
  }

  /** Replaces the agent; a prompt that is using it may finish first. */
  #retire(): void {
    this.#retired.push(this.#slot);
    this.#slot = this.#createSlot();
  }

  async #closeRetired(): Promise<void> {
    if (this.#live !== undefined) return;
    await Promise.all(this.#retired.splice(0).map((slot) => slot.close()));
  }

  #describe(slot: AgentSlot): AcpSession {
    const { id, cwd, additionalDirectories, settings } = this.#record;
    return {
      id,
      cwd,
      additionalDirectories,
      settings,
      mcpServers: this.#mcpServers,
      ask: this.#ask,
      approve: this.#approve,
      files: this.#around.client.files(id),
      notify: (text) => this.#notices.push(text),
      token: slot.token,
      defer: (cleanup) => slot.defer(cleanup),
    };
  }
}
