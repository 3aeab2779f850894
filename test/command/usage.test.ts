// Invalid uses of commands, and the resulting messages.
import { expect, onTestFinished, test } from 'vitest';
import { createHome, type Home } from './terminal.ts';

function home(files: Record<string, string> = {}): Home {
  const made = createHome({ 'script.json': '[["Fine."]]', ...files });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

test.each<[string[], RegExp]>([
  [['tasks', 'all'], /^whoa tasks: unexpected argument 'all'; --help lists the arguments\n$/],
  [['cancel', 'one', '--all'], /^whoa cancel: expected task ids or --all, not both\n$/],
  [['cancel', 'one', '--agent', 'a'], /^whoa cancel: --status, --agent and --conversation need --all\n$/],
  [['cancel', '--all', '--call', 'c'], /^whoa cancel: --call: expected exactly one task\n$/],
  [['tasks', '--all-tenants', '--tenant', 'a'], /^whoa tasks: --tenant and --all-tenants cannot be combined\n$/],
  [['tasks', '--server', 'tasks'], /^whoa tasks: --server: expected a URL/],
  [['tasks', '--server', 'http://127.0.0.1:9'], /^whoa tasks: --server: set WHOA_TOKEN/],
  [['watch', 'one', 'two'], /^whoa watch: unexpected argument 'two'/],
  [['doctor', 'who'], /^whoa doctor: unexpected argument 'who'/],
  [['acp', 'zed'], /^whoa acp: unexpected argument 'zed'/],
  [['run', '--loud', 'x'], /^whoa run: --loud: unknown option; --help lists the options\n$/],
  [['run', '-x', 'x'], /^whoa run: -x: unknown option/],
  [
    ['tasks', '--limit', '99999999'],
    /^whoa tasks: --limit: expected a whole number from 1 to 10000, got '99999999'\n$/,
  ],
  [['tasks', '--limit', '-1'], /^whoa tasks: --limit: expected a whole number from 1 to 10000, got '-1'\n$/],
  [['tasks', '--limit'], /^whoa tasks: --limit: expected a value; if it begins with a dash, write --limit=VALUE\n$/],
  [['run', '--yes=no', 'x'], /^whoa run: --yes: takes no value\n$/],
  [['run', '--cwd', 'nowhere', 'x'], /^whoa run: --cwd: there is no folder 'nowhere'\n$/],
  [['run', '--timeout', 'soon', 'x'], /^whoa run: --timeout: expected a duration such as 90s, 5m or 1h, got 'soon'\n$/],
  [['run', '--timeout', '0', 'x'], /^whoa run: --timeout: expected a duration/],
  // Longer timers of Node end immediately.
  [['halt', '--agent', 'x', '--timeout', '1000h'], /^whoa halt: --timeout: expected at most 24 d, got '1000h'\n$/],
  [['serve', '--drain', '2h'], /^whoa serve: --drain: expected at most 1 h, got '2h'\n$/],
  [['worker', '--watchdog', '5ms'], /^whoa worker: --watchdog: expected 0, or at least 1s\n$/],
  [['echo', '--delay', 'soon'], /^whoa echo: --delay: expected a duration such as 90s, 5m or 1h, got 'soon'\n$/],
  [['run', '--max-turns', '0', 'x'], /^whoa run: --max-turns: expected a whole number from 1 to/],
  [['run', '--model', 'foo', 'x'], /^whoa run: --model: expected anthropic:NAME, .*, got 'foo'\n$/],
  [
    ['run', '--sandbox', 'strong', 'x'],
    /^whoa run: --sandbox: expected one of workspace, read-only, none, got 'strong'\n$/,
  ],
  [['acp', '--sandbox', 'strong'], /^whoa acp: --sandbox: expected one of workspace, read-only, none, got 'strong'\n$/],
  [['acp', '--sandbox', 'strong', '--', 'true'], /^whoa acp: --sandbox: expected one of workspace, read-only, none, /],
  [['acp', '--json'], /^whoa acp: --json: its standard output is for the editor\n$/],
  [['echo', '--json'], /^whoa echo: --json: its standard output is for the editor\n$/],
  [['aprove', 't1'], /^whoa: unknown command 'aprove'; did you mean 'approve'\?\n$/],
  [['help', 'nothing'], /^whoa: unknown command 'nothing'; use one of run, /],
  [['run', '--config', '.', 'x'], /^whoa run: --config: .* is not a file\n$/],
])('%j is rejected in one line', async (args, words) => {
  const { status, stderr, stdout } = await home().main(args);
  expect(stderr).toMatch(words);
  expect(stdout).toBe('');
  expect(status).toBe(2);
});

test.each([[['help', 'run']], [['--help', 'run']], [['run', '--help']], [['run', '-h', '--json']]])(
  '%j prints the help of the command',
  async (args) => {
    const { status, stdout } = await home().main(args);
    expect(stdout).toMatch(/^whoa run \[options\] "prompt"\n/);
    expect(status).toBe(0);
  },
);

test('a store with an invalid address is a mistake in the configuration', async () => {
  const own = home({
    'config/whoa/whoa.config.ts': "export default { store: { backend: 'postgres', url: 'host:5432' } };",
  });
  const { status, stderr } = await own.main(['tasks']);
  expect(stderr).toMatch(
    /whoa\.config\.ts: store: url: expected an address such as 'postgres:\/\/host\/database', got 'host:5432'/,
  );
  expect(status).toBe(2);
});

const WORK = ['--watchdog', '0', '--sandbox', 'none', '--yes', '--model', 'scripted:script.json'];

const WRONG: readonly { what: string; env?: Record<string, string>; said: RegExp; args: readonly string[] }[] = [
  { what: 'a short token', env: { WHOA_TOKEN: 'short' }, said: /WHOA_TOKEN: too short/, args: ['serve'] },
  { what: 'an origin with a path', said: /expected an origin/, args: ['serve', '--origin', 'https://a.b/c'] },
  { what: 'an agent that is not there', said: /use one of assistant/, args: ['worker', '--agent', 'nobody', ...WORK] },
  {
    what: '--yes without a sandbox',
    said: /--yes without a terminal needs/,
    args: ['worker', '--watchdog', '0', '--yes'],
  },
  {
    what: 'a store that is not shared',
    said: /which a memory store cannot do/,
    args: ['worker', '--config', 'memory.config.ts', ...WORK],
  },
];

test.each(WRONG)('$what is rejected with what to do', async ({ env = {}, said, args }) => {
  const own = home({ 'memory.config.ts': "export default { store: { backend: 'memory' } };" });
  const { status, stderr } = await own.main(args, { env });
  expect([status, stderr]).toEqual([2, expect.stringMatching(said)]);
});

test('`whoa new` overwrites neither the tool nor its test', async () => {
  for (const mine of ['fetch.ts', 'fetch.test.ts']) {
    const own = home({ [mine]: 'mine' });
    const { folder } = own;
    const { status, stderr } = await own.main(['new', 'tool', 'fetch']);
    expect(status).toBe(2);
    expect(stderr).toMatch(/^whoa new: .*fetch(\.test)?\.ts already exists; choose another name or --folder\n$/);
    expect(folder.read(mine)).toBe('mine');
    expect(folder.list().filter((name) => name.startsWith('fetch'))).toEqual([mine]);
  }
});

test.each<[string[], RegExp]>([
  [['new'], /^whoa new: use 'whoa new tool NAME'\n$/],
  [['new', 'agent', 'x'], /^whoa new: cannot create 'agent'; use 'whoa new tool NAME'\n$/],
  [['new', 'tool'], /^whoa new: missing the name of the tool; for example: 'whoa new tool fetch_page'\n$/],
  [['new', 'tool', 'fetch page'], /^whoa new: 'fetch page' is not .*; try 'fetch_page'\n$/],
  [['new', 'tool', '../../etc/passwd'], /; try 'etc_passwd'\n$/],
  [['new', 'tool', '1st'], /; try 'st'\n$/],
  [['new', 'tool', 'x_'], /; try 'x'\n$/],
  [['new', 'tool', 'Über'], /; try 'uber'\n$/],
  [['new', 'tool', '…'], /ending with a letter or digit\n$/],
  [['new', 'tool', 'a', 'b'], /^whoa new: unexpected argument 'b'/],
])('%j is rejected in words that help', async (args, words) => {
  const own = home();
  const { folder } = own;
  const before = folder.list();
  const { status, stderr } = await own.main(args);
  expect(stderr).toMatch(words);
  expect(status).toBe(2);
  expect(folder.list()).toEqual(before);
});

test('an unknown shell is rejected', async () => {
  const { status, stderr } = await home().main(['completions', 'cmd']);
  expect(stderr).toBe('whoa completions: expected one of bash, zsh, fish; use: whoa completions bash\n');
  expect(status).toBe(2);
});
