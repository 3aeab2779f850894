// The least that an agent needs of a model: one streamed reply of OpenAI Chat Completions.

export interface ChatCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; arguments: string };
}

export type ChatMessage =
  | { readonly role: 'user'; readonly content: string }
  | { readonly role: 'assistant'; content: string | null; tool_calls?: ChatCall[] }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string };

const BASH = {
  type: 'function',
  function: {
    name: 'bash',
    description: 'Runs a command.',
    parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  },
};

interface Delta {
  readonly content?: string;
  readonly tool_calls?: readonly { index: number; id?: string; function?: { name?: string; arguments?: string } }[];
}

/** Streams a reply into `reply` until it ends or breaks off. */
export async function streamReply(
  messages: readonly ChatMessage[],
  {
    reply,
    signal,
    onText,
  }: { reply: { text: string; calls: ChatCall[] }; signal: AbortSignal; onText: (text: string) => void },
): Promise<void> {
  const response = await fetch(`${process.env['OPENAI_BASE_URL']}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'check', stream: true, messages, tools: [BASH] }),
    signal,
  });
  if (!response.ok) throw new Error(`the model refused: ${await response.text()}`);
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body! as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith('data: ') || line === 'data: [DONE]') continue;
      const { choices } = JSON.parse(line.slice(6)) as { choices: { delta: Delta }[] };
      const delta = choices[0]?.delta;
      if (delta?.content) {
        reply.text += delta.content;
        onText(delta.content);
      }
      for (const piece of delta?.tool_calls ?? []) addPiece(reply.calls, piece);
    }
  }
}

function addPiece(calls: ChatCall[], piece: NonNullable<Delta['tool_calls']>[number]): void {
  const call = (calls[piece.index] ??= {
    id: piece.id ?? '',
    type: 'function',
    function: { name: piece.function?.name ?? '', arguments: '' },
  });
  call.function.arguments += piece.function?.arguments ?? '';
}
