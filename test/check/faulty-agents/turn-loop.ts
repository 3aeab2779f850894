// The agent behind every protocol: a model, a shell, and a history that stays valid when the signal aborts.
import { spawn } from 'node:child_process';
import { type ChatCall, type ChatMessage, streamReply } from './chat-model.ts';

interface LoopOptions {
  readonly signal: AbortSignal;
  readonly onText?: (text: string) => void;
  readonly onCall?: (call: { readonly id: string; readonly isOpen: boolean }) => void;
}

/** Handles the last message of a history until the model has finished, or the signal aborts. */
export async function runTurn(history: ChatMessage[], options: LoopOptions): Promise<string> {
  const { signal, onText = () => {}, onCall = () => {} } = options;
  for (;;) {
    const reply = { text: '', calls: [] as ChatCall[] };
    try {
      await streamReply(history, { reply, signal, onText });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (signal.aborted || reply.calls.length === 0) {
      if (reply.text !== '') history.push({ role: 'assistant', content: reply.text });
      return reply.text;
    }
    history.push({ role: 'assistant', content: reply.text || null, tool_calls: reply.calls });
    for (const call of reply.calls) {
      onCall({ id: call.id, isOpen: true });
      const output = signal.aborted ? '' : await runCommand(call, signal);
      history.push({ role: 'tool', tool_call_id: call.id, content: signal.aborted ? 'It was cancelled.' : output });
      onCall({ id: call.id, isOpen: false });
    }
    if (signal.aborted) return reply.text;
  }
}

function runCommand(call: ChatCall, signal: AbortSignal): Promise<string> {
  const { command } = JSON.parse(call.function.arguments) as { command: string };
  const child = spawn('sh', ['-c', `exec ${command}`], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  const end = (): void => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  process.once('exit', end);
  signal.addEventListener('abort', end, { once: true });
  let output = '';
  child.stdout.on('data', (data: Buffer) => (output += data.toString()));
  return new Promise((resolve) => {
    child.once('exit', () => {
      process.off('exit', end);
      resolve(output);
    });
  });
}
