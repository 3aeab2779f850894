// Models write arguments that are not a JSON object: cut by the token limit, a list, a text, nothing. With the real `ai` package,
// majors 5 to 7, and the strict provider.
import { CancellationToken } from '@whoa/core';
import { describe, expect, test } from 'vitest';
import { aiVersions } from '../../../../test/ai-sdk/ai-versions.ts';
import { formats } from '../../../../test/ai-sdk/providers.ts';
import { createCallRecords } from '../index.ts';
import { type ScriptedResponse, startLoopbackProvider } from '../testing/index.ts';

const versions = aiVersions.flatMap((version) => formats.map((format) => [version.major, format, version] as const));
const invalid = ['{"at":', '[1]', '"x"', 'null'];
const say = {
  page: (text: string) => ({ id: text, role: 'user', parts: [{ type: 'text', text }] }),
  bot: (content: string) => ({ role: 'user', content }),
};

describe.each(versions)('ai %i, %s', (_, format, version) => {
  const setUp = (url: string) => ({ url, format, calls: createCallRecords(), slow: () => 'slow', fast: () => 'fast' });

  test.each(['page', 'bot'] as const)('a %s continues after every kind of invalid arguments', async (kind) => {
    for (const text of invalid) {
      const script: ScriptedResponse[] = [
        { parts: [{ text: 'Ok.' }, { call: 'fast', id: 'c1', arguments: text }] },
        { parts: [{ text: 'I see.' }] },
      ];
      await using provider = await startLoopbackProvider({ script });
      const base = setUp(provider.url);
      let history: readonly unknown[] = [say[kind]('Go')];
      for (const next of ['And?', 'So?']) {
        using token = new CancellationToken();
        if (kind === 'page') ({ history } = await version.stream({ ...base, history, token }));
        else {
          const { settled } = await version.streamBot({ ...base, history, token });
          history = JSON.parse(JSON.stringify([...history, ...settled.messages])) as unknown[];
          for (const { input } of findCalls(history)) expect(input, text).toSatisfy(isPlainObject);
        }
        history = [...history, say[kind](next)];
      }
      expect(provider.requests.map(({ refusal }) => refusal?.rule)).toEqual([undefined, undefined, undefined]);
      // The model sees what was wrong. In `ai` 7 a page does not get a `null`.
      if (text === 'null') continue;
      const sent = JSON.stringify(provider.requests.at(-1)!.body).replaceAll('\\', '');
      expect(sent, text).toContain(text.replaceAll('\\', ''));
    }
  });

  test('a bot that is stopped with such a call continues, and the call did not run', async () => {
    for (const text of invalid) {
      await using provider = await startLoopbackProvider({
        script: [
          { parts: [{ call: 'fast', arguments: text }, { text: ['Then ', { stall: true }] }] },
          { parts: [{ text: 'I see.' }] },
        ],
      });
      const base = setUp(provider.url);
      using token = new CancellationToken();
      const onPart = (type: string): void => void (type === 'text-delta' && token.cancel({}, { mode: 'now' }));
      const { settled } = await version.streamBot({ ...base, history: [say.bot('Go')], token, onPart });
      using next = new CancellationToken();
      const history = [say.bot('Go'), ...settled.messages, say.bot('And?')];
      await version.streamBot({ ...base, history, token: next });
      expect(provider.requests.map(({ refusal }) => refusal?.rule)).toEqual([undefined, undefined]);
    }
  });
});

function isPlainObject(input: unknown): boolean {
  return typeof input === 'object' && input !== null && !Array.isArray(input);
}

function findCalls(messages: readonly unknown[]): readonly { readonly input: unknown }[] {
  const lists = (messages as { content: string | { type: string; input: unknown }[] }[]).map(({ content }) => content);
  return lists.flatMap((content) =>
    typeof content === 'string' ? [] : content.filter(({ type }) => type === 'tool-call'),
  );
}
