// Every way a tool can enter an agent × every way approval can be set, at every level of nested agents: each call that
// ran had a yes.
import { fromAiSdkTools } from '@whoa/ai-sdk';
import { type Agent, CancellationToken, createAgent, createAgentTool, defineTool, type Tool } from '@whoa/core';
import { type ApprovalAnswer, type ApprovalRequest, type Approve, createApprovals } from '@whoa/core/approval';
import { callTools, reply } from '@whoa/core/model';
import { createScriptedModel, createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { createTaskApprovals } from '@whoa/tasks';
import { createWriteTool } from '@whoa/tools/internal';
import { tool as aiTool } from 'ai';
import { z } from 'zod';
import { createWorkspace, type Workspace } from '../workspace.ts';

/** The tool of the innermost agent, and the facts about it. */
interface Leaf {
  readonly tool: Tool;
  /** The tool itself demands a yes. */
  readonly isRequired?: boolean;
  /** It can never start. */
  readonly neverStarts?: boolean;
  readonly input?: unknown;
}

/** Creates a tool that calls `ran` when it runs. */
type MakeLeaf = (ran: () => void, workspace: Workspace) => Leaf;

const inputSchema = z.object({});
const named = { name: 'act', description: 'Acts', inputSchema };

function aiSdk(needsApproval: unknown, effects: 'read' | 'execute', ran: () => void): Tool {
  const act = { ...aiTool({ inputSchema, execute: () => ran() }), needsApproval };
  return fromAiSdkTools({ act }, { settings: { act: { effects } } })[0]!;
}

/** The ways a tool can enter an agent. */
const LEAVES: Readonly<Record<string, MakeLeaf>> = {
  'defined, writes': (ran) => ({ tool: defineTool({ ...named, effects: 'write', execute: () => ran() as never }) }),
  'defined, reads': (ran) => ({ tool: defineTool({ ...named, effects: 'read', execute: () => ran() as never }) }),
  'defined, reads, needs a yes': (ran) => ({
    tool: defineTool({ ...named, effects: 'read', needsApproval: () => true, execute: () => ran() as never }),
    isRequired: true,
  }),
  'defined, its own word is odd': (ran) => ({
    tool: defineTool({ ...named, needsApproval: () => undefined as never, execute: () => ran() as never }),
    isRequired: true,
  }),
  'a plain object': (ran) => ({
    tool: { ...named, execute: () => ran() as never } as unknown as Tool,
  }),
  'a copy with its own execute': (ran) => {
    const made = defineTool({ ...named, execute: () => 'never' });
    return { tool: { ...made, execute: () => ran() as never } };
  },
  'AI SDK': (ran) => ({ tool: aiSdk(undefined, 'execute', ran) }),
  'AI SDK, needs a yes': (ran) => ({ tool: aiSdk(true, 'read', ran), isRequired: true }),
  'AI SDK, needs a yes by a function': (ran) => ({
    tool: aiSdk(() => Promise.resolve(true), 'read', ran),
    isRequired: true,
  }),
  'AI SDK, needs none by a function': (ran) => ({ tool: aiSdk(() => false, 'read', ran) }),
  'AI SDK, its function throws': (ran) => {
    const fail = (): never => {
      throw new Error('no idea');
    };
    return { tool: aiSdk(fail, 'execute', ran), neverStarts: true };
  },
  'a file tool': (ran, { path }) => {
    const write = createWriteTool({ root: path });
    const execute: Tool['execute'] = (input, context) => {
      ran();
      return write.execute(input as never, context);
    };
    return { tool: { ...write, name: 'act', execute } as Tool, input: { path: 'a.txt', content: 'x' } };
  },
};

type Verdict = 'yes' | 'no';

/** One way to set approval. */
interface Setting {
  /** `undefined`: the agent has no `approve`. */
  readonly make?: (asked: (request: ApprovalRequest, verdict: Verdict) => void) => Approve;
  /** The verdict it returns, if it is called. */
  readonly says?: Verdict;
  /** Whether calls that only read need approval; by default they do not. */
  readonly asksAboutReads?: boolean;
  /** It requires approval for no call. */
  readonly asksNothing?: boolean;
  /** It never returns: the run has to be stopped. */
  readonly isPending?: boolean;
}

const answering = (answer: () => unknown, verdict: Verdict = 'no'): Setting => ({
  says: verdict,
  make: (asked) => (request) => {
    asked(request, verdict);
    return answer() as boolean;
  },
});

const asking = (answer: unknown, verdict: Verdict): Setting => ({
  says: verdict,
  make(asked) {
    let request: ApprovalRequest;
    const approve = createApprovals({
      alwaysUntil: 'until the end',
      ask: () => {
        asked(request, verdict);
        return Promise.resolve(answer as ApprovalAnswer);
      },
    });
    const noting: Approve = (one, context) => {
      request = one;
      return approve(one, context);
    };
    return Object.assign(noting, { isRequired: approve.isRequired! });
  },
});

/** The ways approval can be set. */
const SETTINGS: Readonly<Record<string, Setting>> = {
  none: {},
  yes: answering(() => true, 'yes'),
  'yes to a preview': answering(() => Promise.resolve({ approved: true, shown: undefined }), 'yes'),
  no: answering(() => false),
  'no, with a reason': answering(() => 'not now'),
  throws: answering(() => {
    throw new Error('the approver is broken');
  }),
  rejects: answering(() => Promise.reject(new Error('the approver is broken'))),
  'says nothing': answering(() => undefined),
  'says 1': answering(() => 1),
  'says { approved: 1 }': answering(() => ({ approved: 1 })),
  'wants no questions': {
    says: 'no',
    asksNothing: true,
    make: (asked) =>
      Object.assign(
        (request: ApprovalRequest) => {
          asked(request, 'no');
          return false;
        },
        { isRequired: () => false },
      ),
  },
  'wants all questions': {
    says: 'no',
    asksAboutReads: true,
    make: (asked) =>
      Object.assign(
        (request: ApprovalRequest) => {
          asked(request, 'no');
          return false;
        },
        { isRequired: () => undefined as never },
      ),
  },
  'a user says yes': asking({ decision: 'yes' }, 'yes'),
  'a user says always': asking({ decision: 'always' }, 'yes'),
  'a user says no': asking({ decision: 'no' }, 'no'),
  'a user gives an odd reason': asking({ decision: 'no', why: true }, 'no'),
  'a user says nothing': asking(undefined, 'no'),
  'outside of a task': {
    says: 'no',
    make: (asked) => {
      const { approve } = createTaskApprovals();
      return (request, context) => {
        asked(request, 'no');
        return approve(request, context);
      };
    },
  },
  'never answers': { ...answering(() => new Promise(() => {})), isPending: true },
  'says yes when it is stopped': {
    says: 'no',
    isPending: true,
    make:
      (asked) =>
      (request, { signal }) => {
        asked(request, 'no');
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve(true)));
      },
  },
};

/** How an agent is made, and how its run is started. */
const AGENTS = {
  model({ input, ...parts }: Parts): Agent {
    const call = { call: parts.tools[0]!.name, input, id: 'c' };
    return createAgent({ ...parts, model: createScriptedModel([[call], ['ok']], { clock: parts.world.clock }) });
  },
  planner({ input, ...parts }: Parts): Agent {
    const call = { id: 'c', tool: parts.tools[0]!.name, input };
    return createAgent({
      ...parts,
      planner: { next: (_, { turn }) => (turn === 1 ? callTools([call]) : reply('ok')) },
    });
  },
  // As `whoa` adds its own options to the agents of a configuration.
  wrapped(parts: Parts): Agent {
    const agent = AGENTS.planner(parts);
    return { ...agent, run: (input, options) => agent.run(input, { budgets: {}, ...options }) };
  },
};

interface Parts {
  readonly name: string;
  readonly tools: readonly Tool[];
  readonly world: ReturnType<typeof createVirtualWorld>;
  readonly input: unknown;
  readonly approve?: Approve;
}

interface Cell {
  readonly leaf: string;
  /** The settings of the agents, outermost first. The last agent has the tool. */
  readonly settings: readonly string[];
  readonly agents: keyof typeof AGENTS;
  /** How a run ends in which a question waits. */
  readonly stop: 'graceful' | 'now' | 'kill' | 'deadline';
}

/** Runs one cell. Returns the problem, if there is one. */
async function tryCell(cell: Cell, { workspace, leaves }: Around): Promise<string | undefined> {
  const world = createVirtualWorld();
  const token = new CancellationToken({ clock: world.clock });
  let runs = 0;
  const approved = new Set<string>();
  const leaf = leaves[cell.leaf]!(() => runs++, workspace);
  const settings = cell.settings.map((name) => SETTINGS[name]!);
  const approvers = settings.map(({ make, isPending }) =>
    make?.((request, verdict) => {
      if (verdict === 'yes') approved.add(request.call.id);
      if (isPending) stop(token, cell.stop, world).catch(() => {});
    }),
  );
  let { tool, input = {} } = leaf;
  let agent: Agent | undefined;
  for (const [level, approve] of [...approvers.entries()].reverse()) {
    if (agent !== undefined) [tool, input] = [createAgentTool(agent, { description: 'Asks' }) as Tool, { task: 'go' }];
    agent = AGENTS[cell.agents]({ name: `agent${level}`, tools: [tool], world, input, ...(approve && { approve }) });
  }
  const { status } = await agent!.run('go', { token }).outcome;
  token[Symbol.dispose]();
  const expected = getExpected(leaf, settings);
  const wrong = [
    ...(runs === (expected === 'not run' ? 0 : 1) ? [] : [`ran ${runs} times, expected ${expected}`]),
    ...(expected === 'run with a yes' && !approved.has(settings.map(() => 'c').join('/')) ? ['no yes was given'] : []),
    ...(status === 'failed' ? ['the run failed'] : []),
  ];
  return wrong.length === 0 ? undefined : `${JSON.stringify(cell)}: ${wrong.join(', ')}`;
}

async function stop(token: CancellationToken, by: Cell['stop'], { clock }: Parts['world']): Promise<void> {
  await Promise.resolve();
  if (by === 'deadline') token.cancelAfter(1_000, { kind: 'deadline' }, { mode: 'now' });
  else token.cancel({}, { mode: by });
  await flushMicrotasks();
  await clock.advance(60_000);
}

/** The expected end of the innermost call. */
function getExpected({ tool, isRequired = false, neverStarts }: Leaf, settings: readonly Setting[]): Expected {
  const effects = (tool as Partial<Tool>).effects ?? 'execute';
  let inherited: Setting = {};
  for (const [level, own] of settings.entries()) {
    inherited = own.make === undefined ? inherited : own;
    const isLeaf = level === settings.length - 1;
    const isAsked = mustAsk(inherited, { effects, isRequired: isRequired && isLeaf });
    if (isAsked && inherited.says !== 'yes') return 'not run';
    if (isLeaf) return neverStarts ? 'not run' : isAsked ? 'run with a yes' : 'run';
  }
  return 'not run';
}

type Expected = 'run' | 'run with a yes' | 'not run';

/** An agent whose only tool reads is treated as a read; approval that its tool requires is not. */
function mustAsk(approval: Setting, { effects, isRequired }: { effects: string; isRequired: boolean }): boolean {
  if (isRequired) return true;
  if (approval.make === undefined || approval.asksNothing) return false;
  return approval.asksAboutReads === true || effects !== 'read';
}

interface Around {
  readonly workspace: Workspace;
  readonly leaves: Readonly<Record<string, MakeLeaf>>;
}

const DEPTHS = [0, 1, 2, 3];
const STOPS = ['graceful', 'now', 'kill', 'deadline'] as const;

/** The settings that make a difference; the others express the same in other ways. */
const DECIDING = ['none', 'yes', 'no', 'throws', 'wants no questions', 'a user says yes'] as const;

/** The outermost agent or the one with the tool is set, every way; or two are, so that the inner one counts. */
function* fewVectors(depth: number): Generator<readonly string[]> {
  const none = Array.from({ length: depth + 1 }, () => 'none');
  for (const level of new Set([0, depth])) for (const name of Object.keys(SETTINGS)) yield none.with(level, name);
  for (let inner = 1; inner <= depth; inner++) {
    yield none.with(0, 'no').with(inner, 'yes');
    yield none.with(0, 'yes').with(inner, 'no');
    yield none.with(0, 'a user says always').with(inner, 'a user says no');
  }
}

function* allVectors(depth: number): Generator<readonly string[]> {
  yield* fewVectors(depth);
  const longer = (vectors: readonly (readonly string[])[]): readonly (readonly string[])[] =>
    vectors.flatMap((vector) => DECIDING.map((name) => [...vector, name]));
  let vectors: readonly (readonly string[])[] = [[]];
  for (let level = 0; level <= depth; level++) vectors = longer(vectors);
  yield* vectors;
}

export interface MatrixOptions {
  readonly workspace: Workspace;
  /** Every combination of the settings that decide, instead of one or two levels at a time. */
  readonly isWhole: boolean;
  /** More tools, which need a running server or process. */
  readonly leaves?: Readonly<Record<string, MakeLeaf>>;
}

/** Runs the matrix. Returns the number of cells, and the problems. */
export async function tryMatrix({
  workspace,
  isWhole,
  leaves = {},
}: MatrixOptions): Promise<{ cells: number; problems: readonly string[] }> {
  const around = { workspace, leaves: { ...LEAVES, ...leaves } };
  const problems: string[] = [];
  let cells = 0;
  for (const leaf of Object.keys(around.leaves)) {
    for (const depth of DEPTHS) {
      for (const settings of isWhole ? allVectors(depth) : fewVectors(depth)) {
        const agents = Object.keys(AGENTS) as Cell['agents'][];
        // One way each time, in turn, unless all are wanted.
        const chosen = isWhole ? agents : [agents[cells % agents.length]!];
        for (const one of chosen) {
          const cell = { leaf, settings, agents: one, stop: STOPS[cells++ % STOPS.length]! };
          const problem = await tryCell(cell, around);
          if (problem !== undefined) problems.push(problem);
        }
      }
    }
  }
  return { cells, problems };
}

/** Runs every cell, also with a tool of an MCP server. */
export async function tryWholeMatrix(): Promise<Awaited<ReturnType<typeof tryMatrix>>> {
  using workspace = createWorkspace();
  const { openTestServer } = await import('../tools/mcp-server.ts');
  await using opened = await openTestServer('stdio');
  const echo = opened.tool('echo');
  const leaves: Around['leaves'] = {
    MCP: (ran) => ({
      tool: {
        ...echo,
        execute(input, context) {
          ran();
          return echo.execute(input, context);
        },
      },
      input: { say: 'x' },
    }),
  };
  return await tryMatrix({ workspace, isWhole: true, leaves });
}
