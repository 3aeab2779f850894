import { type ApprovalQuestion, describeLocation } from '@whoa/core/approval';
import type { QuestionAnswer } from '@whoa/server/task-client';
import type { AnswerReceipt } from '@whoa/tasks';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { describeError } from '../api/session.ts';
import type { AskedQuestion } from '../model/run-model.ts';
import type { CallContext } from '../task/call-context.ts';

/** A character that a screen would not show, as a question spells it. */
const UNSEEN = /(<U\+[0-9A-F]{4,6}>)/;

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
export function QuestionCard({ asked, task, client, me }: QuestionCardProps): ReactNode {
  const { id, question } = asked;
  const lines = linesOf(question);
  const [isSeen, last] = useSeen();
  const [answer, setAnswer] = useState('');
  const reply = (given: Reply): void => {
    setAnswer('sent');
    client.answer(id, given).then(
      (receipt) => setAnswer(receipt.result === 'accepted' ? 'sent' : describeRefusal(receipt)),
      (error: unknown) => setAnswer(`${describeError(error).message}. Answering again is safe.`),
    );
  };
  return (
    <fieldset className="question plain" aria-label={`${question.tool} asks to ${question.effects}`}>
      <About question={question} lines={lines} />
      <ol className="lines" tabIndex={0} aria-label="The whole question">
        {lines.map(({ text, kind }, index) => (
          <li key={index} className={kind} ref={index === lines.length - 1 ? last : undefined}>
            <Spelled text={text} />
          </li>
        ))}
      </ol>
      <p className="foot">
        <b className="ink">{isSeen ? `line ${lines.length} of ${lines.length}` : `scroll to line ${lines.length}`}</b>
        <span>nothing is folded, long lines wrap</span>
        <span className="push">always means: {question.alwaysScope}</span>
      </p>
      {me.rights.includes('approve') && task.status === 'running' && (
        <Answers isSeen={isSeen} isSent={answer === 'sent'} onReply={reply} />
      )}
      <p className="foot flat" role="status">
        {answer === 'sent'
          ? 'Answered.'
          : answer || 'Nothing of this call has begun. If the task is stopped now, it ends as not started.'}
      </p>
    </fieldset>
  );
}

/** Describes why an answer does not count. */
function describeRefusal(receipt: Exclude<AnswerReceipt, { result: 'accepted' }>): string {
  if (receipt.result === 'not-found') return 'Not taken: the question is no longer stored';
  const { why, given } = receipt;
  return `Not taken: ${why}${given?.by === undefined ? '' : ` by ${given.by}`}`;
}

type Reply = QuestionAnswer;

interface AnswersProps {
  readonly isSeen: boolean;
  readonly isSent: boolean;
  readonly onReply: (reply: Reply) => void;
}

function Answers({ isSeen, isSent, onReply }: AnswersProps): ReactNode {
  const [why, setWhy] = useState('');
  return (
    <div className="bar">
      <input
        type="text"
        className="wide"
        aria-label="Words for the model"
        placeholder="Words for the model, if you say no"
        value={why}
        onChange={(event) => setWhy(event.target.value)}
      />
      <button
        type="button"
        className="btn"
        disabled={isSent}
        onClick={() => onReply({ decision: 'no', ...(why !== '' && { why }) })}
      >
        No
      </button>
      <button
        type="button"
        className="btn"
        disabled={!isSeen || isSent}
        onClick={() => onReply({ decision: 'always' })}
      >
        Always
      </button>
      <button
        type="button"
        className="btn ink"
        disabled={!isSeen || isSent}
        onClick={() => onReply({ decision: 'yes' })}
      >
        Yes
      </button>
    </div>
  );
}

function About({
  question,
  lines,
}: {
  readonly question: ApprovalQuestion;
  readonly lines: readonly QuestionLine[];
}): ReactNode {
  const where = describeLocation(question);
  const hidden = lines.flatMap(({ text }, index) => (UNSEEN.test(text) ? [index + 1] : []));
  return (
    <>
      <p className="foot flat">
        <b className="ink">
          {question.tool} wants to {question.effects}
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

function linesOf({ change, fields }: ApprovalQuestion): QuestionLine[] {
  const lines: QuestionLine[] = [];
  if (change !== undefined) {
    lines.push({ text: `${change.isNew ? 'creates' : 'changes'} ${change.path}`, kind: 'name' });
    for (const text of change.diff) lines.push({ text, ...kindOf(text) });
    if (change.diff.length === 0) lines.push({ text: 'too large to compare; this is all of it:', kind: 'at' });
  }
  for (const { name, lines: values } of fields) {
    lines.push({ text: name, kind: 'name' });
    for (const text of values) lines.push({ text });
  }
  return lines;
}

function kindOf(line: string): Pick<QuestionLine, 'kind'> {
  if (/^(---|\+\+\+) /.test(line)) return { kind: 'at' };
  if (line.startsWith('+')) return { kind: 'add' };
  if (line.startsWith('-')) return { kind: 'del' };
  return line.startsWith('@@') ? { kind: 'at' } : {};
}
