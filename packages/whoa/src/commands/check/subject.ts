import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  type Adapter,
  type AgentCommand,
  createA2aAdapter,
  createAcpAdapter,
  createAgUiAdapter,
  createChatAdapter,
  createMcpAdapter,
  type Protocol,
} from '@whoa/check';
import { UsageError, type Values } from '../../command.ts';

/** The options that say which agent is checked. */
export const SUBJECT_OPTIONS = {
  env: { type: 'string', multiple: true },
  header: { type: 'string', multiple: true },
  'stop-url': { type: 'string' },
  'second-url': { type: 'string' },
  tool: { type: 'string' },
} as const;

interface SubjectOptions extends Values<typeof SUBJECT_OPTIONS> {
  readonly protocol?: Protocol | undefined;
  readonly url: string | undefined;
  readonly command: readonly string[];
}

const EXAMPLES = 'whoa check -- my-agent --acp, or whoa check --protocol chat http://localhost:3000/api/chat';

/** Returns the adapter for an agent, or says what is missing. */
export function openSubject(options: SubjectOptions, cwd: string): Adapter {
  const { url, command, tool } = options;
  if (url === undefined && command.length === 0)
    throw new UsageError(`missing the agent to check, for example: ${EXAMPLES}`);
  const protocol = detectProtocol(options);
  const started: AgentCommand | undefined =
    command.length === 0
      ? undefined
      : { command: command.map((word, index) => inFull(word, index, cwd)), env: readPairs('--env', options.env, '=') };
  if (protocol === 'acp') return createAcpAdapter(acpCommand(url, started));
  const headers = readPairs('--header', options.header, ':');
  const server = {
    headers,
    ...(started !== undefined && { command: started }),
    ...(options['second-url'] !== undefined && { secondUrl: readUrl('--second-url', options['second-url']) }),
  };
  if (protocol === 'mcp') {
    const address = url === undefined ? {} : { url: readUrl('URL', url) };
    return createMcpAdapter({ ...server, ...address, ...(tool !== undefined && { tool }) });
  }
  if (url === undefined)
    throw new UsageError(`--protocol ${protocol}: expected the URL of the server, for example: ${EXAMPLES}`);
  const stop = options['stop-url'];
  const streamed = {
    ...server,
    url: readUrl('URL', url),
    ...(stop !== undefined && { stopUrl: readUrl('--stop-url', stop) }),
  };
  if (protocol === 'a2a') return createA2aAdapter(streamed);
  return protocol === 'chat' ? createChatAdapter(streamed) : createAgUiAdapter(streamed);
}

function detectProtocol({ protocol, url }: SubjectOptions): Protocol {
  if (protocol !== undefined) return protocol;
  if (url === undefined) return 'acp';
  throw new UsageError('a URL needs --protocol: mcp, a2a, ag-ui or chat');
}

function acpCommand(url: string | undefined, started: AgentCommand | undefined): AgentCommand {
  if (url === undefined && started !== undefined) return started;
  throw new UsageError('--protocol acp: agents for editors are commands: whoa check -- COMMAND');
}

/** Names files in full: the command runs in another folder. A command without a slash is found by PATH. */
function inFull(word: string, index: number, cwd: string): string {
  const isName = index === 0 && !word.includes('/');
  const path = resolve(cwd, word);
  return !isName && existsSync(path) && statSync(path).isFile() ? path : word;
}

function readUrl(option: string, text: string): string {
  // The port is filled in when the server starts.
  if (URL.canParse(text.replaceAll('{port}', '1')) && /^https?:/.test(text)) return text;
  throw new UsageError(`${option}: expected an http address, got '${text}'`);
}

function readPairs(option: string, pairs: readonly string[] = [], separator: string): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf(separator);
      if (at < 1) throw new UsageError(`${option}: expected NAME${separator}VALUE, got '${pair}'`);
      return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    }),
  );
}
