import { CancellationToken, type Json } from '@whoa/core';
import { type ApprovalAnswer, formatQuestion } from '@whoa/core/approval';
import { describeLocation, parseAnswer } from '@whoa/core/internal';
import type { QuestionAnswer } from '@whoa/server/task-client';
import { isFinalStatus, type TaskRecord } from '@whoa/tasks';
import { findQuestionTask, mapInBatches, type PendingQuestion, type PendingQuestions } from '@whoa/tasks/internal';
import { type Command, EXIT, readArguments, UsageError, type Use, type Values } from '../../command.ts';
import type { System } from '../../system.ts';
import { findTask } from '../../tasks/find-task.ts';
import { shortId } from '../../tasks/local-tasks.ts';
import { readPending } from '../../tasks/pending-questions.ts';
import { openTaskSource, SOURCE_HELP, SOURCE_OPTIONS } from '../../tasks/source/open-task-source.ts';
import type { TaskSource } from '../../tasks/source/task-source.ts';
import { createTerminalAsk, WITHDRAWN } from '../../terminal/ask.ts';
import { askForAnswer, describeExpected } from '../../terminal/ask-answer.ts';
import { commandName } from '../../terminal/command-name.ts';
import { Screen } from '../../terminal/screen.ts';

const help = `whoa approve [TASK] [options]

Shows a task's open question in full, and sends your answer. TASK is an id or the beginning of one; without it, the tasks that ask
are listed. The first answer counts, from any terminal, page or editor. Ctrl-C leaves the question open.

  --question ID   answer this question without a prompt; to list questions with their ids, use --json or no terminal.
                  Requires one of:
  --yes             allow the call
  --no              deny the call
  --always          allow this call and everything the question lists under "always"
  --why TEXT      with --no: the reason, which the model sees
  --answer TEXT   if an agent asks for something: your answer, as text or JSON
${SOURCE_HELP}
  --json          print one JSON object per line

Exit code: 0 if an answer was sent, 1 if no question is open or another terminal has answered it.`;

const OPTIONS = {
  question: { type: 'string' },
  yes: { type: 'boolean', default: false },
  no: { type: 'boolean', default: false },
  always: { type: 'boolean', default: false },
  why: { type: 'string' },
  answer: { type: 'string' },
  ...SOURCE_OPTIONS,
} as const;

export const command: Command = { help, options: OPTIONS, completes: 'tasks', run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, 1);
  const given = readAnswer(values);
  const source = own(await openTaskSource(values, system));
  const screen = own(new Screen(system, values));
  const [named] = positionals;
  if (named === undefined && given === undefined) return listAsking(source, { screen, system });
  const task = await findTask(source, named, system);
  const pending = await readPending(source, task);
  const context: Context = { source, screen, task, system };
  if (given !== undefined) {
    const found = pending.list.find(({ id }) => id === values.question);
    return found === undefined ? printNothing(context) : send(found, await toAnswer(found, given), context);
  }
  const [first] = pending.list;
  if (first === undefined) return printNothing(context);
  if (values.json || !system.stdin.isTTY || first.kind === 'client') return printQuestions(pending, context);
  const answer = await ask(first, pending, context);
  if (answer === LEFT_OPEN) {
    screen.line(`${shortId(task.id)} ${first.question.tool}: not answered; the question stays open`);
    return EXIT.failed;
  }
  return answer === WITHDRAWN ? printNothing(context) : send(first, answer, context);
}

interface Context {
  readonly source: TaskSource;
  readonly screen: Screen;
  readonly task: TaskRecord;
  readonly system: System;
}

type GivenAnswer = ApprovalAnswer | { readonly text: string };

/** Returns an answer as its question needs it. */
async function toAnswer({ kind, schema }: PendingQuestion, given: GivenAnswer): Promise<QuestionAnswer> {
  if ((kind === 'approve') !== 'decision' in given)
    throw new UsageError(kind === 'approve' ? 'expected one of --yes, --no and --always' : 'expected --answer');
  if ('decision' in given) return given;
  const answer = parseAnswer(given.text, schema);
  const fault = await findFault(answer, schema);
  if (fault !== undefined) throw new UsageError(`--answer: ${fault}`);
  return { answer };
}

/** Returns why the worker would reject an answer. The first one counts, so it could not be corrected. */
async function findFault(answer: Json, schema: PendingQuestion['schema']): Promise<string | undefined> {
  if (schema === undefined) return undefined;
  const { z } = await import('zod');
  let rule: { safeParse(value: unknown): { error?: { issues: readonly { message: string }[] } | undefined } };
  try {
    rule = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch {
    // Only the worker can read it.
    return undefined;
  }
  const { error } = rule.safeParse(answer);
  if (error === undefined) return undefined;
  const why = error.issues.map(({ message }) => message).join('; ');
  return `${why}; expected ${describeExpected(schema)}`;
}

/** Lists the tasks that wait for answers, the one that has waited longest first. */
async function listAsking(source: TaskSource, { screen, system }: Pick<Context, 'screen' | 'system'>): Promise<number> {
  const { questions, next } = await source.questions();
  const ids = [...new Set(questions.map(({ id }) => findQuestionTask(id)!))];
  const asking = (await mapInBatches(ids, (id) => source.get(id))).filter((task) => task !== undefined);
  for (const { id, agent, title = '', waiting } of asking) {
    screen.data({ type: 'asking', id, agent, title, waiting });
    const short = shortId(id);
    screen.line(`${short} ${agent} asks: ${title} · to answer: ${commandName(system.env)} approve ${short}`);
  }
  if (asking.length === 0) screen.line('no task asks anything now');
  if (next !== undefined) screen.line(`these are the oldest ${questions.length} questions; there are more`);
  return asking.length === 0 ? EXIT.failed : EXIT.success;
}

/** Reads the answer from the command line. It must name its question: only who has read it knows the id. */
function readAnswer({ question, yes, no, always, why, answer }: Values<typeof OPTIONS>): GivenAnswer | undefined {
  const decisions = (['yes', 'no', 'always'] as const).filter((_, index) => [yes, no, always][index]);
  if (answer !== undefined) {
    if (decisions.length > 0 || why !== undefined) throw new UsageError('--answer stands alone, with --question');
    if (question === undefined) throw new UsageError('--answer needs --question');
    return { text: answer };
  }
  if (question === undefined && decisions.length === 0 && why === undefined) return undefined;
  const [decision] = decisions;
  if (decision === undefined || decisions.length > 1)
    throw new UsageError('expected one of --yes, --no, --always and --answer');
  if (question === undefined)
    throw new UsageError(`--${decision} needs --question; without them, the command asks you`);
  if (why !== undefined && decision !== 'no') throw new UsageError('--why needs --no');
  return { decision, ...(why !== undefined && { why }) };
}

/** The input ended before there was an answer. */
const LEFT_OPEN = Symbol('left open');

/** Asks at this terminal. Withdraws the question when it is answered elsewhere or the task ends. */
async function ask(
  { question, ...asked }: PendingQuestion,
  pending: PendingQuestions,
  { source, screen, task, system }: Context,
): Promise<QuestionAnswer | typeof LEFT_OPEN> {
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
  const { signal } = withdrawing;
  const terminal = { screen, input: system.stdin, output: system.stderr };
  const { schema } = asked;
  try {
    if (asked.kind === 'approve') return await createTerminalAsk(terminal)(question, { signal });
    const prompt = { ...terminal, signal, findFault: (answer: Json) => findFault(answer, schema) };
    return (await askForAnswer({ question, schema }, prompt)) ?? (signal.aborted ? WITHDRAWN : LEFT_OPEN);
  } finally {
    following.cancel({}, { mode: 'now' });
    await followed.catch(() => {});
    following[Symbol.dispose]();
  }
}

async function send({ id, question }: PendingQuestion, answer: QuestionAnswer, context: Context): Promise<number> {
  const { source, screen, task } = context;
  const receipt = await source.answer(id, answer);
  screen.data({ type: 'receipt', id: task.id, callId: question.callId, ...receipt });
  if (receipt.result !== 'accepted') {
    if (screen.asJson) return EXIT.failed;
    if (receipt.result === 'not-found') return printNothing(context);
    const by = receipt.given?.by === undefined ? '' : ` by ${receipt.given.by}`;
    screen.line(
      `${shortId(task.id)} ${question.tool}: your answer came too late; the question was ${receipt.why}${by}`,
    );
    return EXIT.failed;
  }
  screen.line(`${shortId(task.id)} ${question.tool}: ${describeAnswer(answer)}`);
  return EXIT.success;
}

function describeAnswer(answer: QuestionAnswer): string {
  if (!('decision' in answer)) return 'answered';
  return answer.decision === 'yes' || answer.decision === 'always' ? 'allowed' : 'denied';
}

function printNothing({ screen, task: { id, status } }: Context): number {
  screen.data({ type: 'nothing-asked', id, status });
  if (isFinalStatus(status)) screen.line(`${shortId(id)} had already ended: ${status}`);
  else screen.line(`${shortId(id)} asks nothing now: it was answered elsewhere, or the task continues without it`);
  return EXIT.failed;
}

/** Prints the questions in full, for a program or a user who answers by id. */
function printQuestions({ list }: PendingQuestions, { screen, task, system }: Context): number {
  for (const { id, kind, question, asked, schema } of list) {
    screen.data({ type: 'question', id, kind, task: task.id, asked, question, ...(schema && { schema }) });
    if (screen.asJson) continue;
    const { tool, effects, alwaysScope } = question;
    const isApproval = kind === 'approve';
    const title = isApproval ? `${tool} wants to ${effects} ${describeLocation(question) ?? ''}` : `${tool} asks`;
    screen.line(title.trimEnd());
    for (const line of formatQuestion(question)) screen.line(`  │ ${line.replaceAll('\n', ' ⏎ ')}`);
    if (isApproval) screen.line(`  · always means: ${alwaysScope}`);
    else if (schema !== undefined) screen.line(`  · the answer: ${describeExpected(schema)}`);
    const flags = isApproval ? '--yes (or --no, --always)' : '--answer TEXT';
    screen.line(`answer it with: ${commandName(system.env)} approve ${shortId(task.id)} --question ${id} ${flags}`);
  }
  return EXIT.success;
}
