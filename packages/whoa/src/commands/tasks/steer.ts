import type { SendReceipt } from '@whoa/tasks';
import { type Command, EXIT, readArguments, type Use } from '../../command.ts';
import type { System } from '../../system.ts';
import { findTask } from '../../tasks/find-task.ts';
import { shortId } from '../../tasks/local-tasks.ts';
import { openTaskSource, SOURCE_HELP, SOURCE_OPTIONS } from '../../tasks/source/open-task-source.ts';
import { Screen } from '../../terminal/screen.ts';
import { readPrompt } from '../../terminal/text/read-prompt.ts';

const help = `whoa steer TASK "message" [options]

Sends a message to a running task, in any terminal, editor or worker. The agent reads it before its next step. The task's open
questions are withdrawn. TASK is an id or the beginning of one. Piped input is the message, or is added to it.

${SOURCE_HELP}
  --json          print one JSON object per line

Exit code: 0 if the message was sent, 1 if the task has ended or no longer accepts messages.`;

export const command: Command = { help, options: SOURCE_OPTIONS, completes: 'tasks', run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values, positionals } = readArguments(args, SOURCE_OPTIONS, Infinity);
  const source = own(await openTaskSource(values, system));
  const screen = own(new Screen(system, values));
  const { id } = await findTask(source, positionals[0], system);
  const use = 'whoa steer TASK "message"';
  const message = await readPrompt(positionals.slice(1), { what: 'message', use, input: system.stdin });
  const receipt = await source.steer(id, message);
  screen.data({ type: 'receipt', id, ...receipt });
  screen.line(`${shortId(id)} ${describe(receipt)}`);
  return receipt.result === 'accepted' ? EXIT.success : EXIT.failed;
}

function describe(receipt: SendReceipt): string {
  if (receipt.result === 'accepted') return 'reads the message before its next step';
  if (receipt.result === 'too-late') return `takes no more messages: it is ${receipt.status}`;
  return receipt.result === 'full' ? 'has too many unread messages; try again' : 'has been removed from the store';
}
