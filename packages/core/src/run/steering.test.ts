import { expect, test } from 'vitest';
import { CancellationToken } from '../stop/token/token.ts';
import type { UserMessage } from './history/message.ts';
import { Steering } from './steering.ts';

const say = (content: string): UserMessage => ({ role: 'user', content });

test('messages are taken once, in their order, but for those that were withdrawn', () => {
  const steering = new Steering();
  const token = new CancellationToken();
  expect(steering.hasWaiting).toBe(false);
  expect(steering.add(say('withdrawn'), token)).toBe(true);
  expect(steering.hasWaiting).toBe(true);
  token.cancel();
  expect(steering.hasWaiting).toBe(false);
  steering.add(say('one'));
  steering.add(say('two'), new CancellationToken());
  expect(steering.take()).toEqual([say('one'), say('two')]);
  expect(steering.take()).toEqual([]);
});

test('a closed queue returns unread messages and accepts no more', () => {
  const steering = new Steering();
  steering.add(say('unread'));
  expect(steering.close()).toEqual([say('unread')]);
  expect(steering.add(say('late'))).toBe(false);
  expect(steering.close()).toEqual([]);
});
