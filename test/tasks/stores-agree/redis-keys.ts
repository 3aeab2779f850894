import type { Redis } from 'ioredis';
import { SUSPECTS, UNDO } from '../../../packages/tasks/src/rules/rules.ts';
import { toAgent, toReadyQueueName } from '../../../packages/tasks/src/rules/suspects.ts';
import type { TaskStatus } from '../../../packages/tasks/src/status.ts';

/** The kinds of keys in a shard: the part before the first colon. */
const HASHES = 'task held session commands conversation running domain layout questions closed-questions'.split(' ');
const LISTS = ['journal', 'inputs', 'history'];
const SETS = ['capped', 'paused', 'parked'];
const TEXTS = ['outcome', 'context', 'title'];

type Hash = Readonly<Record<string, string>>;

/** Everything that a shard holds. */
class Keys {
  readonly #found = new Map<string, unknown>();

  constructor(found: Iterable<readonly [string, unknown]>) {
    for (const [key, value] of found) this.#found.set(key, value);
  }

  get names(): string[] {
    return [...this.#found.keys()];
  }

  hash(name: string): Hash {
    return (this.#found.get(name) ?? {}) as Hash;
  }

  /** Members of a set, a sorted set or a list. */
  members(name: string): readonly string[] {
    return (this.#found.get(name) ?? []) as string[];
  }

  has(name: string): boolean {
    return this.#found.has(name);
  }

  /** The rest of the names of all keys of a kind. */
  of(kind: string): string[] {
    return this.names.filter((name) => name.startsWith(`${kind}:`)).map((name) => name.slice(kind.length + 1));
  }
}

async function readKeys(client: Redis, tag: string, keys: readonly string[]): Promise<Keys> {
  const names = keys.map((key) => key.slice(tag.length));
  const pipeline = client.pipeline();
  for (const name of names) {
    const [kind = ''] = name.split(':');
    const key = tag + name;
    if (HASHES.includes(kind) || name === 'idle-workers') pipeline.hgetall(key);
    else if (LISTS.includes(kind) || kind === 'waiting') pipeline.lrange(key, 0, -1);
    else if (SETS.includes(kind)) pipeline.smembers(key);
    else if (TEXTS.includes(kind)) pipeline.get(key);
    else pipeline.zrange(key, '0', '-1');
  }
  const replies = (await pipeline.exec()) ?? [];
  const failed = replies.find(([error]) => error !== null)?.[0];
  if (failed) throw failed;
  return new Keys(names.map((name, i) => [name, replies[i]![1]]));
}

const pair = (first: string, second: string): string => `${Buffer.byteLength(first)}:${first}:${second}`;

/** Finds contradictions in the keys of a shard. */
export async function findRedisProblems(client: Redis, tag: string, all: readonly string[]): Promise<string[]> {
  const keys = await readKeys(client, tag, all);
  const tasks = new Map(keys.of('task').map((id) => [id, keys.hash(`task:${id}`)]));
  const live = new Map([...tasks].filter(([, task]) => task['endedAt'] === undefined));
  const problems: string[] = [];
  const expect = (isRight: boolean, problem: string): void => void (isRight || problems.push(problem));
  checkStages(keys, live, expect);
  checkTasks(keys, tasks, expect);
  checkQuestions(keys, tasks, expect);
  checkLeftovers(keys, { tasks, live }, expect);
  checkConversations(keys, live, expect);
  return problems;
}

type Tasks = ReadonlyMap<string, Hash>;
type Expect = (isRight: boolean, problem: string) => void;

const toReadyQueue = ({ status, undo, agent, attempts }: Hash): string =>
  toReadyQueueName({
    status: status as TaskStatus,
    agent: agent!,
    attempts: Number(attempts ?? 0),
    stop: { undo: undo === '1' },
  });

/** A live task is in exactly one of delayed, queued, ready and held, and these contain nothing else. */
function checkStages(keys: Keys, live: Tasks, expect: Expect): void {
  const stages = new Map<string, string[]>();
  const put = (id: string, due: string): void => void stages.set(id, [...(stages.get(id) ?? []), due]);
  for (const id of keys.members('delayed')) put(id, 'delayed');
  for (const name of keys.of('waiting')) for (const id of keys.members(`waiting:${name}`)) put(id, `queue ${name}`);
  for (const readyQueue of keys.of('ready'))
    for (const id of keys.members(`ready:${readyQueue}`)) put(id, `ready ${readyQueue}`);
  for (const session of keys.of('held'))
    for (const id of Object.keys(keys.hash(`held:${session}`))) put(id, `held ${session}`);
  for (const tenant of keys.of('parked'))
    for (const id of keys.members(`parked:${tenant}`)) put(id, `parked ${tenant}`);
  for (const [id, found] of stages) expect(live.has(id), `${id} is in ${found.join(' and ')}, and not live`);
  for (const [id, task] of live) {
    const { stage, tenant = '', conversation = '', session } = task;
    const readyQueue = pair(toReadyQueue(task), tenant);
    const due = {
      delayed: 'delayed',
      queued: `queue ${pair(tenant, conversation)}`,
      ready: `ready ${readyQueue}`,
      held: `held ${session}`,
      parked: `parked ${tenant}`,
    };
    const found = stages.get(id)?.join(' and ');
    expect(found === due[stage as 'delayed'], `${id} is ${stage}, and in ${found}`);
    if (stage !== 'ready') continue;
    const isOpen = keys.members(`ready-queues:${toReadyQueue(task)}`).includes(tenant);
    const isCapped = keys.members(`capped:${tenant}`).includes(toReadyQueue(task));
    expect(isOpen || isCapped, `${id} is ready in a ready queue that is neither open nor noted as capped`);
    const queue = pair(toAgent(toReadyQueue(task)), tenant);
    expect(keys.members('queues').includes(queue), `${id} is ready in a queue that is not listed`);
  }
  for (const queue of keys.members('queues')) {
    const [, size = '', rest = ''] = /^(\d+):(.*)$/s.exec(queue) ?? [];
    const agent = Buffer.from(rest).subarray(0, Number(size)).toString();
    const tenant = rest.slice(agent.length + 1);
    const readyQueues = ['', SUSPECTS, UNDO].map((reserved) => pair(reserved + agent, tenant));
    expect(
      readyQueues.some((readyQueue) => keys.has(`ready:${readyQueue}`)),
      `queue ${queue} is listed, and empty`,
    );
  }
  const held = [...live.values()].filter(({ stage }) => stage === 'held');
  const agents = new Set([...held.map(({ agent }) => agent!), ...Object.keys(keys.hash('running'))]);
  for (const agent of agents) {
    const running = held.filter((task) => task['agent'] === agent).length;
    const counted = Number(keys.hash('running')[agent] ?? 0);
    expect(running === counted, `${agent} runs ${running} tasks, and ${counted} are counted`);
  }
}

function checkTasks(keys: Keys, tasks: Tasks, expect: Expect): void {
  for (const [id, task] of tasks) {
    const { status, tenant, stage, session, hasPendingOrders, endedAt } = task;
    const listed = keys.of('status').filter((name) => keys.members(`status:${name}`).includes(id));
    const ended = keys.of('ended').filter((name) => keys.members(`ended:${name}`).includes(id));
    const group = `${status}:${tenant}`;
    expect(
      ended.join() === (endedAt === undefined ? '' : group),
      `${id} is ${status}, and in ended ${ended.join(' and ')}`,
    );
    expect(
      ended.every((name) => keys.members('ended').includes(name)),
      `ended ${ended.join()} is not listed`,
    );
    expect(listed.join() === group, `${id} is ${status}, and listed as ${listed.join(' and ')}`);
    const hasDeadline = status === 'init' && task['deadline'] !== undefined;
    expect(keys.members('deadlines').includes(id) === hasDeadline, `${id} is ${status}, and its deadline is not`);
    const isHeld = endedAt === undefined && stage === 'held';
    const sessions = keys.of('pending-orders').filter((name) => keys.members(`pending-orders:${name}`).includes(id));
    const due = isHeld && hasPendingOrders === '1' ? session : '';
    expect(
      sessions.join() === due,
      `${id} should be in the pending orders of '${due}', and is in those of '${sessions.join(' and ')}'`,
    );
    if (!isHeld) continue;
    expect(keys.hash(`session:${session}`)['worker'] !== undefined, `${id} is held by no session`);
    expect(keys.members('sessions').includes(session!), `${id} is held by a session that cannot expire`);
    expect(keys.hash(`held:${session}`)[id] === task['epoch'], `${id} is held with another epoch`);
  }
  const tenants = [...new Set([...tasks.values()].map(({ tenant }) => tenant!))].toSorted();
  expect(
    keys.members('tenants').join() === tenants.join(),
    `tenants are ${tenants.join()}, and listed ${keys.members('tenants').join()}`,
  );
}

/** A task counts its questions; open ones are listed and expire. */
function checkQuestions(keys: Keys, tasks: Tasks, expect: Expect): void {
  const [listed, expiring] = [new Set<string>(), new Set<string>()];
  for (const [id, task] of tasks) {
    const { questions: counted = '0 0 -', tenant, stage, status, deadline = Infinity, endedAt } = task;
    const all = Object.entries(keys.hash(`questions:${id}`)).map(
      ([question, text]) => [question, text.split('\n')] as const,
    );
    const open = all.filter(([, [state]]) => state === 'open');
    const expiries = open.flatMap(([, lines]) => (lines[3] === '' ? [] : [Number(lines[3])]));
    const first = expiries.length > 0 ? Math.min(...expiries) : '-';
    const found = `${open.length} ${all.length - open.length} ${first}`;
    expect(counted === found, `${id} has questions ${found}, and counts ${counted}`);
    for (const [question] of open) listed.add(`${tenant} ${question}`);
    const isParked = stage === 'parked' && endedAt === undefined;
    if (first !== '-' || (isParked && deadline !== Infinity)) expiring.add(id);
    if (endedAt !== undefined) expect(all.length === 0, `${id} has ended, and has questions ${found}`);
    if (status === 'cancelling') expect(open.length === 0, `${id} is being stopped, and has open questions`);
    if (!isParked) continue;
    const waits = open.length > 0 && all.length === open.length && !keys.has(`commands:${id}`);
    expect(waits && status === 'running', `${id} is parked, and has something to do or waits for nothing`);
  }
  const known = keys
    .of('open-questions')
    .flatMap((tenant) => keys.members(`open-questions:${tenant}`).map((id) => `${tenant} ${id}`));
  expect(known.toSorted().join() === [...listed].toSorted().join(), `open questions are listed as ${known.join()}`);
  const due = keys.members('expiries').toSorted().join();
  expect(due === [...expiring].toSorted().join(), `${[...expiring].join()} expire, and ${due} are listed`);
}

/** A removed task leaves no key behind. */
function checkLeftovers(keys: Keys, { tasks, live }: { tasks: Tasks; live: Tasks }, expect: Expect): void {
  for (const kind of ['outcome', 'journal', 'command-nonces', 'title', 'context', 'questions', 'closed-questions']) {
    for (const id of keys.of(kind)) expect(tasks.has(id), `${kind}:${id} is left of a task that is gone`);
  }
  for (const id of keys.of('commands'))
    expect(live.has(id), `commands:${id} is left of a task that is gone or has ended`);
  const owners = new Set([...tasks].map(([id, task]) => task['inputOwner'] ?? id));
  for (const owner of keys.of('inputs')) expect(owners.has(owner), `inputs:${owner} is left of a task that is gone`);
  for (const name of keys.of('status')) {
    for (const id of keys.members(`status:${name}`)) expect(tasks.has(id), `status:${name} lists ${id}, which is gone`);
  }
  for (const id of keys.members('deadlines')) expect(tasks.has(id), `deadlines lists ${id}, which is gone`);
  for (const name of keys.of('conversation-tasks')) {
    for (const id of keys.members(`conversation-tasks:${name}`))
      expect(tasks.has(id), `conversation-tasks:${name} lists ${id}, which is gone`);
  }
  for (const worker of Object.keys(keys.hash('idle-workers'))) {
    expect(keys.members('waiters:*').includes(worker), `${worker} waits, and cannot be rung`);
  }
}

function checkConversations(keys: Keys, live: Tasks, expect: Expect): void {
  const names = keys.of('conversation');
  for (const name of names) {
    const { current, debouncing } = keys.hash(`conversation:${name}`);
    const [task, held] = [live.get(current ?? ''), live.get(debouncing ?? '')];
    if (current !== undefined)
      expect(task !== undefined && task['policy'] === undefined, `${current} is current, and should not be`);
    if (current === undefined) expect(!keys.has(`waiting:${name}`), `${name} has no current task, and some wait`);
    if (debouncing !== undefined)
      expect(held?.['policy'] !== undefined, `${debouncing} is gathering, and not held back`);
  }
  for (const kind of ['waiting', 'history']) {
    for (const name of keys.of(kind))
      expect(names.includes(name), `${kind}:${name} is left of a conversation that is gone`);
  }
  const members = (task: Hash): string => `conversation:${pair(task['tenant']!, task['conversation']!)}`;
  for (const [id, task] of live) {
    if (task['conversation'] === undefined || task['stage'] === 'queued') continue;
    const { current, debouncing } = keys.hash(members(task));
    expect(id === current || id === debouncing, `${id} is live, and not in its conversation`);
    expect(task['policy'] === undefined || id === debouncing, `${id} has a policy, and is not gathering`);
  }
}
