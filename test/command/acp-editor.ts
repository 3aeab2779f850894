// An editor that exchanges the lines of ACP with the command.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { BIN, type Home } from './terminal.ts';

export interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly update?: { readonly sessionUpdate: string; readonly status?: string } };
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string };
}

/** An editor that has started the command. */
export function edit({ folder, env }: Home, command: readonly string[]) {
  const [file = '', ...args] = BIN;
  const child = spawn(file, [...args, ...command], { cwd: folder.path, env, stdio: 'pipe' });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const seen: Message[] = [];
  const waiting: { matches: (message: Message) => boolean; tell: (message: Message) => void }[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line) as Message;
    seen.push(message);
    for (const one of waiting) if (one.matches(message)) one.tell(message);
  });
  const waitFor = (matches: (message: Message) => boolean): Promise<Message> =>
    new Promise((tell) => {
      const found = seen.find(matches);
      if (found === undefined) waiting.push({ matches, tell });
      else tell(found);
    });
  let last = 0;
  const send = (method: string, params: object): Promise<Message> => {
    const id = ++last;
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return waitFor((message) => message.id === id && message.method === undefined);
  };
  const start = async (): Promise<string> => {
    await send('initialize', { protocolVersion: 1, clientCapabilities: {} });
    const { result, error } = await send('session/new', { cwd: folder.path, mcpServers: [] });
    if (result === undefined) throw new Error(error?.message);
    return result['sessionId'] as string;
  };
  const end = async (): Promise<number> => {
    child.stdin.end();
    return ((await once(child, 'close')) as [number])[0];
  };
  return { child, seen, send, start, waitFor, end, errors: () => errors };
}

export const ask = (sessionId: string, text: string) => ({ sessionId, prompt: [{ type: 'text', text }] });
