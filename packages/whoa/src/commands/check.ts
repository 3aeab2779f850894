import { writeFile } from 'node:fs/promises';
import {
  CHECKS,
  type CheckReport,
  type CheckResult,
  createAcpAdapter,
  createStage,
  GROUPS,
  runChecks,
  toBadge,
  toJunit,
} from '@whoa/check';
import { type Command, EXIT, type Own, readArguments, readCount, readDuration, UsageError } from '../command.ts';
import { listenForEnd } from '../terminal/interrupts.ts';
import { Screen } from '../terminal/screen.ts';
import { oneLine } from '../terminal/text/plain-text.ts';

const help = `whoa check [options] -- COMMAND [ARGUMENT…]

Checks whether an agent stops when told. Starts COMMAND as an editor would (Agent Client Protocol), gives it a model and a tool of
its own, cancels it in every way there is, and watches from outside what happens: requests to the model, processes, effects.

The agent must use the model of the kit. OPENAI_BASE_URL and ANTHROPIC_BASE_URL point there; elsewhere write {provider}. {folder} is
an empty folder in which the agent works.

  --env NAME=VALUE        a variable for COMMAND; can be repeated
  --only NAME             only this check or group; can be repeated
  --within DURATION       how long a cancel may take; defaults to 5s
  --provider-port NUMBER  where the model listens; by default on a free port
  --junit FILE            write a report for a CI service
  --badge FILE            write a badge (SVG)
  --list                  list the checks and the rules that they stand on

Exit code: 0 if every check that applies was passed, 1 if not, 130 after Ctrl-C.`;

const OPTIONS = {
  env: { type: 'string', multiple: true },
  only: { type: 'string', multiple: true },
  within: { type: 'string', default: '5s' },
  'provider-port': { type: 'string' },
  junit: { type: 'string' },
  badge: { type: 'string' },
  list: { type: 'boolean', default: false },
} as const;

export const checkCommand: Command = { help, options: OPTIONS, run };

const SIGNS = { passed: '✔', failed: '✘', unclear: '?', 'not-applicable': '–' } as const;
const STYLES = { passed: 'green', failed: 'red', unclear: 'yellow', 'not-applicable': 'dim' } as const;
const MAX_CHARACTERS = 600;

async function run(args: readonly string[], own: Own): Promise<number> {
  const end = args.indexOf('--');
  const { values } = readArguments(end === -1 ? args : args.slice(0, end), OPTIONS);
  const command = end === -1 ? [] : args.slice(end + 1);
  const screen = own(new Screen());
  if (values.list) return list(screen, values.json);
  if (command.length === 0) throw new UsageError('no command to check, for example: whoa check -- my-agent --acp');
  const only = readOnly(values.only);
  const settleMs = readDuration('--within', values.within);
  const port = values['provider-port'];
  const stopper = new AbortController();
  own(listenForEnd(() => stopper.abort()));
  const stage = own(
    await createStage(port === undefined ? {} : { port: readCount('--provider-port', port, { max: 65_535 }) }),
  );
  const adapter = own(createAcpAdapter({ command, env: readVariables(values.env) }));
  const printer = new Printer(screen, values.json);
  screen.status(() => 'starting the agent');
  try {
    const onResult = (result: CheckResult): void => printer.print(result);
    const report = await runChecks({
      adapter,
      stage,
      settleMs,
      signal: stopper.signal,
      onResult,
      ...(only !== undefined && { only }),
    });
    printer.finish(report);
    if (values.junit !== undefined) await writeFile(values.junit, toJunit(report));
    if (values.badge !== undefined) await writeFile(values.badge, toBadge(report));
    return report.counts.failed + report.counts.unclear === 0 ? EXIT.success : EXIT.failed;
  } catch (error) {
    if (!stopper.signal.aborted) throw error;
    return EXIT.cancelled;
  }
}

function readOnly(names: readonly string[] | undefined): readonly string[] | undefined {
  for (const name of names ?? []) {
    if (Object.hasOwn(GROUPS, name) || CHECKS.some(({ id }) => id === name)) continue;
    throw new UsageError(`--only: no check or group is named '${name}'; 'whoa check --list' lists them`);
  }
  return names;
}

function readVariables(pairs: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) throw new UsageError(`--env: expected NAME=VALUE, got '${pair}'`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

function list(screen: Screen, asJson: boolean): number {
  let group = '';
  for (const check of CHECKS) {
    const rules = Object.entries(check.rules ?? {}).map(
      ([protocol, { from, level }]) => `${protocol}: ${from} (${level})`,
    );
    if (asJson) {
      screen.data({
        id: check.id,
        group: check.group,
        title: check.title,
        needs: check.needs,
        rules: check.rules ?? {},
      });
      continue;
    }
    if (check.group !== group)
      screen.line(`${group === '' ? '' : '\n'}${screen.style('bold', GROUPS[check.group])} (${check.group})`);
    group = check.group;
    screen.line(`  ${check.id}: ${check.title}`);
    screen.line(screen.style('dim', `      ${rules.length === 0 ? 'our own rule' : rules.join('; ')}`));
  }
  return EXIT.success;
}

/** Prints results as they come. */
class Printer {
  readonly #screen: Screen;
  readonly #asJson: boolean;
  #group = '';

  constructor(screen: Screen, asJson: boolean) {
    this.#screen = screen;
    this.#asJson = asJson;
  }

  print(result: CheckResult): void {
    const screen = this.#screen;
    if (this.#asJson) {
      screen.data({ type: 'check', ...result });
      return;
    }
    const { group, id, title, status, said, rule } = result;
    if (group !== this.#group) screen.line(`${this.#group === '' ? '' : '\n'}${screen.style('bold', GROUPS[group])}`);
    this.#group = group;
    const words = oneLine(said, MAX_CHARACTERS);
    const isQuiet = status === 'passed' || status === 'not-applicable';
    const aside = isQuiet && words !== '' ? screen.style('dim', ` (${words})`) : '';
    screen.line(`  ${screen.style(STYLES[status], SIGNS[status])} ${id}: ${title}${aside}`);
    if (!isQuiet) screen.line(`      ${words}`);
    if (status === 'failed') screen.line(screen.style('dim', `      ${rule.from} (${rule.level}): ${rule.text}`));
  }

  finish({ agent, protocol, counts }: CheckReport): void {
    const screen = this.#screen;
    screen.status(undefined);
    if (this.#asJson) screen.data({ type: 'report', agent, protocol, counts });
    else {
      const { passed, failed, unclear, 'not-applicable': others } = counts;
      screen.line(
        `\n${oneLine(agent, MAX_CHARACTERS)}: ${passed} passed, ${failed} failed, ${unclear} unclear, ${others} do not apply`,
      );
    }
  }
}
