// docs/sdk.md, docs/extensions.md, docs/custom-provider.md and examples/sdk of the package
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createAgentSession,
  DefaultResourceLoader,
  ModelRuntime,
  SessionManager,
  SettingsManager,
} from '../packed/package/dist/bundle/index.js';

const APIS = { chat: 'openai-completions', responses: 'openai-responses', anthropic: 'anthropic-messages' };
const parameters = { type: 'object', properties: { note: { type: 'string' } }, required: ['note'] };

const toTool = ({ name, description, execute }) => ({
  name,
  label: name,
  description,
  parameters,
  async execute(_id, _input, signal) {
    return { content: [{ type: 'text', text: await execute({ signal }) }], details: {} };
  },
});

async function createModel({ url, wire }, folder) {
  const runtime = await ModelRuntime.create({
    authPath: join(folder, 'auth.json'),
    modelsPath: join(folder, 'models.json'),
  });
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const model = {
    type: 'chat',
    id: 'm',
    name: 'm',
    reasoning: false,
    input: ['text'],
    cost,
    contextWindow: 128_000,
    maxTokens: 8192,
  };
  // The format of this vendor adds its own version to the address.
  const baseUrl = wire === 'anthropic' ? url.replace(/\/v1$/, '') : url;
  runtime.registerProvider('loopback', { name: 'Loopback', baseUrl, apiKey: 'none', api: APIS[wire], models: [model] });
  return { modelRuntime: runtime, model: runtime.getModel('loopback', 'm') };
}

async function createSession(options) {
  const { tools, shell, approve } = options;
  const folder = mkdtempSync(join(tmpdir(), 'whoa-peers-pi-'));
  const needing = new Set(tools.filter(({ needsApproval }) => needsApproval).map(({ name }) => name));
  const ask = (pi) =>
    pi.on('tool_call', async ({ toolName }, { signal }) => {
      if (needing.has(toolName) && !(await approve(signal))) return { block: true, reason: 'denied' };
    });
  const settingsManager = SettingsManager.inMemory({ compaction: { enabled: false } });
  const resourceLoader = new DefaultResourceLoader({
    cwd: folder,
    agentDir: folder,
    settingsManager,
    extensionFactories: approve ? [ask] : [],
  });
  await resourceLoader.reload();
  const customTools = tools.map(toTool);
  const names = [...tools.map(({ name }) => name), ...(shell ? ['bash'] : [])];
  const { session } = await createAgentSession({
    cwd: folder,
    agentDir: folder,
    ...(await createModel(options, folder)),
    resourceLoader,
    settingsManager,
    sessionManager: SessionManager.inMemory(folder),
    customTools,
    ...(names.length > 0 ? { tools: names } : { noTools: 'all' }),
  });
  return session;
}

function start(session, input) {
  const late = [];
  const before = session.messages.length;
  let [text, isOver] = ['', false];
  const leave = session.subscribe((event) => {
    if (event.type === 'message_update' && event.assistantMessageEvent.type === 'text_delta')
      text += event.assistantMessageEvent.delta;
    if (event.type === 'tool_execution_end' && isOver) late.push(event.toolName);
  });
  const finish = (error) => {
    isOver = true;
    if (late.length === 0) setTimeout(leave, 5_000).unref();
    const replies = session.messages.slice(before).filter(({ role }) => role === 'assistant');
    const count = (field) => replies.reduce((sum, { usage }) => sum + (usage?.[field] ?? 0), 0);
    const last = replies.at(-1);
    const parts = replies.flatMap(({ content }) => content).filter(({ type }) => type === 'text');
    const says = last
      ? `stopReason: ${last.stopReason}${last.errorMessage ? `, ${last.errorMessage}` : ''}`
      : 'no reply';
    return {
      isCancelled: last?.stopReason === 'aborted',
      says: error ? `throws ${error.message}` : says,
      text: parts.length > 0 ? parts.map((part) => part.text).join('') : undefined,
      usage: replies.length > 0 ? { input: count('input'), output: count('output') } : undefined,
      reason: last?.errorMessage,
      session,
    };
  };
  return {
    ended: session.prompt(input).then(() => finish(), finish),
    text: () => text,
    late,
    cancel: () => session.abort().catch(() => {}),
    steer: (message) => session.steer(message).catch(() => {}),
  };
}

async function travel(options) {
  const session = await createSession(options);
  await start(session, 'Which way?').ended;
  const [question] = session.getUserMessagesForForking();
  const { editorText } = await session.navigateTree(question.entryId);
  const { text } = await start(session, editorText ?? 'Which way?').ended;
  session.dispose();
  return text;
}

export const peer = {
  name: 'pi',
  wires: ['chat', 'responses', 'anthropic'],
  takesSignal: false,
  shell: 'bash',
  notOffered: {
    'sub-agent': 'agents as tools are left to extensions, which start another pi',
    elsewhere: 'a run is known only in its process, or to the parent that holds the pipes of its RPC mode',
    replace: 'a newer message can steer or follow; to replace a reply, the application must abort it and prompt again',
    pause: 'the question is asked while the run waits',
  },
  travel,
  async open(options) {
    // A session is one conversation, and takes a moment to create: one more is ready for a second run.
    const ready = [await createSession(options), await createSession(options)];
    const all = [...ready];
    return {
      start: (input, { session = ready.shift() ?? all.at(-1) } = {}) => start(session, input),
      close() {
        for (const session of all) session.dispose();
      },
    };
  },
};
