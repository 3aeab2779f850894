// What splitting grep's result saves: model tokens of the text for the model, compared with everything that people see.
import { join } from 'node:path';
import { createRuntime, type Tool } from '@whoa/core';
import { createGrepTool } from '@whoa/tools/internal';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { report } from './measure/measure.ts';

/** Typical searches of a coding agent in a repository: a name, a call, an idiom, a word of the docs. */
const QUESTIONS = [
  { pattern: 'throwIfCancelled' },
  { pattern: 'class \\w+Error' },
  { pattern: 'createContainment\\(' },
  { pattern: 'await using|using ', glob: '*.test.ts' },
  { pattern: 'lease', path: 'docs', ignoreCase: true },
  { pattern: 'export function' },
];

const root = join(import.meta.dirname, '..');
const runtime = createRuntime({ tools: [createGrepTool({ root }) as Tool] });
let [ours, everything, bare] = [0, 0, 0];
for (const [index, input] of QUESTIONS.entries()) {
  const [result] = await runtime.execute([{ id: `${index}`, tool: 'grep', input }]);
  const content = result!.content as string;
  const { matches } = result!.details as { matches: { path: string; line: number; text: string }[] };
  ours += countTokens(content);
  everything += countTokens(`${content}\n${JSON.stringify(result!.details)}`);
  bare += countTokens(matches.map(({ path, line, text }) => `${path}:${line}:${text}`).join('\n'));
}
report({
  name: `model tokens of ${QUESTIONS.length} searches of this repository, beside content and details together`,
  ours,
  bare: everything,
  goal: { atMost: 0.3 },
});
report({
  name: 'the same beside path:line:text as ripgrep prints it',
  ours,
  bare,
  goal: { atMost: 0.9 },
});
