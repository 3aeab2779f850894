// Generated calls that need approval at a terminal and in an editor: every line of each call that ran had been shown.
import { PassThrough, Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';
import { serveAcp } from '@whoa/acp';
import { createAgent, createRuntime, defineTool, type Tool } from '@whoa/core';
import { type Approve, createApprovals } from '@whoa/core/approval';
import { createScriptedModel, createVirtualWorld } from '@whoa/core/testing';
import { createEditTool, createWriteTool } from '@whoa/tools/internal';
import { createTerminalAsk } from '../../packages/whoa/src/terminal/ask.ts';
import { Screen } from '../../packages/whoa/src/terminal/screen.ts';
import { findObeyed, hostileText, shownForm } from '../hostile-text.ts';
import { createWorkspace, type Workspace } from '../workspace.ts';

export interface ApprovalsReport {
  readonly calls: number;
  readonly ran: number;
  readonly problems: readonly string[];
}

interface GeneratedCall {
  readonly id: string;
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** The text that a person saw, by call. */
type Shown = (callId: string) => string;

/** At a terminal these calls get a yes before they are shown, and a no afterwards. */
const isRefused = (callId: string): boolean => callId.endsWith('0');

/** A session is saved at every end of a call, all of it: many calls in one would cost their square. */
const ROUND = 50;
const MAX_PROBLEMS = 10;

/** Half of the calls need approval at a terminal, half in an editor. */
export async function fuzzApprovals({ calls, seed }: { calls: number; seed: number }): Promise<ApprovalsReport> {
  const world = createVirtualWorld({ seed });
  const random = (): number => world.random();
  const report = { calls: 0, ran: 0, problems: [] as string[] };
  for (let round = 0; report.calls < calls && report.problems.length < MAX_PROBLEMS; round++) {
    const generated = Array.from({ length: Math.min(ROUND, calls - report.calls) }, (_, i) =>
      makeCall(random, `c${i}`),
    );
    const workspace = createWorkspace(filesFor(random));
    try {
      const run = round % 2 === 0 ? atTerminal : inEditor;
      await judge(generated, { run, workspace, report, where: `round ${round} of seed ${seed}` });
    } finally {
      workspace[Symbol.dispose]();
    }
  }
  return report;
}

interface Judging {
  readonly run: (tools: readonly Tool[], calls: readonly GeneratedCall[]) => Promise<Shown>;
  readonly workspace: Workspace;
  readonly report: { calls: number; ran: number; problems: string[] };
  readonly where: string;
}

async function judge(calls: readonly GeneratedCall[], { run, workspace, report, where }: Judging): Promise<void> {
  const ran = new Map<
    string,
    { readonly input: unknown; readonly before: string | undefined; readonly after: string | undefined }
  >();
  const getShown = await run(createTools(workspace, ran), calls);
  for (const call of calls) {
    const done = ran.get(call.id);
    if (done === undefined) continue;
    if (run === atTerminal && isRefused(call.id)) report.problems.push(`${where}: ${call.id} ran by an early yes`);
    // In a file half a character becomes U+FFFD.
    const shown = call.tool === 'act' ? getShown(call.id) : getShown(call.id).replaceAll('<U+D800>', '\ufffd');
    const missing = findMissing(shown, call, done);
    const obeyed = findObeyed(shown);
    if (missing !== undefined)
      report.problems.push(`${where}: ${call.id} did not show ${JSON.stringify(missing).slice(0, 300)}`);
    if (obeyed.length > 0) report.problems.push(`${where}: ${call.id} showed ${JSON.stringify(obeyed.slice(0, 5))}`);
  }
  report.calls += calls.length;
  report.ran += ran.size;
}

/**
 * Finds the first line of the executed content that was not shown. A line that was already in the file need not be
 * shown.
 */
function findMissing(
  shown: string,
  { input, tool }: GeneratedCall,
  { before, after }: { readonly before: string | undefined; readonly after: string | undefined },
): string | undefined {
  const old = new Set(before?.split('\n'));
  // An edit is checked by the resulting file.
  for (const value of tool === 'act' ? Object.values(input) : [input['path'], after]) {
    const text = typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);
    for (const line of text.split('\n')) {
      if (!shown.includes(shownForm(line).replaceAll('\t', '    ')) && !old.has(line)) return line;
    }
  }
  return undefined;
}

function createTools(
  workspace: Workspace,
  ran: Map<string, { input: unknown; before: string | undefined; after: string | undefined }>,
): Tool[] {
  const anything = { '~standard': { version: 1 as const, vendor: 'test', validate: (value: unknown) => ({ value }) } };
  const act = defineTool<unknown>({
    name: 'act',
    description: '',
    inputSchema: anything,
    inputJsonSchema: {},
    execute: () => 'done',
  });
  const files = [
    createWriteTool({ root: workspace.path }),
    createEditTool({ root: workspace.path }),
  ] as unknown as Tool[];
  return [act as Tool, ...files].map((tool) => ({
    ...tool,
    async execute(input, context) {
      const path = (input as { path?: string }).path ?? '';
      const before = tool.name !== 'act' && workspace.list().includes(path) ? workspace.read(path) : undefined;
      const result = await tool.execute(input, context);
      ran.set(context.callId, { input, before, after: tool.name === 'act' ? undefined : workspace.read(path) });
      return result;
    },
  }));
}

/** A person who pages to the end and allows most calls. */
async function atTerminal(tools: readonly Tool[], calls: readonly GeneratedCall[]): Promise<Shown> {
  const input = Object.assign(new PassThrough(), { isTTY: true });
  const printed: string[] = [];
  let isYes = true;
  const output = {
    columns: 90,
    rows: 40,
    write(written: string) {
      const text = written.replace('\r\x1b[K', '');
      printed.push(text);
      const isLast = text.startsWith('  [y]es') && text.endsWith('say why not: ');
      if (!isLast && !(text.startsWith('  page ') && text.endsWith('denies it: '))) return;
      input.write(isLast ? (isYes ? 'y\n' : 'n\n') : '\n');
    },
    on: () => undefined,
  };
  const screen = new Screen({ stdout: output, stderr: output });
  const ask = createTerminalAsk({ screen, input });
  const seen = new Map<string, string>();
  const approve = createApprovals({
    alwaysUntil: 'until the round ends',
    async ask(question, context) {
      const from = printed.length;
      isYes = !isRefused(question.callId);
      if (!isYes) input.write('y\ny\n');
      const answer = await ask(question, context);
      const rows = printed.slice(from).join('').split('\n');
      // Joins wrapped lines, including across pages.
      const inside = rows.filter((row) => row.startsWith('  │ ')).map((row) => row.slice(4));
      seen.set(question.callId, [inside.join(''), ...rows].join('\n'));
      return answer;
    },
  });
  await execute(tools, calls, approve);
  return (callId) => seen.get(callId) ?? '';
}

async function execute(tools: readonly Tool[], calls: readonly GeneratedCall[], approve: Approve): Promise<void> {
  await createRuntime({ tools, approve, concurrency: 1 }).execute(calls);
}

/** An editor that allows everything it is shown. */
async function inEditor(tools: readonly Tool[], calls: readonly GeneratedCall[]): Promise<Shown> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const byOurs = new Map<string, string>();
  const model = createScriptedModel([
    calls.map(({ id, tool, input: given }) => ({ call: tool, id, input: given })),
    ['done'],
  ]);
  const connection = serveAcp(
    { createAgent: ({ approve }) => createAgent({ name: 'fuzz', model, tools, approve, concurrency: 1 }) },
    { input, output },
  );
  const client = acp
    .client({ name: 'fuzz' })
    .onNotification(acp.methods.client.session.update, () => {})
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      byOurs.set(params.toolCall.toolCallId, toText(params));
      return { outcome: { outcome: 'selected', optionId: 'allow' } };
    })
    .connect(acp.ndJsonStream(Writable.toWeb(input), Readable.toWeb(output) as ReadableStream<Uint8Array>));
  await client.agent.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await client.agent.request(acp.methods.agent.session.new, { cwd: '/tmp', mcpServers: [] });
  await client.agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: 'go' }] });
  await connection.close();
  return (callId) => byOurs.get(callId) ?? '';
}

/** The text that an editor shows for a question. Text outside a fence would be rendered as Markdown. */
function toText({ toolCall, options }: acp.RequestPermissionRequest): string {
  const pieces = [toolCall.title ?? '', ...options.map(({ name }) => name)];
  if (pieces.some((piece) => piece.includes('\n'))) throw new Error('a title or an option has more than one line');
  for (const content of toolCall.content ?? []) {
    if (content.type === 'diff') pieces.push(content.path, content.newText, content.oldText ?? '');
    if (content.type !== 'content' || content.content.type !== 'text') continue;
    const outside = content.content.text.replace(/^(`{3,})\n[\s\S]*?\n\1$/gm, '').trim();
    if (outside !== '') throw new Error(`outside of a fence: ${JSON.stringify(outside)}`);
    pieces.push(content.content.text);
  }
  return pieces.join('\n').replaceAll('\t', '    ');
}

function filesFor(random: () => number): Record<string, string> {
  const text = Array.from({ length: 40 }, (_, i) => `line ${i} ${random() < 0.1 ? hostileText(random) : ''}`).join(
    '\n',
  );
  return Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`f${i}.txt`, text]));
}

function makeCall(random: () => number, id: string): GeneratedCall {
  const text = (): string => hostileText(random, random() < 0.03 ? 100 : 5);
  const lines = (most: number): string => Array.from({ length: Math.floor(random() * most) }, text).join('\n');
  const kind = random();
  const path = random() < 0.9 ? `f${Math.floor(random() * 8)}.txt` : `new-${id}.txt`;
  // Writes are synced to the disk, so they take their time.
  if (kind < 0.06) return { id, tool: 'write', input: { path, content: lines(30) } };
  if (kind < 0.1) {
    const oldText = `line ${Math.floor(random() * 40)} `;
    return { id, tool: 'edit', input: { path, edits: [{ oldText, newText: lines(10) }] } };
  }
  if (kind < 0.7)
    return { id, tool: 'act', input: { command: random() < 0.2 ? lines(60) : text(), timeoutSeconds: 7 } };
  const nested = { list: [text(), { deep: text() }], number: random(), empty: '', nothing: null };
  return { id, tool: 'act', input: { path: text(), [`key-${text()}`]: text(), nested } };
}
