// How much a page with `useStoppableChat` loads compared with plain `useChat`: bundled and minified, without React, in bytes after gzip.
import { findCopies, measureBundle } from './measure/bundle.ts';
import { report } from './measure/measure.ts';

const MAX_ADDED = 10_000;

for (const { name, alias } of findCopies()) {
  const ours = measureBundle("export { useStoppableChat } from '@whoa/server/client'", { alias });
  const bare = measureBundle("export { useChat } from '@ai-sdk/react'", { alias });
  const more = { added: ours - bare, maxAdded: MAX_ADDED };
  report({ name: `bundle with ${name}`, ours, bare, goal: { atMost: 1 + MAX_ADDED / bare }, more });
}
