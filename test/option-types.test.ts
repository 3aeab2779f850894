// Options accept `undefined` for "not given", also under exactOptionalPropertyTypes. An option type is a type that the public
// API only takes and never returns; the API reports in api/ show them all.
import { globSync, readFileSync } from 'node:fs';
import { CancellationToken, createAgent, defineTool, sleep } from '@whoa/core';
import { ModelError } from '@whoa/core/model';
import { createScriptedModel } from '@whoa/core/testing';
import { createAccess } from '@whoa/server';
import { createBashTool, createContainment } from '@whoa/tools';
import { parseAst } from 'rolldown/parseAst';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { ROOT } from './docs/pages.ts';

/** The part of a syntax tree that we use. */
interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** The owners that only take options, also where a callback gets them. */
const OPTIONS = /^\w*(?:Options|Config|Filter|Settings|PageRequest|Ladder): /;

const sources = globSync('api/*.api.md', {
  cwd: ROOT,
  exclude: ['api/*.{internal,store}.api.md', 'api/t*.testing.api.md'],
}).map((path) =>
  [...readFileSync(`${ROOT}/${path}`, 'utf8').matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => code).join('\n'),
);

test('every option accepts undefined', () => {
  expect(findNarrowOptions(sources)).toEqual([]);
});

test('an option without undefined is found: in a parameter, a nested option and a method, not in what is returned', () => {
  const api = `function f(o: { readonly a?: number }, p?: P): R;
    interface P { readonly b?: { readonly c?: string } | undefined; readonly d?: unknown; readonly on?: ((e: E) => void) | undefined }
    interface R { readonly e?: number; g(q: Q): void }
    interface Q extends Partial<S> { readonly h?: number }
    interface S { readonly i?: number; readonly k: { [Name in X]?: Y } }
    interface E { readonly j?: number }`;
  expect(findNarrowOptions([api])).toEqual(['f: a', 'P: c', 'Q: Partial', 'S: i', 'S: Name', 'Q: h']);
});

test('undefined means "not given"', async () => {
  const fail = new ModelError('busy', { isRetryable: true });
  const model = createScriptedModel([[{ fail }], [{ fail }], [{ fail }], [{ fail }]]);
  const retry = { maxAttempts: undefined, backoffMs: 0, maxBackoffMs: undefined, idleTimeoutMs: undefined };
  const run = createAgent({ name: 'a', model, retry, stopMode: undefined }).run('hello', { hooks: { any: undefined } });
  await expect(run.outcome).resolves.toMatchObject({ status: 'failed' });
  expect(model.requests).toHaveLength(4);
  const definition = { whenCancelled: undefined, timeoutMs: undefined, effects: undefined, undo: undefined };
  const about = { name: 'look', description: 'Looks', inputSchema: z.object({}), execute: () => 'ok' };
  expect(defineTool({ ...about, ...definition })).toMatchObject({ whenCancelled: 'interrupt', effects: 'execute' });
  await sleep(0, { token: undefined, clock: undefined });
  const token = new CancellationToken({ name: undefined, parent: undefined });
  token.cancel({ kind: undefined, by: undefined }, { mode: { drainMs: undefined, abortMs: 0 } });
  expect([token.level, token.reason?.kind]).toEqual(['abort', 'user']);
  createAccess({ authenticate: () => 'ann', limits: { maxStreams: undefined, requestsBurst: undefined } });
  createBashTool({ cwd: undefined, env: { allow: undefined, set: undefined }, containment: undefined });
  const sandbox = {
    kind: 'none',
    workspace: undefined,
    writable: undefined,
    limits: { processes: undefined },
  } as const;
  await createContainment({ technique: undefined, sandbox })[Symbol.asyncDispose]();
});

/** Returns the owner and the name of each optional property that callers give and that does not accept `undefined`. */
function findNarrowOptions(texts: readonly string[]): string[] {
  const all = texts.flatMap((text) => parseAst(text, { lang: 'dts' }).body as unknown as Node[]);
  const declared = Map.groupBy(all, getName);
  const given = new Map<Node, string>();
  const returned = new Set<Node>();
  const visited = { given: new Set<Node>(), returned: new Set<Node>() };

  const visit = (part: unknown, direction: 'given' | 'returned', owner: string): void => {
    if (Array.isArray(part)) for (const item of part) visit(item, direction, owner);
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return;
    const node = part as Node;
    const { typeAnnotation, params, returnType, optional } = node;
    if (
      /^TS(PropertySignature|MappedType)$/.test(node.type) &&
      optional === true &&
      !acceptsUndefined(typeAnnotation as Node)
    ) {
      if (direction === 'given' && !owner.endsWith('Event')) given.set(node, `${owner}: ${getName(node)}`);
      else returned.add(node);
    }
    const name = getName(node);
    const isReference = /^TSTypeReference|Heritage$/.test(node.type);
    if (isReference && name === 'Partial' && direction === 'given' && mentionsOurs(node))
      given.set(node, `${owner}: Partial`);
    for (const target of isReference ? (declared.get(name) ?? []) : []) {
      if (visited[direction].has(target)) continue;
      visited[direction].add(target);
      visit(target, direction, name);
    }
    const isFunction = returnType !== undefined && Array.isArray(params);
    if (isFunction) visit(params, direction === 'given' ? 'returned' : 'given', owner);
    for (const [key, value] of Object.entries(node))
      if (
        key !== 'typeParameters' &&
        !(isFunction && key === 'params') &&
        !(owner === 'defineConfig' && key === 'returnType')
      )
        visit(value, direction, owner);
  };
  const mentionsOurs = ({ typeArguments }: Node): boolean =>
    (JSON.stringify(typeArguments).match(/(?<="name":")\w+/g) ?? []).some((name) => declared.has(name));
  for (const node of all) if (/Function|Class|Variable/.test(node.type)) visit(node, 'returned', getName(node));
  return [...given].flatMap(([node, text]) => (returned.has(node) && !OPTIONS.test(text) ? [] : [text]));
}

function acceptsUndefined(annotation: Node): boolean {
  const type = (annotation['typeAnnotation'] ?? annotation) as Node;
  if (type.type === 'TSUnionType') return (type['types'] as Node[]).some(acceptsUndefined);
  return ['TSUndefinedKeyword', 'TSUnknownKeyword', 'TSAnyKeyword'].includes(type.type);
}

function getName(node: Node): string {
  const [first] = (node['declarations'] as Node[] | undefined) ?? [node];
  const { id, key, typeName, expression } = first as unknown as Record<string, { readonly name?: string } | undefined>;
  return (id ?? key ?? typeName ?? expression)?.name ?? '';
}
