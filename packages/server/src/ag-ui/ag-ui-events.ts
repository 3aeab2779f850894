import type { Event as CoreEvent, Message as CoreMessage } from '@ag-ui/core';

type Written<Event> = Event extends { type: infer Type extends string }
  ? { readonly [Field in keyof Event]: Field extends 'type' ? `${Type}` : Event[Field] }
  : never;

/** An event as it is written to the wire. The library's own types require its enum. */
export type AgUiEvent = Written<CoreEvent>;
export type AgUiMessage = CoreMessage;
