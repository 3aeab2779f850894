import type { ShopMessage } from '@/lib/assistant';

interface PartProps {
  readonly part: ShopMessage['parts'][number];
  /** Answers a question that the part asks. */
  readonly answer: (id: string, approved: boolean) => void;
}

export function Part({ part, answer }: PartProps) {
  switch (part.type) {
    case 'text':
      return <p>{part.text}</p>;
    case 'file':
      return <img src={part.url} alt={part.filename ?? 'a file'} width={200} />;
    case 'tool-refund':
      if (part.state !== 'approval-requested') return <code>refund: {part.state}</code>;
      return (
        <p>
          Refund order {part.input.order}?
          <button type="button" onClick={() => answer(part.approval.id, true)}>
            Yes
          </button>
          <button type="button" onClick={() => answer(part.approval.id, false)}>
            No
          </button>
        </p>
      );
    case 'tool-find_orders':
    case 'tool-time_zone':
      return <code>{`${part.type.slice(5)}: ${part.state === 'output-available' ? part.output : part.state}`}</code>;
    default:
      return null;
  }
}
