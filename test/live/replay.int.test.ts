// Replays recordings to the adapter: of a vendor, or of our loopback provider where no vendor has been recorded yet.
import { type LoopbackProvider, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { describe, expect, test } from 'vitest';
import { strictValidators } from '../../packages/ai-sdk/src/testing/history.ts';
import { read } from '../docs/pages.ts';
import { redact, redactText, startRecorder, startReplay } from './recording.ts';
import { modelFor, readRecordings, record, selectJourneys, VENDORS } from './vendors.ts';

const recordings = readRecordings();

/** Numbers call ids by their order: it matters which call is meant, not its name. */
function withOrderedIds(requests: unknown): unknown {
  const ids = new Map<unknown, string>();
  return JSON.parse(JSON.stringify(requests), (name, value: unknown) => {
    if (!['id', 'call_id', 'tool_call_id', 'tool_use_id'].includes(name)) return value;
    if (!ids.has(value)) ids.set(value, `id ${ids.size}`);
    return ids.get(value);
  });
}

test('every journey has a recording in every format', () => {
  const wanted = VENDORS.flatMap(({ format }) => selectJourneys(format).map(({ name }) => `${format} ${name}`));
  expect(recordings.map(({ format, journey }) => `${format} ${journey}`).toSorted()).toEqual(wanted.toSorted());
});

test.each(recordings.map((recording) => [recording.source, recording.format, recording.journey, recording] as const))(
  '%s: %s, %s: the adapter behaves and sends the same as in the recording',
  async (_, format, name, recording) => {
    const journey = selectJourneys(format).find((one) => one.name === name)!;
    await using replay = await startReplay(recording);
    const { thinks } = journey;
    const model = modelFor(format, { url: replay.url, model: recording.model, ...(thinks && { thinks }) });
    expect(await journey.run(model)).toEqual([]);
    const recorded = recording.exchanges.map(({ request }) => request);
    expect(withOrderedIds(replay.requests.map(redact))).toEqual(withOrderedIds(recorded));
    for (const request of replay.requests) expect(strictValidators[format](request)).toBeUndefined();
  },
);

test.each(VENDORS.map((vendor) => [vendor.format, vendor] as const))(
  '%s: a journey is recorded as it happens',
  async (_, vendor) => {
    for (const journey of selectJourneys(vendor.format)) {
      const { problems, recording } = await record(vendor, journey, undefined);
      expect(problems, journey.name).toEqual([]);
      expect(recording).toMatchObject({ source: 'loopback', journey: journey.name });
      const closed = recording.exchanges.map(({ closedBy }) => closedBy);
      expect(closed).toEqual([
        journey.name.startsWith('cut-in-words') || journey.thinks ? 'client' : 'server',
        'server',
      ]);
    }
  },
);

describe('a recorder', () => {
  const post = (url: string, body: unknown) =>
    fetch(`${url}/messages`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization: 'Bearer secret-key' },
    });
  const body = { model: 'claude', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] };
  const start = (provider: LoopbackProvider) =>
    startRecorder({
      target: provider.url,
      headers: { 'x-api-key': 'sk-ant-not-to-be-seen' },
      maxRequests: 2,
      maxOutputTokens: 10,
    });

  test('sends no more requests on, and asks for no more words, than it may', async () => {
    await using provider = await startLoopbackProvider({ script: () => ({ parts: [{ text: 'Hi' }] }) });
    await using recorder = await start(provider);
    expect((await post(recorder.url, body)).status).toBe(200);
    const long = await post(recorder.url, { ...body, max_tokens: 11 });
    expect([long.status, await long.text()]).toEqual([400, expect.stringContaining('at most 10 tokens')]);
    const third = await post(recorder.url, body);
    expect([third.status, await third.text()]).toEqual([400, expect.stringContaining('limit of 2 requests')]);
    expect(provider.requests).toHaveLength(1);
  });

  test('a recorder keeps no key, no header, no account', async () => {
    await using provider = await startLoopbackProvider({ script: [{ parts: [{ text: 'org-12345678abc Hi' }] }] });
    await using recorder = await start(provider);
    await (await post(recorder.url, { ...body, metadata: { user_id: 'Ada' }, user: 'Ada' })).text();
    await recorder.waitForIdle();
    expect(provider.requests[0]!.headers['x-api-key']).toBe('sk-ant-not-to-be-seen');
    expect(recorder.exchanges).toHaveLength(1);
    expect(JSON.stringify(recorder.exchanges)).not.toMatch(/sk-ant|secret-key|Ada|org-1234/);
  });

  test('redacts private fields and keys wherever they stand', () => {
    expect(redact({ a: [{ user: 'Ada', text: 'Bearer abc sk-1234567890' }], user: null })).toEqual({
      a: [{ user: '[redacted]', text: '[redacted] [redacted]' }],
      user: null,
    });
    expect(redactText('data: {"system_fingerprint": "fp_1","x":"req_123456789"}')).toBe(
      'data: {"system_fingerprint":"[redacted]","x":"[redacted]"}',
    );
  });
});

test('no recording holds anything private', () => {
  for (const recording of recordings) {
    expect(redact(recording)).toEqual(recording);
    expect(JSON.stringify(recording)).not.toMatch(/sk-[\w-]{8,}|Bearer|api-key|127\.0\.0\.1/);
  }
});

test('the providers page shows for each vendor whether and when it was recorded', () => {
  const page = read('docs/guides/providers.md');
  for (const { format, name } of VENDORS) {
    const row = page.split('\n').find((line) => line.startsWith(`| ${name} |`));
    expect(row, name).toBeDefined();
    const live = recordings.filter((recording) => recording.format === format && recording.source === 'live');
    if (live.length === 0) expect(row).toContain('not yet run live');
    for (const { recordedOn, model } of live) expect(row).toMatch(new RegExp(`${model}.*${recordedOn}`));
  }
});
