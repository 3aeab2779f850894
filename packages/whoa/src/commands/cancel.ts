import { createReason, formatStopReport, LADDERS, type StopHow, type StopReport } from '@whoa/core';
import { createRunner, type TaskRecord, type TaskRef, type TaskStore } from '@whoa/tasks';
import { type Command, EXIT, type Own, readArguments, UsageError } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import { followTask } from '../tasks/follow-task.ts';
import { findTask, isLost, LOCAL_TENANT, openStore, shortId } from '../tasks/local-tasks.ts';
import { userName } from '../terminal/interrupts.ts';
import { Screen } from '../terminal/screen.ts';

const help = `whoa cancel TASK [options]

Stops a task, whichever terminal or editor it runs in, waits until it has settled and prints the stop report.

  --reason TEXT   why; the task, its journal and its report say so
  --how HOW       graceful: what runs may finish, 10 s at most; now: it is interrupted; kill: it is not waited for. Unless given,
                  the ladder of your configuration, else graceful
  --call CALL     stop only this call ('whoa watch' shows their ids); the task goes on
  --undo          take back completed calls that can be taken back
  --no-wait       do not wait for the end
  --config FILE   the configuration, which may name another store
  --json          one JSON object a line: the receipt, and the task in the end

Exit code: 0 it was stopped, 1 it had ended before or could not be stopped.`;

const OPTIONS = {
  reason: { type: 'string' },
  how: { type: 'string' },
  call: { type: 'string' },
  undo: { type: 'boolean', default: false },
  'no-wait': { type: 'boolean', default: false },
  config: { type: 'string' },
} as const;
const HOWS = ['graceful', 'now', 'kill'] as const;

export const cancelCommand: Command = { help, run };

async function run(args: readonly string[], own: Own): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, 1);
  const wanted = HOWS.find((one) => one === values.how);
  if (values.how !== undefined && wanted === undefined)
    throw new UsageError(`--how: '${values.how}' is none of ${HOWS.join(', ')}`);
  if (values.call !== undefined && values.undo) throw new UsageError('--call and --undo do not go together');
  const config = await loadConfig(values.config);
  const how = wanted ?? config.ladder ?? 'graceful';
  const screen = own(new Screen());
  const store = own(openStore(config));
  if (!values.json) screen.status(() => 'asking the store');
  const { id } = await findTask(store, positionals[0]);
  const context = { store, screen, ref: { tenant: LOCAL_TENANT, id }, asJson: values.json, waits: !values['no-wait'] };
  const reason = createReason(
    { kind: 'user', by: userName(), via: 'whoa cancel', ...(values.reason && { message: values.reason }) },
    Date.now(),
  );
  if (values.call !== undefined) return cancelCall(values.call, reason, context);
  const receipt = await store.cancel(context.ref, reason, { how, undo: values.undo });
  screen.status(undefined);
  if (values.json) screen.data({ type: 'receipt', id, ...receipt });
  if (receipt.answer === 'unknown') throw new Error(`task ${id} is no longer kept`);
  if (receipt.answer === 'too-late') {
    if (!values.json) screen.line(`${shortId(id)} had already ended: ${receipt.status}`);
    return EXIT.failed;
  }
  if (!values.json)
    screen.line(`${shortId(id)} ${ANSWERS[receipt.answer]}${receipt.answer === 'already' ? '' : patienceOf(how)}`);
  return context.waits ? waitForEnd(context) : EXIT.success;
}

const ANSWERS = {
  accepted: 'is being stopped',
  escalated: 'was being stopped already; now it is stopped harder',
  already: 'is being stopped already, at least this hard',
} as const;

/** What happens to what runs, and for how long at most. */
function patienceOf(how: StopHow): string {
  const { drainMs, abortMs } = typeof how === 'string' ? LADDERS[how] : how;
  if (drainMs) return `: what runs may finish, ${drainMs / 1_000} s at most`;
  return abortMs ? `: what runs is interrupted, ${abortMs / 1_000} s at most` : ': nothing is waited for';
}

interface Context {
  readonly store: TaskStore;
  readonly screen: Screen;
  readonly ref: TaskRef;
  readonly asJson: boolean;
  readonly waits: boolean;
}

async function waitForEnd({ store, screen, ref, asJson }: Context): Promise<number> {
  if (!asJson) screen.status(() => 'waiting until it has settled');
  const task = await followTask(store, ref, {
    onRecord: async (record) => {
      if (await isLost(store, record)) await settleLost(store, record);
      return undefined;
    },
  });
  screen.status(undefined);
  if (asJson) screen.data({ type: 'result', ...task });
  else if (task.outcome?.stop) screen.line(formatStopReport(task.outcome.stop as unknown as StopReport));
  else screen.line('It had not begun.');
  return EXIT.success;
}

/** Nobody works on it any more, so nobody else will write its end. It is only settled: nothing of it runs again. */
async function settleLost(store: TaskStore, { id, tenant, agent }: TaskRecord): Promise<void> {
  const runner = createRunner({ store, agents: { [agent]: () => Promise.resolve(undefined) } });
  try {
    await runner.work({ tenant, id });
  } finally {
    await runner[Symbol.asyncDispose]();
  }
}

async function cancelCall(callId: string, reason: ReturnType<typeof createReason>, context: Context): Promise<number> {
  const { store, ref, screen, asJson, waits } = context;
  const receipt = await store.send(ref, { type: 'cancel-call', callId, reason });
  if (asJson) screen.data({ type: 'receipt', id: ref.id, callId, ...receipt });
  if (receipt.answer !== 'accepted') {
    const why = 'status' in receipt ? `the task is ${receipt.status}` : receipt.answer;
    if (!asJson) screen.line(`${callId} cannot be stopped: ${why}`);
    return EXIT.failed;
  }
  if (!waits) return EXIT.success;
  const answer = await waitForAnswer(receipt.number, context);
  if (asJson) screen.data({ type: 'result', id: ref.id, callId, answer });
  else screen.line(`${callId} ${CALL_ANSWERS[answer] ?? answer}`);
  return answer === 'accepted' || answer === 'escalated' || answer === 'already' ? EXIT.success : EXIT.failed;
}

const CALL_ANSWERS: Readonly<Record<string, string>> = {
  accepted: 'is interrupted; the task goes on',
  already: 'is being stopped already',
  'too-late': 'does not run: it has ended, or there is no such call',
  refused: 'must not be cut in half; it was not stopped',
};

/** What the worker of the task said to the command. */
async function waitForAnswer(number: number, { store, ref, screen }: Context): Promise<string> {
  screen.status(() => 'waiting for the answer');
  let answer = 'too-late';
  let isAnswered = false;
  await followTask(store, ref, {
    onEntry({ event }) {
      const told = event as { readonly type?: string; readonly number?: number; readonly answer?: string };
      if (told.type !== 'command-done' || told.number !== number) return;
      answer = told.answer ?? 'unknown';
      isAnswered = true;
    },
    onRecord: async (record) => (isAnswered || (await isLost(store, record)) ? 'stop' : undefined),
  });
  screen.status(undefined);
  return answer;
}
