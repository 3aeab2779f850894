// A real terminal (tmux), and the command as a person or a program starts it.
import { execFileSync, type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createWorkspace, type Workspace } from '../workspace.ts';
import { type Ended, type InProcess, type InProcessOptions, startInProcess } from './in-process.ts';

export const BIN: readonly string[] = [
  process.execPath,
  '--conditions=@whoa/source',
  join(import.meta.dirname, '../../packages/whoa/src/bin.ts'),
];

const POLL_INTERVAL_MS = 40;
const WAIT_MS = 30_000;

interface CommandOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface InProcessCommandOptions extends CommandOptions, Pick<InProcessOptions, 'terminal'> {}

/** A separate home: folder, state and configuration, and no API keys. */
export interface Home extends Disposable {
  readonly folder: Workspace;
  readonly env: Record<string, string>;
  /** Starts the command in this process. It has ended when the test has. */
  start(args: readonly string[], options?: InProcessCommandOptions): InProcess;
  /** Runs the command in this process. */
  main(args: readonly string[], options?: InProcessCommandOptions): Promise<Ended>;
  /** Runs the command in a separate process, without a terminal. */
  whoa(args: readonly string[], options?: CommandOptions): SpawnSyncReturns<string>;
  openTerminal(size?: { columns: number; rows: number }): Terminal;
}

export interface Terminal {
  type(text: string): void;
  press(...keys: string[]): void;
  /** Pastes as a terminal does for programs that want pastes marked. */
  paste(text: string): void;
  /** Keeps every byte that the terminal gets from now on. */
  record(): void;
  /** Waits for the shell's prompt, and returns every byte until then. */
  recorded(): Promise<string>;
  /** The visible text, without empty lines. */
  see(): string;
  /** Every line, with the escapes that colour it. */
  seeStyled(): string[];
  /** Waits until something is seen; answers everything that is. */
  waitFor(pattern: RegExp): Promise<string>;
  close(): void;
}

export function createHome(files: Readonly<Record<string, string>> = {}): Home {
  const folder = createWorkspace(files);
  const env: Record<string, string> = {
    PATH: process.env['PATH']!,
    HOME: folder.path,
    XDG_STATE_HOME: folder.at('state'),
    XDG_CONFIG_HOME: folder.at('config'),
    TMUX_TMPDIR: folder.path,
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
    LANG: 'C.UTF-8',
  };
  mkdirSync(folder.at('config/whoa'), { recursive: true, mode: 0o700 });
  const terminals: Terminal[] = [];
  const startHere: Home['start'] = (args, { env: more = {}, ...options } = {}) =>
    startInProcess(args, { cwd: folder.path, env: { ...env, ...more }, ...options });
  return {
    folder,
    env,
    start: startHere,
    main: (args, options) => startHere(args, options).ended,
    whoa(args, { input = '', env: more = {} } = {}) {
      const [file = '', ...rest] = BIN;
      return spawnSync(file, [...rest, ...args], {
        cwd: folder.path,
        env: { ...env, ...more },
        input,
        encoding: 'utf8',
      });
    },
    openTerminal(size = { columns: 110, rows: 40 }) {
      const terminal = openTerminal(`t${terminals.length}`, size, { cwd: folder.path, env });
      terminals.push(terminal);
      return terminal;
    },
    [Symbol.dispose]() {
      for (const terminal of terminals) terminal.close();
      folder[Symbol.dispose]();
    },
  };
}

function openTerminal(
  name: string,
  { columns, rows }: { columns: number; rows: number },
  { cwd, env }: { cwd: string; env: Record<string, string> },
): Terminal {
  const options = { env, cwd, encoding: 'utf8', stdio: 'pipe' } as const;
  const tmuxWith = (input: string, ...args: string[]): string =>
    execFileSync('tmux', ['-L', name, '-f', '/dev/null', ...args], { ...options, input });
  const tmux = (...args: string[]): string => tmuxWith('', ...args);
  const command = BIN.map((part) => `'${part}'`).join(' ');
  tmux('new-session', '-d', '-x', String(columns), '-y', String(rows), `PS1='' bash --norc --noprofile`);
  // The prompt comes last: once it is visible, the shell is ready.
  tmux('send-keys', `whoa() { ${command} "$@"; }; PS1='$ '; clear`, 'Enter');
  const see = (): string => tmux('capture-pane', '-p').trim();
  const recording = join(cwd, `${name}.recording`);
  let isClosed = false;
  return {
    type: (text) => tmux('send-keys', '-l', text) && undefined,
    press: (...keys) => tmux('send-keys', ...keys) && undefined,
    record: () => tmux('pipe-pane', `cat > '${recording}'`) && undefined,
    recorded: () => waitForMatch(/\$ $/, () => readFileSync(recording, 'utf8')),
    paste: (text) => tmuxWith(text, 'load-buffer', '-') + tmux('paste-buffer', '-p') && undefined,
    see,
    seeStyled: () => tmux('capture-pane', '-pe').split('\n').slice(0, rows),
    waitFor: (pattern) => waitForMatch(pattern, see),
    close() {
      if (!isClosed) tmux('kill-server');
      isClosed = true;
    },
  };
}

/** Polls until the text matches; returns the text. */
async function waitForMatch(pattern: RegExp, read: () => string): Promise<string> {
  const until = performance.now() + WAIT_MS;
  for (let seen = read(); ; seen = read()) {
    if (pattern.test(seen)) return seen;
    if (performance.now() > until) throw new Error(`${pattern} was not seen, but:\n${seen}`);
    await wait(POLL_INTERVAL_MS);
  }
}
