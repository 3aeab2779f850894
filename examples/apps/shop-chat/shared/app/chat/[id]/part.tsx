import type { ReactNode } from 'react';
import type { ShopMessage } from '@/lib/assistant';

interface PartProps {
  readonly part: ShopMessage['parts'][number];
  /** Answers a question that the part asks. */
  readonly answer: (id: string, approved: boolean) => void;
  /** The server does not have the answer yet. */
  readonly isSending?: boolean;
}

export function Part({ part, answer, isSending = false }: PartProps) {
  switch (part.type) {
    case 'text':
      return part.text === '' ? null : <p>{part.text}</p>;
    case 'file':
      return <img src={part.url} alt={part.filename ?? 'a file'} />;
    case 'tool-refund':
      if (part.state === 'approval-requested') return <Question part={part} answer={answer} />;
      return <Call title={`Refund of order ${part.input?.order ?? '…'}`} {...describeRefund(part, isSending)} />;
    case 'tool-find_orders':
      return <Call title={`Search for “${part.input?.item ?? '…'}”`} {...describe(part, 'Searching…')} />;
    case 'tool-time_zone':
      return <Call title="Your time zone" {...describe(part, 'Asking your browser…')} />;
    default:
      return null;
  }
}

type CallOf<Type> = Extract<ShopMessage['parts'][number], { type: Type }>;

function Question({
  part,
  answer,
}: { part: CallOf<'tool-refund'> & { state: 'approval-requested' } } & Pick<PartProps, 'answer'>) {
  const { id } = part.approval;
  return (
    <div className="call asks">
      <p>Refund order {part.input.order}?</p>
      <div className="answers">
        <button className="main" type="button" onClick={() => answer(id, true)}>
          Yes, refund it
        </button>
        <button type="button" onClick={() => answer(id, false)}>
          No
        </button>
      </div>
    </div>
  );
}

interface Described {
  readonly words: ReactNode;
  readonly hasFailed?: boolean;
}

function Call({ title, words, hasFailed = false }: Described & { readonly title: string }) {
  return (
    <div className={hasFailed ? 'call failed' : 'call'}>
      <small>{title}</small>
      <p>{words}</p>
    </div>
  );
}

function describeRefund(part: CallOf<'tool-refund'>, isSending: boolean): Described {
  if (part.state === 'output-denied') return { words: 'Not refunded, because you said no.' };
  if (part.state !== 'approval-responded') return describe(part, 'Refunding…');
  if (isSending) return { words: `Sending your ${part.approval.approved ? 'yes' : 'no'}…` };
  return { words: part.approval.approved ? 'Refunding…' : 'You said no.' };
}

/** An error is shown in the words of the server, which says what the call may have done. */
function describe(part: CallOf<`tool-${string}`>, meanwhile: string): Described {
  if (part.state === 'output-available') return { words: part.output };
  return part.state === 'output-error' ? { words: part.errorText, hasFailed: true } : { words: meanwhile };
}
