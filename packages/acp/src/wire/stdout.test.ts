import { expect, test } from 'vitest';
import { takeStandardOutput } from './stdout.ts';

test('standard output is restored exactly, even if other code had replaced it before', () => {
  const before = Object.getOwnPropertyDescriptor(process.stdout, 'write');
  const listeners = process.stdout.listenerCount('error');
  const { restore } = takeStandardOutput();
  expect(Object.getOwnPropertyDescriptor(process.stdout, 'write')).not.toEqual(before);
  restore();
  expect(Object.getOwnPropertyDescriptor(process.stdout, 'write')).toEqual(before);
  expect(process.stdout.listenerCount('error')).toBe(listeners);
});
