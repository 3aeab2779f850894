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
import { openSubject, SUBJECT_OPTIONS } from './subject.ts';

const help = `whoa check [options] -- COMMAND [ARGUMENT…]
whoa check [options] URL [-- COMMAND [ARGUMENT…]]

Tests whether an agent stops when you cancel it. Starts COMMAND as an editor would, or uses the server at URL, which COMMAND may start.
Connects the agent to a test model and a test tool, cancels it at every stage, and verifies the result from outside the process: its
requests to the model, its processes and its effects.

The agent must use the test model: OPENAI_BASE_URL and ANTHROPIC_BASE_URL point to it, and {provider} is replaced by its address.
{folder} is replaced by an empty folder to work in, {port} by a free port for a server. COMMAND's paths are relative to the current
folder.

  --protocol NAME         the agent's protocol: acp, mcp, a2a, ag-ui or chat (the AI SDK's); defaults to acp without a URL
  --env NAME=VALUE        a variable for COMMAND; can be repeated
  --header 'NAME: VALUE'  a header for every request to URL; can be repeated
  --stop-url URL          the address that stops a chat or an AG-UI run ({id}: its id); by default the kit closes the connection
  --second-url URL        a second instance of the same server
  --tool NAME             the MCP server's tool to call
  --only NAME             only this check or group; can be repeated
  --timeout DURATION      how long a cancel may take; defaults to 5s
  --provider-port NUMBER  the test model's port, for a server that is already running; defaults to a free port
  --junit FILE            write a report for a CI service
  --badge FILE            write a badge (SVG)
  --list                  list the checks and the rules they are based on

Exit code: 0 if every applicable check passed, 1 if one failed or none applies, 130 after Ctrl-C.`;

const OPTIONS = {
  protocol: { type: 'string', values: PROTOCOLS },
  ...SUBJECT_OPTIONS,
  only: { type: 'string', multiple: true },
  timeout: { type: 'string', default: '5s' },
  'provider-port': { type: 'string' },
  junit: { type: 'string' },
  badge: { type: 'string' },
  list: { type: 'boolean', default: false },
} as const;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const end = args.indexOf('--');
  const { values, positionals } = readArguments(end === -1 ? args : args.slice(0, end), OPTIONS, 1);
  const screen = own(new Screen(system, values));
  if (values.list) return listChecks(screen);
  const only = readOnly(values.only);
  const settleMs = readDuration('--timeout', values.timeout);
  const port = values['provider-port'];
  const subject = { ...values, url: positionals[0], command: end === -1 ? [] : args.slice(end + 1) };
  const adapter = own(openSubject(subject, system.cwd()));
  const stopper = new AbortController();
  own(listenForEnd(() => stopper.abort(), system));
  const harness = own(
    await createCheckHarness(port === undefined ? {} : { port: readCount('--provider-port', port, { max: 65_535 }) }),
  );
  const printer = new ResultPrinter(screen);
  screen.status(() => 'starting the agent');
  const onResult = (result: CheckResult): void => printer.print(result);
  const { signal } = stopper;
  try {
    const report = await runChecks({
      adapter,
      harness,
      settleMs,
      signal,
      onResult,
      ...(only !== undefined && { only }),
    });
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
