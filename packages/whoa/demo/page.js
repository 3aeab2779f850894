// A chat with one agent.
import { h } from './elements.js';
import { Reply } from './reply.js';

const API = '/api/chat';
const RETRY_MS = 1_000;
const SUGGESTION = 'Ship the next one';

const byId = (id) => document.getElementById(id);
const [messages, text, stopButton, sendButton, status] = ['messages', 'text', 'stop', 'send', 'status'].map(byId);
// Every tab shows the same chat.
localStorage.chat ??= crypto.randomUUID();
const chatId = localStorage.chat;
/** The current reply, if there is one. */
let current;

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

/** Adds a reply to the page, to be filled by the stream. */
function newReply(runId) {
  const onState = (state) => current === reply && setStatus(state);
  const reply = new Reply({ runId, onState });
  show(reply.root);
  return reply;
}

/** Reads a reply to its end. Reconnects when the connection is lost: the run continues on the server. */
async function read(reply, open) {
  current = reply;
  setStatus('running');
  for (let ask = open; !reply.isOver; ask = () => reconnect(reply)) {
    try {
      const response = await ask();
      if (response.status === 204) break;
      if (!response.ok) return refuse(reply, await response.json());
      await readChunks(response.body, (chunk) => {
        reply.take(chunk);
        scrollDown();
      });
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
    // Send it even if the page is closed right after the click.
    keepalive: true,
  });
}

function send(said) {
  byId('intro').hidden = true;
  show(h('p', 'me', said));
  const [id, runId] = [crypto.randomUUID(), crypto.randomUUID()];
  const message = { id, role: 'user', parts: [{ type: 'text', text: said }] };
  return read(newReply(runId), () => post(API, { id: chatId, runId, messages: [message] }));
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
  // Let the user press it again.
  if (!isAsked && current === reply && !reply.isOver) setStatus('running', 'the stop did not arrive');
}

/** The code works once. After that, an HttpOnly cookie identifies the user. */
async function logIn() {
  const code = location.hash.slice(1);
  if (code === '') return;
  history.replaceState(null, '', location.pathname);
  await post('/v1/login', { code });
}

function showHistory(all) {
  for (const message of all) {
    byId('intro').hidden = true;
    const said = message.parts.map((part) => (part.type === 'text' ? part.text : ''));
    show(message.role === 'user' ? h('p', 'me', said.join('')) : Reply.from(message).root);
  }
}

async function begin() {
  await logIn();
  const response = await fetch(`${API}/${chatId}/messages`);
  if (response.status === 401) {
    byId('intro').replaceChildren(
      h('h1', '', 'This link has been used or has expired'),
      h('p', '', 'Run the command again and open the address that it prints.'),
    );
    return;
  }
  showHistory(await response.json());
  setStatus('init', 'ready');
  const running = await reconnect({});
  if (running.status === 200) await read(newReply(), () => Promise.resolve(running));
}

/** Runs work without awaiting it, and shows its error. */
function start(work) {
  work.catch(({ message }) => setStatus('failed', message));
}

byId('form').addEventListener('submit', (event) => {
  event.preventDefault();
  const said = text.value.trim();
  if (said === '' || sendButton.disabled) return;
  text.value = '';
  start(send(said));
});
text.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId('form').requestSubmit();
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') start(stop());
});
stopButton.addEventListener('click', () => start(stop()));
setStatus('init', 'connecting');
await begin();
