import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import {
  CHECKS,
  type CheckResult,
  createCheckHarness,
  GROUPS,
  PROTOCOLS,
  runChecks,
  toBadge,
  toJunit,
} from '@whoa/check';
import { type Command, EXIT, readArguments, readCount, readDuration, UsageError, type Use } from '../../command.ts';
import type { System } from '../../system.ts';
import { listenForEnd } from '../../terminal/interrupts.ts';
import { Screen } from '../../terminal/screen.ts';
import { listChecks, ResultPrinter } from './print-results.ts';
import { openSubject } from './subject.ts';

const help = `whoa check [options] -- COMMAND [ARGUMENT…]
whoa check [options] URL [-- COMMAND [ARGUMENT…]]

Checks whether an agent stops when told. Starts COMMAND as an editor would, or uses the server at URL, which COMMAND starts; gives the
agent a model and a tool of its own, cancels it in every way there is, and watches from outside what happens: requests to the model,
processes, effects.

The agent must use the model of the kit. OPENAI_BASE_URL and ANTHROPIC_BASE_URL point there; elsewhere write {provider}. {folder} is
an empty folder in which the agent works, {port} a free port for a server. Files that COMMAND names are found from the current folder.

  --protocol NAME         what it speaks: acp, mcp, a2a, ag-ui or chat (the AI SDK's). Defaults to acp without a URL
  --env NAME=VALUE        a variable for COMMAND; can be repeated
  --header 'NAME: VALUE'  a header for every request to URL; can be repeated
  --stop-url URL          where a chat or an AG-UI run is stopped ({id}: its id); otherwise the kit closes the connection
  --second-url URL        a second instance of the same server
  --tool NAME             the tool of an MCP server to call
  --only NAME             only this check or group; can be repeated
  --within DURATION       how long a cancel may take; defaults to 5s
  --provider-port NUMBER  where the model listens; for a server that is already running. By default on a free port
  --junit FILE            write a report for a CI service
  --badge FILE            write a badge (SVG)
  --list                  list the checks and the rules that they stand on

Exit code: 0 if every check that applies was passed, 1 if not or if none applies, 130 after Ctrl-C.`;

const OPTIONS = {
  protocol: { type: 'string', values: PROTOCOLS },
  env: { type: 'string', multiple: true },
  header: { type: 'string', multiple: true },
  'stop-url': { type: 'string' },
  'second-url': { type: 'string' },
  tool: { type: 'string' },
  only: { type: 'string', multiple: true },
  within: { type: 'string', default: '5s' },
  'provider-port': { type: 'string' },
  junit: { type: 'string' },
  badge: { type: 'string' },
  list: { type: 'boolean', default: false },
} as const;

export const checkCommand: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const end = args.indexOf('--');
  const { values, positionals } = readArguments(end === -1 ? args : args.slice(0, end), OPTIONS, 1);
  const screen = own(new Screen(system));
  if (values.list) return listChecks(screen, values.json);
  const only = readOnly(values.only);
  const settleMs = readDuration('--within', values.within);
  const port = values['provider-port'];
  const subject = { ...values, url: positionals[0], command: end === -1 ? [] : args.slice(end + 1) };
  const adapter = own(openSubject(subject, system.cwd()));
  const stopper = new AbortController();
  own(listenForEnd(() => stopper.abort(), system));
  const stage = own(
    await createCheckHarness(port === undefined ? {} : { port: readCount('--provider-port', port, { max: 65_535 }) }),
  );
  const printer = new ResultPrinter(screen, values.json);
  screen.status(() => 'starting the agent');
  const onResult = (result: CheckResult): void => printer.print(result);
  const { signal } = stopper;
  try {
    const report = await runChecks({ adapter, stage, settleMs, signal, onResult, ...(only !== undefined && { only }) });
    printer.finish(report);
    if (values.junit !== undefined) await writeFile(resolve(system.cwd(), values.junit), toJunit(report));
    if (values.badge !== undefined) await writeFile(resolve(system.cwd(), values.badge), toBadge(report));
    const { passed, failed, unclear } = report.counts;
    // Where nothing applies, nothing was shown.
    return passed > 0 && failed + unclear === 0 ? EXIT.success : EXIT.failed;
  } catch (error) {
    if (!signal.aborted) throw error;
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
