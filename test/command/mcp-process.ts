// `whoa mcp` as a process, and a host that writes its own messages.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { type Answered, type Fields, toRequest } from '../server/mcp-host.ts';
import { BIN, type Home } from './terminal.ts';

interface HostMessage extends Answered {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Fields;
}

export interface McpHost {
  readonly child: ChildProcessWithoutNullStreams;
  readonly messages: readonly HostMessage[];
  readonly closed: Promise<[code: number | null, signal: NodeJS.Signals | null]>;
  /** Writes messages in one chunk. */
  write(...messages: readonly object[]): void;
  ask(method: string, params: Fields): Promise<HostMessage>;
  /** Waits for a message, including an earlier one. */
  waitFor(isIt: (message: HostMessage) => boolean): Promise<HostMessage>;
  /** Calls the agent, and returns the id of its task. */
  start(name?: string): Promise<string>;
  /** Polls a task until its state has these fields. */
  waitForTask(taskId: string, fields: Fields): Promise<Fields>;
}

/** Starts the command. It is killed when the test has ended. */
export function openHost(
  { folder, env }: Home,
  options: readonly string[],
  { capabilities, reads = true }: { readonly capabilities?: object; readonly reads?: boolean } = {},
): McpHost {
  const [command = '', ...args] = BIN;
  const child = spawn(command, [...args, 'mcp', ...options], { cwd: folder.path, env });
  const closed = once(child, 'close') as McpHost['closed'];
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  child.stderr.resume();
  child.stdin.on('error', () => {});
  const messages: HostMessage[] = [];
  const waiting = new Set<() => void>();
  let isClosed = false;
  const wake = (): void => {
    for (const look of waiting) look();
  };
  child.once('close', () => {
    isClosed = true;
    wake();
  });
  if (reads)
    createInterface({ input: child.stdout }).on('line', (line) => {
      messages.push(JSON.parse(line) as HostMessage);
      wake();
    });
  else child.stdout.pause();
  const waitFor: McpHost['waitFor'] = (isIt) =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = messages.find(isIt);
        if (found === undefined && !isClosed) return;
        waiting.delete(look);
        if (found !== undefined) resolve(found);
        else reject(new Error(`it ended before: ${isIt.toString()}`));
      };
      waiting.add(look);
      look();
    });
  const write: McpHost['write'] = (...all) =>
    void child.stdin.write(all.map((message) => `${JSON.stringify(message)}\n`).join(''));
  const ask: McpHost['ask'] = (method, params) => {
    const request = toRequest(method, params, capabilities);
    write(request);
    return waitFor(({ id, method: other }) => id === request.id && other === undefined);
  };
  return {
    child,
    messages,
    closed,
    write,
    ask,
    waitFor,
    async start(name = 'assistant') {
      const { result } = await ask('tools/call', { name, arguments: { prompt: 'Is all well?' } });
      return result!['taskId'] as string;
    },
    async waitForTask(taskId, fields) {
      for (;;) {
        const { result, error } = await ask('tasks/get', { taskId });
        if (error !== undefined) throw new Error(error.message);
        if (Object.entries(fields).every(([name, value]) => result![name] === value)) return result!;
      }
    },
  };
}
