import type { ServerResponse } from 'node:http';
import type { RequestRecord } from './request-record.ts';
import { type Fault, type Frame, isFault, type ScriptedResponse } from './script.ts';
import { frame, type Wire } from './wire/wire.ts';

export interface Delivery {
  readonly answer: ScriptedResponse;
  readonly frames: Iterable<Frame | Fault>;
  readonly record: RequestRecord;
  readonly wire: Wire;
}

/** Sends an answer according to its script, including faults, until it is complete or the client disconnects. */
export async function deliver(response: ServerResponse, { answer, frames, record, wire }: Delivery): Promise<void> {
  if (answer.beforeHeaders !== undefined) await stall(response, answer.beforeHeaders, record);
  if (isGone(response)) return;
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', ...answer.headers });
  response.flushHeaders();
  for (const step of frames) {
    if (isGone(response)) return;
    if (!isFault(step)) await sendFrame(response, step, { record, pace: answer.pace });
    else if ('stall' in step) await stall(response, step, record);
    else if ('malformed' in step) await sendFrame(response, frame(step.malformed), { record, pace: undefined });
    else if ('cut' in step) {
      await flushed(response);
      record.close('server');
      response.destroy();
      return;
    } else if ('overloaded' in step) {
      await sendFrame(response, wire.overloaded(), { record, pace: undefined });
      break;
    } else break;
  }
  response.end();
}

/** Sends an answer in one piece after all of its faults. */
export async function deliverWhole(
  response: ServerResponse,
  { answer, frames, record, wire, body }: Delivery & { readonly body: unknown },
): Promise<void> {
  if (answer.beforeHeaders !== undefined) await stall(response, answer.beforeHeaders, record);
  let status = 200;
  let text = JSON.stringify(body);
  let words = '';
  for (const step of frames) {
    if (isGone(response)) return;
    if (!isFault(step)) words += step.words ?? '';
    else if ('stall' in step) await stall(response, step, record);
    else if ('malformed' in step) text = step.malformed;
    else if ('overloaded' in step) {
      status = 529;
      text = JSON.stringify(wire.failure(status, { message: 'Overloaded' }));
    } else {
      record.close('server');
      response.destroy();
      return;
    }
  }
  if (isGone(response)) return;
  response.writeHead(status, { 'content-type': 'application/json', ...answer.headers });
  response.end(text);
  record.send(Buffer.byteLength(text));
  record.sendFrame(words);
}

function isGone(response: ServerResponse): boolean {
  return response.closed;
}

async function stall(
  response: ServerResponse,
  { stall: until }: Extract<Fault, { stall: unknown }>,
  record: RequestRecord,
): Promise<void> {
  record.stall();
  await untilClosed(response, until === true ? new Promise(() => {}) : until);
}

async function sendFrame(
  response: ServerResponse,
  { data, words = '' }: Frame,
  { record, pace }: { record: RequestRecord; pace: ScriptedResponse['pace'] },
): Promise<void> {
  const bytes = Buffer.from(data);
  const size = pace?.bytes ?? bytes.length;
  for (let at = 0; at < bytes.length && !response.closed; at += size) {
    const piece = bytes.subarray(at, at + size);
    const isRoomy = response.write(piece);
    record.send(piece.length);
    // Count before any pause: the client may read it and disconnect meanwhile.
    if (at + size >= bytes.length) record.sendFrame(words);
    if (!isRoomy) await untilClosed(response, new Promise((resolve) => response.once('drain', resolve)));
    if (pace !== undefined) await pause(response, pace.intervalMs);
  }
}

async function pause(response: ServerResponse, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await untilClosed(response, new Promise((resolve) => (timer = setTimeout(resolve, ms))));
  clearTimeout(timer);
}

/** Resolves when everything written has left this process. */
function flushed(response: ServerResponse): Promise<unknown> {
  return untilClosed(response, new Promise((resolve) => response.write('', resolve)));
}

/** Waits for a promise, or until the client disconnects. */
function untilClosed(response: ServerResponse, wait: PromiseLike<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      response.off('close', settle);
      resolve();
    };
    if (response.closed) return settle();
    response.once('close', settle);
    wait.then(settle, settle);
  });
}
