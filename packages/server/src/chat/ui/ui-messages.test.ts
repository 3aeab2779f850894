import type { Message } from '@whoa/core';
import { expect, test } from 'vitest';
import { toUiMessages } from './ui-messages.ts';

const said = (text: string): Message => ({
  role: 'assistant',
  content: [{ type: 'text', text }],
  stopReason: 'stop',
});

test('notices for the model are not shown, and the reply around them is one message', () => {
  const history: Message[] = [
    { role: 'user', id: 'u1', content: 'Hi' },
    said('I begin. '),
    { role: 'user', isNotice: true, content: 'The process you ran in was restarted; continue where you left off.' },
    said('I go on.'),
  ];
  const shown = toUiMessages(history, 'c').map(({ role, parts }) => ({
    role,
    text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
  }));
  expect(shown).toEqual([
    { role: 'user', text: 'Hi' },
    { role: 'assistant', text: 'I begin. I go on.' },
  ]);
});
