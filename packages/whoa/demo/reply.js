// One reply: its text, its calls and its end.
import { h, shape } from './elements.js';
import { reportCard } from './report.js';

/** Shows one streamed reply. If the stream starts again, the reply is rendered again in place. */
export class Reply {
  runId;
  messageId;
  isStopping = false;
  isOver = false;
  root = h('div', 'reply');
  #onState;
  #words = new Map();
  #calls = new Map();
  #step = [];

  /** `onState` is called when the reply is being stopped and when it ends. */
  constructor({ runId, onState = () => {} } = {}) {
    this.runId = runId;
    this.#onState = onState;
  }

  /** Shows a reply of the history. */
  static from({ id, parts }) {
    const reply = new Reply();
    for (const chunk of chunksOf(id, parts)) reply.take(chunk);
    return reply;
  }

  take(chunk) {
    switch (chunk.type) {
      case 'start':
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
        this.#onState('cancelling');
        break;
      case 'data-stop-report':
        this.#report(chunk.data);
        break;
      case 'abort':
        this.#end('cancelled', 'the text and results so far are kept');
        break;
      case 'error':
        this.#end('failed', chunk.errorText);
        break;
      case 'finish':
        this.#end('success', 'not stopped');
        break;
    }
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
    const [about, status] = [h('code', ''), h('span', 'how', 'running')];
    const card = this.#add(h('article', 'card call', h('header', '', sign, about, status)));
    const call = { sign, about, status, card };
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
    call.status.textContent = state.replace('-', ' ');
  }

  #report(report) {
    for (const { callId, state } of report.calls) {
      const call = this.#calls.get(callId);
      if (call !== undefined) call.sign.className = `st ${state}`;
      if (call !== undefined && state !== 'finished') call.status.textContent = state.replace('-', ' ');
    }
    const last = [...this.root.children].at(-1);
    if (report.reply !== undefined && last?.classList.contains('say')) last.append(h('span', 'cut'));
    this.root.append(reportCard(report));
  }

  #end(state, words) {
    this.isOver = true;
    this.root.append(h('p', 'tag', shape(state, state), words));
    this.#onState(state);
  }
}

/** Converts a stored reply into stream chunks. */
function chunksOf(messageId, parts) {
  const stopped = parts.some(({ type }) => type === 'data-stop-report');
  return [
    { type: 'start', messageId },
    ...(stopped ? [{ type: 'data-stopping' }] : []),
    ...parts.flatMap(chunksOfPart),
    ...(stopped ? [{ type: 'abort' }] : []),
    // A failed reply does not end with text.
    ...(!stopped && parts.at(-1)?.type === 'text' ? [{ type: 'finish' }] : []),
  ];
}

function chunksOfPart(part, index) {
  const { type, toolCallId, toolName, input } = part;
  if (type === 'text')
    return [
      { type: 'text-start', id: index },
      { type: 'text-delta', id: index, delta: part.text },
      { type: 'text-end', id: index },
    ];
  if (type === 'data-stop-report') return [part];
  if (type !== 'dynamic-tool') return [];
  const asked = { type: 'tool-input-available', toolCallId, toolName, input };
  if (part.state === 'output-available')
    return [asked, { type: 'tool-output-available', toolCallId, output: part.output }];
  return [asked, { type: 'tool-output-error', toolCallId, errorText: part.errorText ?? '' }];
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
