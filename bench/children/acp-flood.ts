// An agent that only responds, and on a prompt sends the number of megabytes of updates that it names.

import { once } from 'node:events';
import { createInterface } from 'node:readline';

const text = 'x'.repeat(1_000);

async function flood(sessionId: string, megabytes: number): Promise<void> {
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } };
  const line = `${JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } })}\n`;
  for (let sent = 0; sent < megabytes * 1e6; sent += line.length)
    if (!process.stdout.write(line)) await once(process.stdout, 'drain');
}

interface Incoming {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly sessionId: string; readonly prompt?: readonly [{ readonly text: string }] };
}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, method, params } = JSON.parse(line) as Incoming;
    const answer = (result: object): unknown =>
      process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
    if (method === 'initialize') answer({ protocolVersion: 1 });
    else if (method === 'session/new') answer({ sessionId: 's' });
    else if (method === 'session/prompt')
      flood('s', Number(params?.prompt?.[0].text)).then(
        () => answer({ stopReason: 'end_turn' }),
        () => process.exit(1),
      );
    else if (id !== undefined) answer({});
  })
  .on('close', () => process.exit(0));
