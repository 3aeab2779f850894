import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundle, install, node, runtimes } from './runtimes.ts';

let code: string;
let folder: string;
let onNode: readonly string[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'whoa-runtimes-'));
  await install();
  code = await bundle();
  onNode = await node.run(code, folder);
}, 300_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

test('the program tells the whole story on Node', () => {
  expect(onNode).toMatchSnapshot();
});

test('the bundle asks for nothing of Node', () => {
  expect(code).not.toMatch(/\bfrom\s*["'](node:)?(fs|util|events|process|buffer|crypto)["']/);
});

test.each(runtimes)('the program gives the same results on $name as on Node', async (runtime) => {
  expect(await runtime.run(code, folder)).toEqual(onNode);
});
