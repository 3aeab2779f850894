import type { EraseReceipt } from '@whoa/tasks';
import { type Command, EXIT, readArguments, UsageError, type Use } from '../../command.ts';
import type { System } from '../../system.ts';
import { openTaskSource } from '../../tasks/source/open-task-source.ts';
import { Screen } from '../../terminal/screen.ts';
import { formatDuration } from '../../terminal/text/durations.ts';
import { oneLine } from '../../terminal/text/plain-text.ts';

const help = `whoa erase --tenant NAME [options]

Deletes everything that belongs to a tenant from the store: tasks with their inputs, answers and journals, and conversations with
their histories. Cancels running tasks first and waits for them. Prints a receipt. This cannot be undone. It does not reach archives
and backups.

  --tenant NAME         the tenant whose records to delete
  --conversation NAME   only this conversation's records
  --yes                 delete them; without it, this command only counts the tasks
  --server URL          use this 'whoa serve' instead of the store, with the token in WHOA_TOKEN
  --config FILE         the configuration file, which may specify another store
  --json                print one JSON object: the receipt

Exit code: 0 if nothing is left, 1 if something is left: run it again.`;

const OPTIONS = {
  tenant: { type: 'string' },
  conversation: { type: 'string' },
  yes: { type: 'boolean', default: false },
  server: { type: 'string' },
  config: { type: 'string' },
} as const;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const { tenant, conversation } = values;
  if (!tenant) throw new UsageError('--tenant: expected the name of a tenant');
  if (conversation === '') throw new UsageError('--conversation: expected a name');
  const source = own(await openTaskSource(values, system));
  const screen = own(new Screen(system, values));
  const of = `${oneLine(tenant, 80)}${conversation === undefined ? '' : `, conversation ${oneLine(conversation, 80)}`}`;
  if (!values.yes) {
    const [counts] = await source.counts();
    const tasks = Object.values(counts?.statuses ?? {}).reduce((sum, one) => sum + one, 0);
    throw new UsageError(`${of}: this tenant has ${tasks} tasks; add --yes to delete the records permanently`);
  }
  if (!values.json) screen.status(() => `erasing ${of}`);
  const receipt = await source.erase({ tenant, ...(conversation !== undefined && { conversation }) });
  screen.status(undefined);
  screen.data({ type: 'receipt', ...receipt });
  for (const line of describe(of, receipt)) screen.line(line);
  return receipt.isComplete ? EXIT.success : EXIT.failed;
}

function describe(of: string, receipt: EraseReceipt): string[] {
  const { tasks, conversations, cancelled, live, isComplete, startedAt, endedAt } = receipt;
  const took = formatDuration(endedAt - startedAt);
  const counts = `${tasks} tasks and ${conversations} conversations removed in ${took}, ${cancelled} of them cancelled first`;
  return [
    `${of}: ${counts}`,
    ...(live.length > 0 ? [`still running: ${live.map((id) => oneLine(id, 40)).join(' ')}`] : []),
    isComplete ? `nothing is left (${new Date(endedAt).toISOString()})` : 'something is left: run it again',
  ];
}
