import { CancellationToken } from '@whoa/core';
import { type ApprovalAnswer, describeLocation, formatQuestion } from '@whoa/core/approval';
import type { TaskRecord } from '@whoa/tasks';
import type { PendingQuestion, PendingQuestions } from '@whoa/tasks/internal';
import { type Command, EXIT, readArguments, UsageError, type Use } from '../../command.ts';
import type { System } from '../../system.ts';
import { findTask } from '../../tasks/find-task.ts';
import { shortId } from '../../tasks/local-tasks.ts';
import { readPending } from '../../tasks/pending-questions.ts';
import { openTaskSource, SOURCE_HELP, SOURCE_OPTIONS } from '../../tasks/source/open-task-source.ts';
import type { TaskSource } from '../../tasks/source/task-source.ts';
import { createTerminalAsk, WITHDRAWN } from '../../terminal/ask.ts';
import { commandName } from '../../terminal/command-name.ts';
import { Screen } from '../../terminal/screen.ts';

const help = `whoa approve TASK [options]

Shows the question that a task waits for, in full, and sends your answer. TASK is an id or the beginning of one. The first answer
counts, whichever terminal or page it comes from. Questions of an editor are answered in the editor.

  --question ID   answer this question without being asked; without a terminal, or with --json, this command prints the
                  questions with their ids. It needs one of:
  --yes             allow the call
  --no              deny the call
  --always          allow this call and everything the question lists under "always"
  --why TEXT      with --no: the reason that the model gets
${SOURCE_HELP}
  --json          print one JSON object per line

Exit code: 0 if an answer was sent, 1 if nothing is asked or the question was answered elsewhere.`;

const OPTIONS = {
  question: { type: 'string' },
  yes: { type: 'boolean', default: false },
  no: { type: 'boolean', default: false },
  always: { type: 'boolean', default: false },
  why: { type: 'string' },
  ...SOURCE_OPTIONS,
} as const;

export const approveCommand: Command = { help, options: OPTIONS, completes: 'tasks', run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, 1);
  const given = readAnswer(values);
  const source = own(await openTaskSource(values, system));
  const screen = own(new Screen(system));
  const task = await findTask(source, positionals[0], system);
  const pending = await readPending(source, task);
  const context: Context = { source, screen, task, asJson: values.json, system };
  if (given !== undefined) {
    const found = pending.list.find(({ id }) => id === values.question);
    return found === undefined ? printNothing(context) : send(found, given, context);
  }
  const [first] = pending.list;
  if (first === undefined) return printNothing(context);
  if (values.json || !system.stdin.isTTY) return printQuestions(pending, context);
  const answer = await ask(first, pending, context);
  return answer === WITHDRAWN ? printNothing(context) : send(first, answer, context);
}

interface Context {
  readonly source: TaskSource;
  readonly screen: Screen;
  readonly task: TaskRecord;
  readonly asJson: boolean;
  readonly system: System;
}

interface AnswerWords {
  readonly question?: string | undefined;
  readonly yes: boolean;
  readonly no: boolean;
  readonly always: boolean;
  readonly why?: string | undefined;
}

/** Reads the answer from the command line. It must name its question: only who has read it knows the id. */
function readAnswer({ question, yes, no, always, why }: AnswerWords): ApprovalAnswer | undefined {
  const decisions = (['yes', 'no', 'always'] as const).filter((_, index) => [yes, no, always][index]);
  if (question === undefined && decisions.length === 0 && why === undefined) return undefined;
  const [decision] = decisions;
  if (decision === undefined || decisions.length > 1) throw new UsageError('expected one of --yes, --no and --always');
  if (question === undefined) throw new UsageError(`--${decision} needs --question; without both you are asked`);
  if (why !== undefined && decision !== 'no') throw new UsageError('--why needs --no');
  return { decision, ...(why !== undefined && { why }) };
}

/** Asks at this terminal. Withdraws the question when it is answered elsewhere or the task ends. */
async function ask(
  { question, ...asked }: PendingQuestion,
  pending: PendingQuestions,
  { source, screen, task, system }: Context,
): Promise<ApprovalAnswer> {
  const withdrawing = new AbortController();
  const following = new CancellationToken({ name: 'approve' });
  const followed = source
    .follow(task.id, {
      onEntry(entry) {
        pending.note(entry);
        return pending.has({ question, ...asked }) || entry.position < asked.asked ? undefined : 'stop';
      },
      token: following,
    })
    .finally(() => withdrawing.abort());
  try {
    return await createTerminalAsk({ screen, input: system.stdin, output: system.stderr })(question, {
      signal: withdrawing.signal,
    });
  } finally {
    following.cancel({}, { mode: 'now' });
    await followed.catch(() => {});
    following[Symbol.dispose]();
  }
}

async function send({ id, question }: PendingQuestion, answer: ApprovalAnswer, context: Context): Promise<number> {
  const { source, screen, task, asJson } = context;
  const receipt = await source.answer(id, answer);
  if (asJson) screen.data({ type: 'receipt', id: task.id, callId: question.callId, ...receipt });
  if (receipt.result !== 'accepted') {
    if (asJson) return EXIT.failed;
    if (receipt.result === 'not-found') return printNothing(context);
    const by = receipt.given?.by === undefined ? '' : ` by ${receipt.given.by}`;
    screen.line(
      `${shortId(task.id)} ${question.tool}: your answer came too late; the question was ${receipt.why}${by}`,
    );
    return EXIT.failed;
  }
  const isYes = answer.decision === 'yes' || answer.decision === 'always';
  if (!asJson) screen.line(`${shortId(task.id)} ${question.tool}: ${isYes ? 'allowed' : 'denied'}`);
  return EXIT.success;
}

function printNothing({ screen, task, asJson }: Context): number {
  if (asJson) screen.data({ type: 'nothing-asked', id: task.id, status: task.status });
  else screen.line(`${shortId(task.id)} asks nothing now: it was answered elsewhere, or the task continues without it`);
  return EXIT.failed;
}

/** Prints the questions in full, for a program or a user who answers by id. */
function printQuestions({ list }: PendingQuestions, { screen, task, asJson, system }: Context): number {
  for (const { id, question, asked } of list) {
    if (asJson) {
      screen.data({ type: 'question', id, task: task.id, asked, question });
      continue;
    }
    const { tool, effects, alwaysScope } = question;
    screen.line(`${tool} wants to ${effects} ${describeLocation(question) ?? ''}`.trimEnd());
    for (const line of formatQuestion(question)) screen.line(`  │ ${line.replaceAll('\n', ' ⏎ ')}`);
    screen.line(`  · always means: ${alwaysScope}`);
    screen.line(
      `answer it with: ${commandName(system.env)} approve ${shortId(task.id)} --question ${id} --yes (or --no, --always)`,
    );
  }
  return EXIT.success;
}
