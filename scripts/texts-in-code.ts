// The strings in source code that people read: messages of errors and responses, help of commands, titles of tests.
import { parseAst } from 'rolldown/parseAst';

export interface TextInCode {
  readonly line: number;
  readonly text: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}

const TESTS: ReadonlySet<string> = new Set(['test', 'it', 'describe']);

/** Finds titles in test files, and messages and help in others. */
export function findTexts(file: string, source: string): TextInCode[] {
  const isTest = /\.test\.tsx?$/.test(file);
  const body = parseAst(source, { lang: file.endsWith('x') ? 'tsx' : 'ts' }, file).body as unknown as Node[];
  const texts = new Map<number, string>();
  for (const node of visit(body)) {
    for (const part of isTest ? findTitle(node) : findMessages(node)) {
      const text = toText(part);
      if (text !== '') texts.set(part.start, text);
    }
  }
  return Array.from(texts, ([start, text]) => ({ line: source.slice(0, start).split('\n').length, text }));
}

function findTitle({ type, callee, arguments: given }: Node): Node[] {
  const isTest = type === 'CallExpression' && TESTS.has(toName(callee as Node));
  return isTest ? (given as Node[]).slice(0, 1) : [];
}

function findMessages(node: Node): Node[] {
  if (node.type === 'NewExpression' && toName(node['callee'] as Node).endsWith('Error'))
    return [...visit(node['arguments'])];
  const { name = '' } = (node['id'] ?? {}) as { name?: string };
  if (node.type === 'VariableDeclarator' && /help$/i.test(name)) return [...visit(node['init'])];
  const { name: key = '' } = (node['key'] ?? {}) as { name?: string };
  return node.type === 'Property' && /^(help|message|summary)$/.test(key) ? [...visit(node['value'])] : [];
}

function* visit(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const one of value) yield* visit(one);
  else if (typeof value === 'object' && value !== null) {
    if ('type' in value) yield value as Node;
    for (const one of Object.values(value)) yield* visit(one);
  }
}

/** The first name of a call: `test` of `test.each(rows)('title', …)`. */
function toName(callee: Node | undefined): string {
  if (callee === undefined) return '';
  if (callee.type === 'Identifier') return callee['name'] as string;
  return toName((callee['object'] ?? callee['callee']) as Node | undefined);
}

function toText({ type, value, quasis }: Node): string {
  if (type === 'Literal') return typeof value === 'string' ? value : '';
  if (type !== 'TemplateLiteral') return '';
  return (quasis as { value: { raw: string } }[]).map((part) => part.value.raw).join('…');
}
