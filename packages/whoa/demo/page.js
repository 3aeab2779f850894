// A chat with one agent. Everything that was said or done stands in text nodes; nothing of it becomes markup.
const API = '/api/chat';
const RETRY_MS = 1_000;
const SUGGESTION = 'Ship the next one';

const byId = (id) => document.getElementById(id);
const [messages, text, stopButton, sendButton, status] = ['messages', 'text', 'stop', 'send', 'status'].map(byId);
// Every tab shows the same chat.
localStorage.chat ??= crypto.randomUUID();
const chatId = localStorage.chat;
/** The reply under way, if there is one. */
let current;

function h(tag, className, ...children) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}

function shape(state, ...words) {
  return h('span', `st ${state}`, h('i', ''), ...words);
}

function duration(ms) {
  return Math.abs(ms) < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

function show(element) {
  messages.append(element);
  scrollDown();
}

function scrollDown() {
  const talk = messages.parentElement;
  talk.scrollTop = talk.scrollHeight;
}

function setStatus(state, words = state) {
  status.className = `st ${state} pill`;
  status.lastElementChild.textContent = words;
  const isLive = state === 'running' || state === 'cancelling';
  stopButton.disabled = state !== 'running';
  stopButton.textContent = state === 'cancelling' ? 'Stopping' : 'Stop';
  sendButton.disabled = state === 'init' && words !== 'ready';
  if (!isLive && text.value === '') text.value = SUGGESTION;
}

/** One reply as it is streamed. Streamed again from its beginning, it is shown anew in its place. */
class Reply {
  runId;
  messageId;
  isStopping = false;
  isOver = false;
  /** It was read from its beginning as it came, so times are what they seem. */
  #isLive;
  root = h('div', 'reply');
  #words = new Map();
  #calls = new Map();
  #step = [];

  constructor(runId) {
    this.runId = runId;
    this.#isLive = runId !== undefined;
    show(this.root);
  }

  take(chunk) {
    switch (chunk.type) {
      case 'start':
        if (this.messageId !== undefined) this.#isLive = false;
        this.messageId = chunk.messageId;
        this.root.replaceChildren();
        this.#words.clear();
        this.#calls.clear();
        break;
      case 'start-step':
        this.#step = [];
        break;
      case 'reset-step':
        for (const element of this.#step.splice(0)) element.remove();
        for (const [id, { card }] of this.#calls) if (!card.isConnected) this.#calls.delete(id);
        break;
      case 'text-start':
        this.#words.set(chunk.id, this.#add(h('p', 'say open')));
        break;
      case 'text-delta':
        this.#words.get(chunk.id)?.append(chunk.delta);
        break;
      case 'text-end':
        this.#words.get(chunk.id)?.classList.remove('open');
        break;
      case 'tool-input-start':
        this.#call(chunk.toolCallId, chunk.toolName);
        break;
      case 'tool-input-available':
        this.#call(chunk.toolCallId, chunk.toolName).about.textContent = aboutOf(chunk.input);
        break;
      case 'tool-output-available':
        this.#showOutput(chunk.toolCallId, outputOf(chunk.output));
        if (!chunk.preliminary) this.#endCall(chunk.toolCallId, 'finished');
        break;
      case 'tool-input-error':
      case 'tool-output-error':
        this.#showOutput(chunk.toolCallId, chunk.errorText);
        this.#endCall(chunk.toolCallId, this.isStopping ? 'interrupted' : 'failed');
        break;
      case 'data-stopping':
        this.isStopping = true;
        if (current === this) setStatus('cancelling');
        break;
      case 'data-stop-report':
        this.#report(chunk.data);
        break;
      case 'abort':
        this.#end('cancelled', 'what it said and did is kept');
        break;
      case 'error':
        this.#end('failed', chunk.errorText);
        break;
      case 'finish':
        this.#end('success', 'nobody stopped it');
        break;
    }
    scrollDown();
  }

  #add(element) {
    this.root.append(element);
    this.#step.push(element);
    return element;
  }

  #call(id, tool) {
    const known = this.#calls.get(id);
    if (known !== undefined) return known;
    const sign = shape('running', h('b', '', tool));
    const [about, how] = [h('code', ''), h('span', 'how', 'running')];
    const card = this.#add(h('article', 'card call', h('header', '', sign, about, how)));
    const call = { sign, about, how, card, startedAt: performance.now() };
    this.#calls.set(id, call);
    return call;
  }

  #showOutput(id, output) {
    const call = this.#calls.get(id);
    if (call === undefined || output === '') return;
    call.output ??= call.card.appendChild(h('pre', 'out'));
    call.output.textContent = output;
    call.output.scrollTop = call.output.scrollHeight;
  }

  #endCall(id, state) {
    const call = this.#calls.get(id);
    if (call === undefined) return;
    call.sign.className = `st ${state}`;
    const took = this.#isLive ? ` after ${duration(performance.now() - call.startedAt)}` : '';
    call.how.textContent = state.replace('-', ' ') + took;
  }

  #report(report) {
    for (const { callId, state } of report.calls) {
      const call = this.#calls.get(callId);
      if (call !== undefined) call.sign.className = `st ${state}`;
      if (call !== undefined && state !== 'finished') call.how.textContent = state.replace('-', ' ');
    }
    const last = [...this.root.children].at(-1);
    if (report.reply !== undefined && last?.classList.contains('say')) last.append(h('span', 'cut'));
    this.root.append(reportCard(report));
  }

  #end(state, words) {
    this.isOver = true;
    this.root.append(h('p', 'tag', shape(state, state), words));
    if (current === this) setStatus(state);
  }
}

const LEVELS = {
  drain: 'nothing new starts',
  abort: 'what can be interrupted stops',
  kill: 'nothing more is waited for',
};

function reportCard(report) {
  const left = report.clean ? 'Nothing was left behind.' : 'Not everything could be proved ended.';
  const title = h('h2', '', `Stopped after ${duration(report.settledAfterMs)}. ${left}`);
  const { by, via, message } = report.reason;
  const why = [by && `by ${by}`, via && `via ${via}`, message].filter(Boolean).join(', ');
  const rows = [
    ...report.levels.map(({ level, afterMs }) => ({ afterMs, state: 'level', name: level, words: LEVELS[level] })),
    ...(report.reply ? [rowOfReply(report.reply)] : []),
    ...report.calls.map(rowOfCall),
    { afterMs: report.settledAfterMs, state: 'cancelled', name: 'settled', words: '' },
  ].sort((a, b) => a.afterMs - b.afterMs);
  const items = rows.map(({ state, name, words, afterMs }) =>
    h(
      'li',
      '',
      shape(state, h('span', '', h('b', '', name), ` ${words}`)),
      h('time', '', `${afterMs < 0 ? '' : '+'}${duration(afterMs)}`),
    ),
  );
  return h('section', 'card report', h('header', '', title, h('span', 'mute', why)), h('ul', '', ...items));
}

function rowOfReply({ characters, afterMs }) {
  return { afterMs, state: 'interrupted', name: 'reply', words: `closed, ${characters} characters kept` };
}

function rowOfCall({ tool, state, waitedFor, processesEnded, survivors, afterMs }) {
  const words = [state === 'unknown' ? 'abandoned, its outcome is unknown' : state.replace('-', ' ')];
  if (waitedFor) words.push('waited for: it must not be cut');
  if (processesEnded) words.push(`${processesEnded} ${processesEnded === 1 ? 'process' : 'processes'} ended`);
  if (survivors) words.push(`${survivors} may survive`);
  return { afterMs, state, name: tool, words: words.join(', ') };
}

function aboutOf(input) {
  const { command } = input ?? {};
  return command ?? (JSON.stringify(input) === '{}' ? '' : JSON.stringify(input));
}

function outputOf({ content }) {
  if (typeof content === 'string') return content.trimEnd();
  return content
    .map((part) => part.text ?? '')
    .join('')
    .trimEnd();
}

/** Reads a reply to its end. A connection that is lost is made again: the run goes on without it. */
async function read(reply, open) {
  current = reply;
  setStatus('running');
  for (let ask = open; !reply.isOver; ask = () => reconnect(reply)) {
    try {
      const response = await ask();
      if (response.status === 204) break;
      if (!response.ok) return refuse(reply, await response.json());
      await readChunks(response.body, (chunk) => reply.take(chunk));
    } catch {
      setStatus('running', 'connection lost, trying again');
    }
    if (!reply.isOver) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  if (!reply.isOver && current === reply) setStatus('init', 'ready');
}

function refuse(reply, { error }) {
  reply.take({ type: 'error', errorText: error.message });
}

function reconnect({ messageId }) {
  const headers = messageId === undefined ? {} : { 'whoa-last-message': `${encodeURIComponent(messageId)};partial` };
  return fetch(`${API}/${chatId}/stream`, { headers });
}

async function readChunks(body, take) {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (let rest = ''; ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (data !== undefined && data !== '[DONE]') take(JSON.parse(data));
    }
  }
}

function post(path, body) {
  return fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    // It arrives though the page is closed right after the click.
    keepalive: true,
  });
}

function send(said) {
  byId('intro').hidden = true;
  show(h('p', 'me', said));
  const [id, runId] = [crypto.randomUUID(), crypto.randomUUID()];
  const message = { id, role: 'user', parts: [{ type: 'text', text: said }] };
  return read(new Reply(runId), () => post(API, { id: chatId, runId, messages: [message] }));
}

async function stop() {
  if (stopButton.disabled) return;
  const reply = current;
  reply.isStopping = true;
  setStatus('cancelling');
  const { runId, messageId } = reply;
  const isAsked = await post(`${API}/${chatId}/stop`, { runId, messageId }).then(
    ({ ok }) => ok,
    () => false,
  );
  // It can be pressed again.
  if (!isAsked && current === reply && !reply.isOver) setStatus('running', 'the stop did not arrive');
}

/** The code works once; then a cookie that no script can read says who this is. */
async function logIn() {
  const code = location.hash.slice(1);
  if (code === '') return;
  history.replaceState(null, '', location.pathname);
  await post('/v1/login', { code });
}

function showHistory(all) {
  for (const { role, parts } of all) {
    byId('intro').hidden = true;
    const said = parts.filter(({ type }) => type === 'text').map((part) => part.text);
    if (role === 'user') show(h('p', 'me', said.join('')));
    else show(h('div', 'reply', ...said.map((words) => h('p', 'say', words))));
  }
}

async function begin() {
  await logIn();
  const response = await fetch(`${API}/${chatId}/messages`);
  if (response.status === 401) {
    byId('intro').replaceChildren(
      h('h1', '', 'This link was used before, or is too old'),
      h('p', '', 'Run the command again, and open the address that it prints.'),
    );
    return;
  }
  showHistory(await response.json());
  setStatus('init', 'ready');
  const running = await reconnect({});
  if (running.status === 200) await read(new Reply(), () => Promise.resolve(running));
}

byId('form').addEventListener('submit', (event) => {
  event.preventDefault();
  const said = text.value.trim();
  if (said === '' || sendButton.disabled) return;
  text.value = '';
  send(said);
});
text.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId('form').requestSubmit();
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') stop();
});
stopButton.addEventListener('click', stop);
setStatus('init', 'connecting');
await begin();
