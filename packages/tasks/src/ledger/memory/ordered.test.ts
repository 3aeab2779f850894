import { expect, test } from 'vitest';
import { Schedule } from './ordered.ts';

test('items come by their time, and those of one moment by name, in whatever order they were added', () => {
  const orders = [
    ['c1', 'a2', 'b1', 'a1'],
    ['a1', 'b1', 'c1', 'a2'],
    ['b1', 'a1', 'a2', 'c1'],
  ];
  for (const items of orders) {
    const schedule = new Schedule<string>(() => true);
    for (const item of items) schedule.add(item, Number(item[1]));
    const found: string[] = [];
    for (let first = schedule.first(); first !== undefined; first = schedule.first()) {
      found.push(first.item);
      schedule.shift();
    }
    expect(found).toEqual(['a1', 'b1', 'c1', 'a2']);
  }
});
