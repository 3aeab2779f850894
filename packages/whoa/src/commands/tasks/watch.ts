import { CancellationToken, formatStopReport, type RunEvent, type StopReport } from '@whoa/core';
import { toReplyText } from '@whoa/core/internal';
import { isFinalStatus, type JournalEntry, type TaskRecord } from '@whoa/tasks';
import { type Command, EXIT, readArguments, type Use } from '../../command.ts';
import type { System } from '../../system.ts';
import { findTask } from '../../tasks/find-task.ts';
import { shortId } from '../../tasks/local-tasks.ts';
import { openTaskSource, SOURCE_HELP, SOURCE_OPTIONS } from '../../tasks/source/open-task-source.ts';
import { createLostCheck } from '../../tasks/source/task-source.ts';
import { commandName } from '../../terminal/command-name.ts';
import { detailsLines } from '../../terminal/run/details-lines.ts';
import { describePostponed, eventLine } from '../../terminal/run/event-line.ts';
import { describeTokens } from '../../terminal/run/print-end.ts';
import { Screen } from '../../terminal/screen.ts';
import { oneLine } from '../../terminal/text/plain-text.ts';

const help = `whoa watch TASK [options]

Shows a task's output so far and follows it until it ends. TASK is an id or the beginning of one. Ctrl-C stops watching, not
the task.

  --output KIND   short: the last lines of what calls print and change, the default; full: everything
${SOURCE_HELP}
  --json          print one JSON object per line

Exit code: 0 success or still running, 1 failed or lost, 130 cancelled.`;

const OPTIONS = {
  output: { type: 'string', values: ['short', 'full'] },
  ...SOURCE_OPTIONS,
} as const;

export const command: Command = { help, options: OPTIONS, completes: 'tasks', run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, 1);
  const isFull = values.output === 'full';
  const source = own(await openTaskSource(values, system));
  const token = own(new CancellationToken({ name: 'whoa watch' }));
  const stop = (): void => {
    token.cancel({}, { mode: 'now' });
  };
  const screen = own(new Screen({ stdout: system.stdout, stderr: system.stderr, onGone: stop }, values));
  if (!values.json) screen.status(() => 'asking the store');
  const { id } = await findTask(source, positionals[0], system);
  system.on('SIGINT', stop);
  const timeline = new Timeline(screen, { id, isFull, whoa: commandName(system.env) });
  if (!values.json) screen.status(() => `${shortId(id)} is running`);
  const isLostForGood = createLostCheck(source);
  let wasLost = false;
  const task = await source.follow(id, {
    onEntry(entry) {
      if (values.json) screen.data(entry);
      else timeline.show(entry);
      return undefined;
    },
    onTakenBack() {
      if (values.json) screen.data({ type: 'taken-back' });
      else timeline.takeBack();
    },
    isLive: true,
    onRecord: async (record) => {
      wasLost = await isLostForGood(record);
      return wasLost ? 'stop' : undefined;
    },
    token,
  });
  system.off('SIGINT', stop);
  screen.status(undefined);
  screen.data({ type: 'result', ...task });
  if (!values.json) timeline.end(task, wasLost);
  if (wasLost) return EXIT.failed;
  return task.status === 'failed' ? EXIT.failed : task.status === 'cancelled' ? EXIT.cancelled : EXIT.success;
}

/** Prints a task's journal, each entry with its time since the start. */
class Timeline {
  readonly #screen: Screen;
  readonly #id: string;
  readonly #isFull: boolean;
  readonly #whoa: string;
  #startedAt: number | undefined;
  #hasText = false;
  /** The text of the current turn so far. */
  #words = '';

  constructor(screen: Screen, { id, isFull, whoa }: { id: string; isFull: boolean; whoa: string }) {
    this.#screen = screen;
    this.#id = shortId(id);
    this.#isFull = isFull;
    this.#whoa = whoa;
  }

  show({ at: writtenAt, event }: JournalEntry): void {
    const runEvent = event as unknown as RunEvent;
    // Entries are written a little after the event. Some events carry their own time.
    const { at = writtenAt } = runEvent as { readonly at?: number };
    this.#startedAt ??= at;
    if (runEvent.type === 'text') this.#say(at, runEvent.text);
    // For a turn that has ended, the journal may keep only this event. Print the text that was not shown yet.
    else if (runEvent.type === 'turn-end') this.#sayRest(at, toReplyText(runEvent.message));
    else if (runEvent.type === 'turn-start') [this.#hasText, this.#words] = [false, ''];
    const cut = event as { readonly type?: string; readonly entries?: number; readonly bytes?: number };
    if (cut.type === 'journal-truncated') {
      this.#line(at, `… the journal is full: ${cut.entries} entries, ${cut.bytes} bytes left out so far`);
    }
    const postponed = event as { readonly type?: string; readonly error: string; readonly until: number };
    if (postponed.type === 'turn-postponed') {
      this.#line(at, this.#screen.style('yellow', `⧗ ${describePostponed(postponed)}`));
    }
    const asked = event as { readonly type?: string; readonly question?: { readonly title?: string } };
    if (asked.type === 'approval-question' || asked.type === 'question-asked') {
      this.#line(at, `? ${oneLine(asked.question?.title ?? '', 200)} · to answer: ${this.#whoa} approve ${this.#id}`);
    }
    const line = runEvent.type === 'run-start' ? `▪ ${runEvent.agent} started` : eventLine(runEvent, this.#screen);
    // 'whoa cancel --call' takes this id.
    const id = runEvent.type === 'call-start' ? this.#screen.style('dim', `  (${runEvent.callId})`) : '';
    if (line !== undefined) this.#line(at, line + id);
    if (runEvent.type !== 'call-end') return;
    for (const detail of detailsLines(runEvent.result, this.#screen, { isFull: this.#isFull }))
      this.#screen.line(detail);
  }

  /** What was printed cannot be removed. */
  takeBack(): void {
    [this.#hasText, this.#words] = [false, ''];
    this.#line(Date.now(), '… its worker was lost: what it said last does not count');
  }

  end(task: TaskRecord, isLost: boolean): void {
    const { id, status, outcome, endedAt = Date.now() } = task;
    if (isLost) this.#line(endedAt, `lost: the process that ran it died; '${this.#whoa} cancel' settles it`);
    else if (!isFinalStatus(status)) this.#line(endedAt, `▪ ${shortId(id)} is still running`);
    else this.#line(endedAt, `▪ ${status}${describeTokens(outcome?.usage)}`);
    if (status === 'failed') this.#screen.line(outcome?.error?.message ?? '');
    if (status === 'cancelled' && outcome?.stopReport) {
      this.#screen.line(formatStopReport(outcome.stopReport as unknown as StopReport));
    }
  }

  #sayRest(at: number, whole: string): void {
    if (whole.startsWith(this.#words)) this.#say(at, whole.slice(this.#words.length));
  }

  #say(at: number, text: string): void {
    this.#words += text;
    const words = this.#hasText ? text : text.trimStart();
    if (words === '') return;
    if (!this.#hasText) this.#screen.endLine();
    this.#screen.say(
      `${this.#hasText ? '' : this.#time(at)}${words.replaceAll('\n', `\n${' '.repeat(TIME_WIDTH + 2)}`)}`,
    );
    this.#hasText = true;
  }

  #line(at: number, text: string): void {
    this.#screen.line(this.#time(at) + text);
  }

  #time(at: number): string {
    const time = `+${((at - (this.#startedAt ?? at)) / 1_000).toFixed(2)} s`;
    return `${time.padStart(TIME_WIDTH)}  `;
  }
}

const TIME_WIDTH = 10;
