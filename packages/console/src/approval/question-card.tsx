import type { ApprovalQuestion } from '@whoa/core/approval';
import { describeLocation, describeSchema, parseAnswer } from '@whoa/core/internal';
import { type QuestionAnswer, TaskApiError } from '@whoa/server/task-client';
import type { AnswerReceipt } from '@whoa/tasks';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { describeError } from '../api/session.ts';
import type { AskedQuestion } from '../model/run-model.ts';
import { Button, TextBox } from '../page/parts.tsx';
import type { CallContext } from '../task/call-context.ts';
import { describeWait } from './question-times.ts';

/** A character that a screen would not show, as a question spells it. */
const UNSEEN = /(<U\+[0-9A-F]{4,6}>)/;

const NOT_BEGUN = 'This call has not started. If you stop the task now, it never will.';

interface QuestionLine {
  readonly text: string;
  readonly kind?: 'add' | 'del' | 'at' | 'name';
}

interface QuestionCardProps extends CallContext {
  readonly asked: AskedQuestion;
}

/**
 * Asks whether a call may run. Every line is shown, and yes can only be said once the last one has been in view. The answer names
 * the question, so it cannot be taken for another.
 */
export function QuestionCard({ asked, task, client, me, now }: QuestionCardProps): ReactNode {
  const { id, question, answer: expected } = asked;
  const Answers = expected === undefined ? Decision : TextAnswer;
  const lines = toLines(question);
  const stored = task.questions?.find((one) => one.id === id);
  const [isSeen, last] = useSeen();
  const [answer, setAnswer] = useState('');
  const onReply = (given: QuestionAnswer): void => {
    setAnswer('sent');
    client.answer(id, given).then(
      (receipt) => setAnswer(receipt.result === 'accepted' ? 'sent' : describeRefusal(receipt)),
      (error: unknown) => setAnswer(describeFailure(error)),
    );
  };
  return (
    <fieldset className="question plain" aria-label={`${question.tool} asks to ${question.effects}`}>
      <About asked={asked} lines={lines} />
      {stored !== undefined && <p className="foot flat">{describeWait(stored, now)}</p>}
      <ol className="lines" tabIndex={0} aria-label="The whole question">
        {lines.map(({ text, kind }, index) => (
          <li key={index} className={kind} ref={index === lines.length - 1 ? last : undefined}>
            <Spelled text={text} />
          </li>
        ))}
      </ol>
      <p className="foot">
        <b className="ink">{isSeen ? `line ${lines.length} of ${lines.length}` : `scroll to line ${lines.length}`}</b>
        <span>nothing is left out; long lines wrap</span>
        <span className="push">
          {expected === undefined
            ? `always means: ${question.alwaysScope}`
            : expected.schema && `the answer: ${describeSchema(expected.schema)}`}
        </span>
      </p>
      {me.rights.includes('approve') && task.status === 'running' && (
        <Answers {...{ isSeen, isSent: answer === 'sent', expected, onReply }} />
      )}
      <p className="foot flat" role="status">
        {answer === 'sent'
          ? 'Answered.'
          : answer || (expected === undefined ? NOT_BEGUN : 'If the task is stopped now, the agent gets no answer.')}
      </p>
    </fieldset>
  );
}

/** Describes why an answer did not arrive, or was not allowed. */
function describeFailure(error: unknown): string {
  const { message } = describeError(error);
  const isRefused = error instanceof TaskApiError && (error.status === 400 || error.status === 403);
  return isRefused ? `Not taken: ${message}` : `${message}. Answering again is safe.`;
}

/** Describes why an answer does not count. */
function describeRefusal(receipt: Exclude<AnswerReceipt, { result: 'accepted' }>): string {
  if (receipt.result === 'not-found') return 'Not taken: the question is no longer stored';
  const { why, given } = receipt;
  return `Not taken: ${why}${given?.by === undefined ? '' : ` by ${given.by}`}`;
}

interface AnswersProps {
  readonly isSeen: boolean;
  readonly isSent: boolean;
  readonly expected: AskedQuestion['answer'];
  readonly onReply: (reply: QuestionAnswer) => void;
}

function TextAnswer({ isSeen, isSent, expected, onReply }: AnswersProps): ReactNode {
  return (
    <AnswerBar label="Your answer" placeholder="Your answer, as text or JSON">
      {(text) => (
        <>
          <Button disabled={isSent} onClick={() => onReply({ error: text === '' ? 'the user gave no answer' : text })}>
            Decline
          </Button>
          <Button
            look="ink"
            disabled={!isSeen || isSent || text === ''}
            onClick={() => onReply({ answer: parseAnswer(text, expected?.schema) })}
          >
            Answer
          </Button>
        </>
      )}
    </AnswerBar>
  );
}

function Decision({ isSeen, isSent, onReply }: AnswersProps): ReactNode {
  return (
    <AnswerBar label="Reason for the model" placeholder="Reason for the model, if you answer no">
      {(why) => (
        <>
          <Button disabled={isSent} onClick={() => onReply({ decision: 'no', ...(why !== '' && { why }) })}>
            No
          </Button>
          <Button disabled={!isSeen || isSent} onClick={() => onReply({ decision: 'always' })}>
            Always
          </Button>
          <Button look="ink" disabled={!isSeen || isSent} onClick={() => onReply({ decision: 'yes' })}>
            Yes
          </Button>
        </>
      )}
    </AnswerBar>
  );
}

interface AnswerBarProps {
  readonly label: string;
  readonly placeholder: string;
  /** Draws the buttons for the text as it is now. */
  readonly children: (text: string) => ReactNode;
}

function AnswerBar({ label, placeholder, children }: AnswerBarProps): ReactNode {
  const [text, setText] = useState('');
  return (
    <div className="bar row">
      <TextBox className="wide" aria-label={label} placeholder={placeholder} value={text} onChange={setText} />
      {children(text)}
    </div>
  );
}

interface AboutProps {
  readonly asked: AskedQuestion;
  readonly lines: readonly QuestionLine[];
}

function About({ asked: { question, answer }, lines }: AboutProps): ReactNode {
  const where = describeLocation(question);
  const hidden = lines.flatMap(({ text }, index) => (UNSEEN.test(text) ? [index + 1] : []));
  return (
    <>
      <p className="foot flat">
        <b className="ink">
          {answer === undefined ? `${question.tool} wants to ${question.effects}` : `${question.tool} asks`}
        </b>
        {where !== undefined && <span>{where}</span>}
        {question.why !== undefined && <span>asked because {question.why}</span>}
      </p>
      {hidden.length > 0 && (
        <p className="foot flat">
          <b className="ink">Characters that do not show are spelled out</b>
          <span>
            line {hidden.slice(0, 12).join(', ')}
            {hidden.length > 12 && ` and ${hidden.length - 12} more`}
          </span>
        </p>
      )}
    </>
  );
}

function Spelled({ text }: { readonly text: string }): ReactNode {
  return text.split(UNSEEN).map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      <b key={index} className="cc">
        {part.slice(1, -1)}
      </b>
    ),
  );
}

/** Whether the last line has been in view. */
function useSeen(): readonly [boolean, { current: HTMLLIElement | null }] {
  const [isSeen, setSeen] = useState(false);
  const last = useRef<HTMLLIElement>(null);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setSeen(true);
    });
    if (last.current !== null) observer.observe(last.current);
    return () => observer.disconnect();
  }, []);
  return [isSeen, last];
}

function toLines({ change, fields }: ApprovalQuestion): QuestionLine[] {
  const lines: QuestionLine[] = [];
  if (change !== undefined) {
    lines.push({ text: `${change.isNew ? 'creates' : 'changes'} ${change.path}`, kind: 'name' });
    for (const text of change.diff) lines.push({ text, ...classifyLine(text) });
    if (change.diff.length === 0) lines.push({ text: 'too large to compare; this is all of it:', kind: 'at' });
  }
  for (const { name, lines: values } of fields) {
    lines.push({ text: name, kind: 'name' });
    for (const text of values) lines.push({ text });
  }
  return lines;
}

function classifyLine(line: string): Pick<QuestionLine, 'kind'> {
  if (/^(---|\+\+\+) /.test(line)) return { kind: 'at' };
  if (line.startsWith('+')) return { kind: 'add' };
  if (line.startsWith('-')) return { kind: 'del' };
  return line.startsWith('@@') ? { kind: 'at' } : {};
}
