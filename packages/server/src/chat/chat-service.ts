import type { Agent, Policy } from '@whoa/core';
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
import { type Access, type AccessOptions, createAccess } from '../http/access/access.ts';
import type { Authenticate } from '../http/access/principal.ts';
import type { LateResult } from './answers.ts';
import { AppHistory, type ChatHistory, findStarter } from './app-history.ts';
import { historyTask } from './chat-history.ts';
import type { Chat } from './chat-types.ts';
import { createHistoryWork, HISTORY_AGENT } from './history-work.ts';
import type { ChatTools, ReplyWorkOptions } from './reply-options.ts';
import { createReplyWork } from './reply-work.ts';
import { createIsElsewhere } from './ui/call-parts.ts';

/** What replies to chats, where they are stored and who may use them, for every protocol. */
export interface ChatServiceOptions<Tools extends ChatTools>
  extends Partial<ReplyWorkOptions<Tools>>,
    Pick<RunnerOptions, 'worker' | 'leaseMs' | 'approvals' | 'waitForProvider' | 'background' | 'hooks'>,
    Pick<AccessOptions, 'audit' | 'limits' | 'origins' | 'hosts' | 'approvers' | 'starterMayAnswer'> {
  /**
   * Where chats are stored: an address (`redis://…`, `postgres://…`), a configuration or a store. Defaults to memory.
   */
  readonly store?: string | TaskStoreConfig | TaskStore | undefined;
  /** Identifies the sender of a request: the user of your session. */
  readonly authenticate: Authenticate;
  /** A Whoa agent that replies, or the name of one that other workers run. Use it instead of `reply`. */
  readonly agent?: Agent | string;
  /** What a message does to a reply in progress. Defaults to `replace`. */
  readonly policy?: Policy;
  /** Your own database as the place where chats are kept, with `reply`. Without it the store keeps them. */
  readonly history?: ChatHistory;
  /**
   * Called during a request with a promise that settles when its reply has ended: `waitUntil` of your platform, which keeps
   * a function alive after its response.
   */
  readonly waitUntil?: (ended: Promise<unknown>) => void;
  /** How many replies this process runs at the same time. */
  readonly concurrency?: number;
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

/** How often the note of a late call is written again when newer messages replace it. */
const MAX_NOTES = 5;

/** The agent name of the application's own loop in a store. */
const REPLY_AGENT = 'whoa-chat-reply';

export function createChatService<Tools extends ChatTools>(options: ChatServiceOptions<Tools>): ChatService {
  checkRuntime();
  checkOptions(options);
  const { agent, reply, policy = 'replace', describeError, concurrency, hooks } = options;
  const given = options.store;
  const store = typeof given === 'object' && 'create' in given ? given : createTaskStore(given);
  const report = (error: unknown, what = 'chat'): void => reportFailure(hooks, what, error);
  const onFailure = (error: unknown): void => report(error, 'reply');
  let isClosed = false;
  const onLate = (task: TaskRecord, end: LateResult): void => {
    // After the end its outcome stays unknown, which is true.
    noteLate(runner, task, end).catch((error: unknown) => (isClosed ? undefined : report(error)));
  };
  const history = options.history && new AppHistory(options.history, (error) => report(error, 'history'));
  const kept = (work: SelfManagedWork): SelfManagedWork => history?.wrap(work) ?? work;
  const work = reply === undefined ? agent! : kept(createReplyWork({ ...options, reply, onFailure, onLate }));
  // Now, and not by the first message: the server cannot reply without it.
  if (reply !== undefined)
    import('ai').catch((cause: unknown) =>
      onFailure(new Error("`reply` needs the package 'ai': npm install ai", { cause })),
    );
  const name = typeof work === 'string' ? work : 'run' in work ? work.name : REPLY_AGENT;
  const isElsewhere = createIsElsewhere(options.tools);
  const { worker, leaseMs, approvals, waitForProvider, background } = options;
  const agents = {
    [HISTORY_AGENT]: kept(createHistoryWork(isElsewhere)),
    ...(typeof work !== 'string' && { [name]: work }),
  };
  // The runner leaves out what is undefined.
  const own = { worker, leaseMs, approvals, waitForProvider, background, hooks } as Partial<RunnerOptions>;
  const runner = createRunner({ ...own, store, agents });
  const access = createAccess({ ...options, hosts: options.hosts ?? 'any', onError: report });
  const chat: Chat = {
    store,
    access,
    runner,
    agent: name,
    isReply: reply !== undefined,
    isElsewhere,
    isRemote: typeof work === 'string',
    policy,
    history,
    waitUntil: options.waitUntil,
    readOnlyTools: readOnlyTools(agent),
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

/** Notes in the history how a call ended that was given up. A newer message may replace the task that does it. */
async function noteLate(runner: Runner, reply: TaskRecord, end: LateResult): Promise<void> {
  const task = historyTask({ who: findStarter(reply), chatId: reply.conversation! }, end);
  for (let tries = 0; tries < MAX_NOTES; tries++) {
    if ((await runner.run(task, { policy: 'queue' })).status === 'success') return;
  }
}

/** The tools of the application's own loop are not known. */
function readOnlyTools(agent: Agent | string | undefined): ReadonlySet<string> {
  if (agent === undefined || typeof agent === 'string') return new Set();
  return new Set(agent.tools.filter(({ effects }) => effects === 'read').map(({ name }) => name));
}

const isWork = (value: unknown): boolean =>
  typeof value === 'function' || typeof value === 'string' || settings.hasMethods(value, ['run']);

/** Stores need sockets, and replies outlive their requests. Edge runtimes have neither. */
function checkRuntime(): void {
  const { EdgeRuntime, navigator } = globalThis as { EdgeRuntime?: unknown; navigator?: { userAgent?: string } };
  if (EdgeRuntime === undefined && navigator?.userAgent !== 'Cloudflare-Workers') return;
  const advice = "use Node, Bun or Deno; in Next.js: export const runtime = 'nodejs'";
  throw new TypeError(
    `This runtime has no raw sockets, so it cannot reach a store, and it ends replies early; ${advice}`,
  );
}

function checkOptions<Tools extends ChatTools>(options: ChatServiceOptions<Tools>): void {
  const { agent, reply, authenticate, policy, history } = options;
  if (typeof authenticate !== 'function')
    throw new TypeError(
      "authenticate: expected a function from a request to its user; to try things out: () => 'anyone'",
    );
  if (policy !== undefined) POLICY_RULE(policy, 'policy');
  if ((agent === undefined) === (reply === undefined))
    throw new TypeError('reply: expected either `reply`, (turn) => streamText({ model, ...turn }), or `agent`');
  if (history !== undefined && reply === undefined)
    throw new TypeError('history: it needs `reply`; chats of an `agent` are kept in the store');
  if (!isWork(agent ?? reply)) throw settings.unexpected('agent', agent, 'an agent, or the name of one');
}
