import { existsSync, mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { detectContainments, detectSandbox } from '@whoa/tools';
import { findRipgrep } from '@whoa/tools/internal';
import { type Command, EXIT, readArguments, type Use } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';
import { configFolder } from '../config/config-folder.ts';
import { findConfig, loadConfig } from '../config/load.ts';
import { COMPATIBLE_KEY, defaultModelName, KEYED_PROVIDERS, parseModelName, readKey } from '../model/model-name.ts';
import type { ConnectionContext, System } from '../system.ts';
import { describeStore, LOCAL_TENANT, openStore } from '../tasks/local-tasks.ts';
import { describeResume, describeTarget, listPauses } from '../tasks/pauses.ts';
import { Screen } from '../terminal/screen.ts';
import { oneLine } from '../terminal/text/plain-text.ts';

const help = `whoa doctor [--config FILE] [--json]

Checks this machine: containment of process trees, the sandbox, ripgrep, the task store, models and their keys, and the configuration.
Suggests a fix for each problem.

Exit code: 0 if 'whoa run' can work here, 1 if something must be fixed first.`;

const OPTIONS = { config: { type: 'string' } } as const;

export const command: Command = { help, options: OPTIONS, run };

/** `missing` is for information; `broken` must be fixed. */
type State = 'ok' | 'missing' | 'broken';

interface Finding {
  readonly about: string;
  readonly name: string;
  readonly state: State;
  readonly text: string;
  /** What the user should do. */
  readonly advice?: string;
}

const SIGNS = { ok: '✔', missing: '–', broken: '✘' } as const;
const STYLES = { ok: 'green', missing: 'dim', broken: 'red' } as const;
const MAX_CHARACTERS = 400;

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const screen = own(new Screen(system, values));
  if (!values.json) screen.status(() => 'looking');
  const { config, finding: configuration } = await lookAtConfig(values.config, system);
  const found = await Promise.all([
    lookAtContainments(),
    lookAtSandbox(),
    lookAtSearch(),
    checkStore(config, { given: values.config, own, env: system.env }),
  ]);
  const findings: readonly Finding[] = [
    { about: 'Node', name: process.version, state: 'ok', text: `${process.platform} ${process.arch}` },
    ...found.flat(),
    ...lookAtKeys(system.env),
    checkModel(config, system.env),
    configuration,
  ];
  screen.status(undefined);
  let about = '';
  for (const finding of findings) {
    screen.data(finding);
    if (finding.about !== about) screen.line(`${about === '' ? '' : '\n'}${screen.style('bold', finding.about)}`);
    about = finding.about;
    screen.line(`  ${screen.style(STYLES[finding.state], SIGNS[finding.state])} ${finding.name}: ${finding.text}`);
    if (finding.advice !== undefined) screen.line(`      → ${finding.advice}`);
  }
  return findings.some(({ state }) => state === 'broken') ? EXIT.failed : EXIT.success;
}

const PROOF = {
  cgroup: 'the kernel ends every process that does not move itself into another cgroup; nothing changes for commands',
  namespace:
    'the kernel ends every process; with --isolate and in a sandbox. Commands see other pids, and sudo may not work',
  tags: 'processes that a command starts are tagged, found and ended; needs no privileges',
  no: 'processes are ended, but it cannot be verified',
} as const;

async function lookAtContainments(): Promise<Finding[]> {
  const about = 'How process trees are ended';
  return (await detectContainments()).map(({ technique, isAvailable, verified, reason = '' }) => {
    if (isAvailable) return { about, name: technique, state: 'ok', text: PROOF[verified] };
    const advice =
      technique === 'cgroup'
        ? 'optional: start whoa with systemd-run --user --scope -p Delegate=yes, or mount the cgroup v2 tree writable'
        : 'optional: install util-linux or bubblewrap, and allow user namespaces';
    return { about, name: technique, state: 'missing', text: oneLine(reason, MAX_CHARACTERS), advice };
  });
}

const MCP_SERVERS = 'run outside the sandbox and can access everything that you can';

async function lookAtSandbox(): Promise<Finding[]> {
  const row = { about: 'What commands may access', name: 'sandbox' };
  const workspace = mkdtempSync(join(tmpdir(), `whoa-probe-${process.pid}-`));
  try {
    const { isAvailable, reason = '' } = await detectSandbox({ kind: 'workspace', workspace });
    if (isAvailable) {
      const root = process.getuid?.() === 0 ? '; as root, the number of processes is not limited' : '';
      return [
        { ...row, state: 'ok', text: `--sandbox workspace and read-only work, with bubblewrap${root}` },
        { ...row, name: 'MCP servers', state: 'ok', text: MCP_SERVERS },
      ];
    }
    const advice = 'install bubblewrap 0.8 or later (apt install bubblewrap) and allow user namespaces';
    return [{ ...row, state: 'missing', text: `only none: ${oneLine(reason, MAX_CHARACTERS)}`, advice }];
  } finally {
    rmdirSync(workspace);
  }
}

async function lookAtSearch(): Promise<Finding[]> {
  const row = { about: 'Search', name: 'ripgrep' };
  try {
    return [{ ...row, state: 'ok', text: await findRipgrep() }];
  } catch {
    const advice = 'install ripgrep (https://github.com/BurntSushi/ripgrep) so that grep and find work';
    return [{ ...row, state: 'missing', text: 'not installed', advice }];
  }
}

interface StoreCheck {
  /** The configuration file, if an option names one. */
  readonly given: string | undefined;
  readonly own: Use;
  readonly env: NodeJS.ProcessEnv;
}

/** Tasks are counted per tenant, so this bounds the number of requests. */
const MAX_TENANTS = 100;

async function checkStore(config: WhoaConfig, { given, own, env }: StoreCheck): Promise<Finding[]> {
  const { name, location } = describeStore(config, env);
  const row = { about: 'Tasks', name };
  try {
    const store = own(openStore(config, env));
    const { tenants, next } = await store.tenants({ limit: MAX_TENANTS });
    const counts = await Promise.all(tenants.map((tenant) => store.counts({ tenant })));
    const tasks = counts.flatMap(({ statuses }) => Object.values(statuses)).reduce((sum, one) => sum + one, 0);
    const among = `${next === undefined ? '' : 'the first '}${tenants.length === 1 ? '1 tenant' : `${tenants.length} tenants`}`;
    const text = `${tasks === 1 ? '1 task' : `${tasks} tasks`} of ${among} kept in ${location}`;
    const pauses = (await listPauses(store)).map((target): Finding => {
      // The tenant of every `whoa run`.
      const isOurs = 'tenant' in target && target.tenant === LOCAL_TENANT;
      const advice = `to end the pause: ${describeResume(target, env, { config: given })}`;
      const why = 'paused, so its tasks wait';
      return {
        about: row.about,
        name: describeTarget(target),
        state: isOurs ? 'broken' : 'missing',
        text: why,
        advice,
      };
    });
    return [{ ...row, state: 'ok', text }, ...pauses];
  } catch (error) {
    const advice = config.store && { advice: "fix 'store' in your configuration, or the store it names" };
    return [{ ...row, state: 'broken', text: oneLine((error as Error).message, MAX_CHARACTERS), ...advice }];
  }
}

function lookAtKeys(env: NodeJS.ProcessEnv): Finding[] {
  const about = 'Models';
  const keyed = Object.entries(KEYED_PROVIDERS).map(([name, { variable, model }]): Finding => {
    if (env[variable]) return { about, name, state: 'ok', text: `${variable} is set; --model ${name}:${model}` };
    return { about, name, state: 'missing', text: 'no key', advice: `set ${variable}` };
  });
  const text = `any server that supports OpenAI's chat API; --model compatible:http://localhost:11434/v1:NAME`;
  const key = env[COMPATIBLE_KEY] ? `${COMPATIBLE_KEY} is set` : `set ${COMPATIBLE_KEY} if the server needs a key`;
  return [...keyed, { about, name: 'compatible', state: 'ok', text: `${text} (${key})` }];
}

/** Which model `whoa run` would use, and whether its key is set. */
function checkModel({ model, agents = {} }: WhoaConfig, env: NodeJS.ProcessEnv): Finding {
  const row = { about: 'Models', name: 'whoa run' };
  const [own] = Object.keys(agents);
  try {
    const name = model ?? defaultModelName(env);
    readKey(parseModelName(name), env);
    return { ...row, state: 'ok', text: `uses ${oneLine(name, MAX_CHARACTERS)}; no request was sent to it` };
  } catch (error) {
    const text = oneLine((error as Error).message, MAX_CHARACTERS);
    // An agent of the configuration may have its own model.
    if (own !== undefined) return { ...row, state: 'missing', text: `${text}; '${oneLine(own, 60)}' may have its own` };
    return { ...row, state: 'broken', text };
  }
}

async function lookAtConfig(
  given: string | undefined,
  surroundings: ConnectionContext,
): Promise<{ config: WhoaConfig; finding: Finding }> {
  const row = { about: 'Configuration', name: 'whoa.config.ts' };
  try {
    const file = given ?? findConfig(surroundings.env);
    const config = await loadConfig(given, surroundings);
    if (file !== undefined) return { config, finding: { ...row, state: 'ok', text: file } };
  } catch (error) {
    const text = oneLine((error as Error).message, MAX_CHARACTERS);
    return { config: {}, finding: { ...row, state: 'broken', text } };
  }
  const folder = configFolder(surroundings.env);
  const makes = existsSync(folder) ? '' : 'create the folder and ';
  const advice = `${makes}put one into ${folder}`;
  return { config: {}, finding: { ...row, state: 'missing', text: 'none, which is fine', advice } };
}
