import type { UIMessageChunk } from 'ai';

/** Reads the chunks of a reply from the events of a response. Pings and events of other kinds are left out. */
export function readChunks(response: Response): ReadableStream<UIMessageChunk> {
  if (response.body === null) throw new TypeError('network error: the response has no body');
  const decoder = new TextDecoder();
  let text = '';
  return response.body.pipeThrough(
    new TransformStream<Uint8Array, UIMessageChunk>({
      transform(bytes, controller) {
        text += decoder.decode(bytes, { stream: true });
        // A line may end with `\r\n` whose halves come apart.
        const events = text.split(/\r?\n\r?\n/);
        text = events.pop()!;
        for (const event of events) {
          const data = readData(event);
          if (data !== '' && data !== '[DONE]') controller.enqueue(JSON.parse(data) as UIMessageChunk);
        }
      },
    }),
  );
}

function readData(event: string): string {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith('data:'));
  return lines.map((line) => line.slice('data:'.length).trimStart()).join('\n');
}
