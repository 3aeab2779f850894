import type { TripMessage } from './messages.ts';

export function Message({ message: { role, parts, metadata } }: { message: TripMessage }) {
  return (
    <article className={role}>
      {parts.map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts are only added
        <Part key={index} part={part} />
      ))}
      {metadata?.model && (
        <small>
          {metadata.model}, {metadata.tokens ?? '…'} tokens
        </small>
      )}
    </article>
  );
}

function Part({ part }: { part: TripMessage['parts'][number] }) {
  switch (part.type) {
    case 'text':
      return part.text === '' ? null : <p>{part.text}</p>;
    case 'data-place':
      return <p>From {part.data.city}</p>;
    case 'data-weather':
      return (
        <p className="weather">
          {part.data.city}: {part.data.degrees === undefined ? 'looking…' : `${part.data.degrees} degrees`}
        </p>
      );
    case 'tool-book':
      return <p className="book">{part.errorText ?? part.output ?? 'Booking…'}</p>;
    default:
      return null;
  }
}
