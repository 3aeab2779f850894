import { mustFinishRule } from '@whoa/ai-sdk/internal';
import { type Agent, type Policy, SettingsError } from '@whoa/core';
import { POLICY_RULE, reportFailure, settings } from '@whoa/core/internal';
import {
  createRunner,
  createTaskStore,
  type Runner,
  type RunnerOptions,
  type SelfManagedWork,
  type TaskRecord,
  type TaskStore,
  type TaskStoreConfig,
} from '@whoa/tasks';
import { RUNNER_RULES, readStoreConfig } from '@whoa/tasks/internal';
import { ACCESS_RULES, type Access, type AccessOptions, createAccess } from '../http/access/access.ts';
import type { Authenticate } from '../http/access/principal.ts';
import type { LateResult } from './answers.ts';
import { AppHistory, type ChatHistory, findStarter } from './app-history.ts';
import { historyTask, withWaited } from './chat-history.ts';
import type { Chat } from './chat-types.ts';
import { createHistoryWork, HISTORY_AGENT } from './history-work.ts';
import { warnOfReplaced } from './replaced-options.ts';
import type { ChatTools, ReplyWorkOptions } from './reply-options.ts';
import { createReplyWork } from './reply-work.ts';
import { createIsElsewhere } from './ui/call-parts.ts';

/** What replies to chats, where they are stored and who may use them, for every protocol. */
export interface ChatServiceOptions<Tools extends ChatTools>
  extends Omit<ReplyWorkOptions<Tools>, 'reply'>,
    Pick<RunnerOptions, 'worker' | 'leaseMs' | 'approvals' | 'waitForProvider' | 'background' | 'hooks'>,
    Pick<AccessOptions, 'audit' | 'limits' | 'origins' | 'hosts' | 'approvers' | 'starterMayAnswer'> {
  /**
   * Where chats are stored: an address (`postgres://…`, `sqlite:FILE`), `memory` for this process only, a
   * configuration or a store. There is no default: an address that is not set is an error.
   */
  readonly store: string | TaskStoreConfig | TaskStore | undefined;
  /** Identifies the sender of a request: the user of your session. */
  readonly authenticate: Authenticate;
  readonly reply?: ReplyWorkOptions<Tools>['reply'] | undefined;
  /** A Whoa agent that replies, or the name of one that other workers run. Use it instead of `reply`. */
  readonly agent?: Agent | string | undefined;
  /** What a message does to a reply in progress. Defaults to `replace`. */
  readonly policy?: Policy | undefined;
  /** Your own database as the place where chats are kept, with `reply`. Without it the store keeps them. */
  readonly history?: ChatHistory | undefined;
  /**
   * Called during a request with a promise that settles when its reply has ended: `waitUntil` of your platform, which keeps
   * a function alive after its response.
   */
  readonly waitUntil?: ((ended: Promise<unknown>) => void) | undefined;
  /** How many replies this process runs at the same time. */
  readonly concurrency?: number | undefined;
}

/** A chat and the runner that replies. Dispose it to hand unfinished replies on. */
export interface ChatService extends AsyncDisposable {
  readonly chat: Chat;
  readonly access: Access;
  /** Takes over replies of crashed instances, from the first request on. */
  readonly begin: () => void;
  /** Called with errors that no request should be able to cause. */
  readonly onError: (error: unknown) => void;
}

type SelfManagedContext = Parameters<SelfManagedWork['runTask']>[0];

/** How often the note of a late call is written again when newer messages replace it. */
const MAX_NOTES = 5;

/** The agent name of the application's own loop in a store. */
const REPLY_AGENT = 'whoa-chat-reply';

export function createChatService<Tools extends ChatTools>(options: ChatServiceOptions<Tools>): ChatService {
  checkRuntime();
  checkWork(options);
  if (options.reply !== undefined) warnOfReplaced(options.reply);
  const { agent, reply, policy = 'replace', describeError, concurrency, hooks } = options;
  const given = options.store as TaskStoreConfig | TaskStore;
  const store = 'create' in given ? given : createTaskStore(given);
  const report = (error: unknown, what = 'chat'): void => reportFailure(hooks, what, error);
  const onFailure = (error: unknown): void => report(error, 'reply');
  let isClosed = false;
  const onLate = (task: TaskRecord, end: LateResult): void => {
    // After the end its outcome stays unknown, which is true.
    noteLate(runner, task, end).catch((error: unknown) => (isClosed ? undefined : report(error)));
  };
  const history = options.history && new AppHistory(options.history, (error) => report(error, 'history'));
  const kept = (work: SelfManagedWork): SelfManagedWork => replyToAll(history?.wrap(work) ?? work, store);
  const work = reply === undefined ? agent! : kept(createReplyWork({ ...options, reply, onFailure, onLate }));
  // Now, and not by the first message: the server cannot reply without it.
  if (reply !== undefined)
    import('ai').catch((cause: unknown) =>
      onFailure(new Error("`reply` needs the package 'ai': npm install ai", { cause })),
    );
  const name = typeof work === 'string' ? work : 'run' in work ? work.name : REPLY_AGENT;
  const about = describeWork(options);
  const { worker, leaseMs, approvals, waitForProvider, background } = options;
  const agents = {
    [HISTORY_AGENT]: kept(createHistoryWork(about)),
    ...(typeof work !== 'string' && { [name]: work }),
  };
  // The runner leaves out what is undefined.
  const own = { worker, leaseMs, approvals, waitForProvider, background, hooks } as Partial<RunnerOptions>;
  const runner = createRunner({ ...own, store, agents });
  const { authenticate, audit, limits, origins, hosts = 'any', approvers, starterMayAnswer } = options;
  const access = createAccess({
    authenticate,
    audit,
    limits,
    origins,
    hosts,
    approvers,
    starterMayAnswer,
    onError: report,
  });
  const chat: Chat = {
    store,
    access,
    runner,
    agent: name,
    ...about,
    isRemote: typeof work === 'string',
    policy,
    history,
    waitUntil: options.waitUntil,
    describeError,
  };
  let serving: Promise<void> | undefined;
  return {
    chat,
    access,
    onError: report,
    begin() {
      serving ??= runner.serve(concurrency === undefined ? {} : { concurrency });
      // Ignore the error here: the request itself uses the store, and reports what is wrong.
      serving.catch(() => (serving = undefined));
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      await runner[Symbol.asyncDispose]();
      if (store !== given) await store[Symbol.asyncDispose]();
    },
  };
}

/** Passes on the messages that a reply's own one has replaced. */
function replyToAll(work: SelfManagedWork, store: TaskStore): SelfManagedWork {
  const whole = async (given: SelfManagedContext): Promise<SelfManagedContext> => ({
    ...given,
    task: await withWaited(store, given.task),
  });
  return {
    runTask: async (given) => work.runTask(await whole(given)),
    ...(work.settle && { settle: async (given) => work.settle!(await whole(given)) }),
  };
}

/** Notes in the history how a call ended that was given up. A newer message may replace the task that does it. */
async function noteLate(runner: Runner, reply: TaskRecord, end: LateResult): Promise<void> {
  const task = historyTask({ who: findStarter(reply), chatId: reply.conversation! }, end);
  for (let tries = 0; tries < MAX_NOTES; tries++) {
    if ((await runner.run(task, { policy: 'queue' })).status === 'success') return;
  }
}

function describeWork<Tools extends ChatTools>({ reply, tools, agent }: ChatServiceOptions<Tools>) {
  const isElsewhere = createIsElsewhere(tools);
  return { isReply: reply !== undefined, isElsewhere, readOnlyTools: readOnlyTools(agent) };
}

/** The tools of the application's own loop are not known. */
function readOnlyTools(agent: Agent | string | undefined): ReadonlySet<string> {
  if (agent === undefined || typeof agent === 'string') return new Set();
  return new Set(agent.tools.filter(({ effects }) => effects === 'read').map(({ name }) => name));
}

/** Stores need sockets, and replies outlive their requests. Edge runtimes have neither. */
function checkRuntime(): void {
  const { EdgeRuntime, navigator } = globalThis as { EdgeRuntime?: unknown; navigator?: { userAgent?: string } };
  if (EdgeRuntime === undefined && navigator?.userAgent !== 'Cloudflare-Workers') return;
  const advice = "use Node, Bun or Deno; in Next.js: export const runtime = 'nodejs'";
  throw new TypeError(
    `This runtime has no raw sockets, so it cannot reach a store, and it ends replies early; ${advice}`,
  );
}

const { anything, callback, count, hasMethods, required, rule } = settings;
const isWork = (value: unknown): boolean => (typeof value === 'string' && value !== '') || hasMethods(value, ['run']);

/** Where a handler is mounted. */
export const PATH_RULE: settings.Rule = rule("a path, such as '/api/chat'", (path) => String(path).startsWith('/'));

const { worker, leaseMs, approvals, waitForProvider, background, hooks } = RUNNER_RULES;
const { clock: _, onError: __, ...OF_ACCESS } = ACCESS_RULES;

/** The rules for the options of every chat. */
export const CHAT_RULES: settings.Rules<ChatServiceOptions<ChatTools>> = {
  store: required((value, field) =>
    hasMethods(value, ['create', 'get', 'cancel']) ? value : readStoreConfig(value as TaskStoreConfig, field),
  ),
  agent: rule('an agent, or the name of one', isWork),
  reply: callback,
  tools: rule('tools of the AI SDK by name', (value) => settings.isObject(value) && !Array.isArray(value)),
  mustFinish: anything,
  convertDataPart: callback,
  describeError: callback,
  policy: POLICY_RULE,
  history: settings.having('your history', 'load', 'save'),
  waitUntil: callback,
  concurrency: count(),
  worker,
  leaseMs,
  approvals,
  waitForProvider,
  background,
  hooks,
  ...OF_ACCESS,
};

/** Checks what replies, and what goes with it. */
function checkWork<Tools extends ChatTools>(options: ChatServiceOptions<Tools>): void {
  const { agent, reply, tools = {}, mustFinish, history } = options;
  if ((agent === undefined) === (reply === undefined))
    throw new SettingsError('reply', 'expected either `reply`, (turn) => streamText({ model, ...turn }), or `agent`');
  if (history !== undefined && reply === undefined)
    throw new SettingsError('history', 'it needs `reply`; chats of an `agent` are kept in the store');
  if (mustFinish !== undefined && reply === undefined)
    throw new SettingsError('mustFinish', "it needs `reply`; tools of an `agent` have whenCancelled: 'finish'");
  if (mustFinish !== undefined) mustFinishRule(tools)(mustFinish, 'mustFinish');
}
