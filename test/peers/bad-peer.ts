// Two faulty libraries. The hasty one reports "cancelled" immediately and keeps running; the deaf one does not even
// report that.
import type { Ending, OpenOptions, Peer, PeerRun, StartOptions } from '../../peers/core/peer.ts';

interface Call {
  readonly id: string;
  readonly function: { readonly name: string; arguments: string };
}

interface Message {
  readonly role: string;
  readonly content?: string | null;
  readonly tool_calls?: readonly Call[];
  readonly tool_call_id?: string;
}

interface Delta {
  readonly choices: readonly { readonly delta: { readonly content?: string; readonly tool_calls?: readonly Call[] } }[];
}

/** Calls the model without a signal. */
async function* ask(url: string, messages: readonly Message[]): AsyncGenerator<Delta> {
  const body = JSON.stringify({ model: 'm', stream: true, messages });
  const response = await fetch(`${url}/chat/completions`, { method: 'POST', body });
  if (!response.ok) throw new Error(await response.text());
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) if (line.startsWith('data: {')) yield JSON.parse(line.slice('data: '.length)) as Delta;
  }
}

const unheard: Promise<void>[] = [];

class Loop {
  text = '';
  readonly #options: OpenOptions;
  readonly #messages: Message[];

  constructor(options: OpenOptions, messages: Message[]) {
    this.#options = options;
    this.#messages = messages;
  }

  async run(): Promise<void> {
    for (let calls: Call[] = [{} as Call]; calls.length > 0; ) {
      calls = [];
      let said = '';
      for await (const { choices } of ask(this.#options.url, this.#messages)) {
        const { content = '', tool_calls: pieces = [] } = choices[0]?.delta ?? {};
        said += content;
        this.text += content;
        for (const piece of pieces) {
          if (piece.id) calls.push(structuredClone(piece));
          else calls.at(-1)!.function.arguments += piece.function.arguments;
        }
      }
      this.#messages.push({ role: 'assistant', content: said, ...(calls.length > 0 && { tool_calls: calls }) });
      await Promise.all(calls.map((call) => this.#call(call)));
    }
  }

  async #call({ id, function: { name } }: Call): Promise<void> {
    const tool = this.#options.tools.find((one) => one.name === name)!;
    const content = await tool.execute({ signal: undefined });
    this.#messages.push({ role: 'tool', tool_call_id: id, content });
  }
}

function start(options: OpenOptions, input: string, { session, signal }: StartOptions, isHasty: boolean): PeerRun {
  const messages = [...((session ?? []) as Message[]), { role: 'user', content: input }];
  const loop = new Loop(options, messages);
  const stopped = Promise.withResolvers<Ending>();
  const stop = (): void => stopped.resolve({ isCancelled: true, says: 'stopped', session: [...messages] });
  // Never taken off again.
  signal?.addEventListener('abort', stop);
  const toEnding = (ending: Partial<Ending>): Ending => ({
    isCancelled: false,
    says: 'done',
    session: messages,
    ...ending,
  });
  const work = loop.run();
  const worked = work.then(
    () => toEnding({ text: loop.text }),
    (error: unknown) => toEnding({ says: String(error) }),
  );
  // A second promise for the end, whose rejections are unhandled.
  if (isHasty && options.tools.some(({ name }) => name === 'rude')) unheard.push(work.then(() => {}));
  return {
    ended: isHasty ? Promise.race([worked, stopped.promise]) : worked,
    text: () => loop.text,
    cancel: isHasty ? stop : () => {},
  };
}

const create = (name: string, isHasty: boolean): Peer => ({
  name,
  wires: ['chat'],
  takesSignal: true,
  notOffered: {},
  open: (options) => ({ start: (input, given = {}) => start(options, input, given, isHasty) }),
});

export const peer: Peer = create('hasty', true);
export const deafPeer: Peer = create('deaf', false);
