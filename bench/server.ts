// The server compared with a bare handler, and its limits:
// npm run bench -- server [cancels] [streams] [text] [flood] [chat] [--json]
import type { BenchCase } from './stores/bare.ts';
import { startPostgresCase } from './stores/postgres.ts';
import { measureCancels } from './web/cancels.ts';
import { measureChat } from './web/chat.ts';
import { measureFlood } from './web/flood.ts';
import { measureStreams } from './web/streams.ts';
import { measureText } from './web/text.ts';

const PARTS: Readonly<Record<string, (one: BenchCase) => Promise<void>>> = {
  cancels: measureCancels,
  streams: measureStreams,
  text: measureText,
  flood: measureFlood,
  chat: measureChat,
};
const named = Object.keys(PARTS).filter((name) => process.argv.includes(name));
const parts = (named.length > 0 ? named : Object.keys(PARTS)).map((name) => PARTS[name]!);

await using one = await startPostgresCase();
for (const measure of parts) await measure(one);
