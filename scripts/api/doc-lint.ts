// Finds public names whose doc comment does not say what people need: what it is, what it returns, what it throws, and for
// the entry points how it is used.
import { readFileSync } from 'node:fs';
import { parseAst } from 'rolldown/parseAst';
import { type Declaration, type Entry, ROOT } from './surface.ts';

/** Where people begin. Each has an example, which is compiled with the docs. */
const ENTRY_POINTS: ReadonlySet<string> = new Set([
  '@whoa/core CancellationToken',
  '@whoa/core guard',
  '@whoa/core shield',
  '@whoa/core sleep',
  '@whoa/core defineTool',
  '@whoa/core createInterruptedError',
  '@whoa/core createRuntime',
  '@whoa/core createAgent',
  '@whoa/core createAgentTool',
  '@whoa/core formatStopReport',
  '@whoa/core createConversations',
  '@whoa/core/approval createApprovals',
  '@whoa/core/testing createScriptedModel',
  '@whoa/ai-sdk fromAiSdk',
  '@whoa/ai-sdk fromAiSdkTools',
  '@whoa/ai-sdk guardAiSdkTools',
  '@whoa/ai-sdk createStoppableTurn',
  '@whoa/ai-sdk closeOpenCalls',
  '@whoa/ai-sdk/testing startLoopbackProvider',
  '@whoa/tools createBashTool',
  '@whoa/tools createFileTools',
  '@whoa/tools createMcpTools',
  '@whoa/tools createContainment',
  '@whoa/tools/testing createToolContract',
  '@whoa/tasks createTaskStore',
  '@whoa/tasks createRunner',
  '@whoa/tasks createStoreConversations',
  '@whoa/tasks createBackground',
  '@whoa/tasks followTask',
  '@whoa/acp serveAcp',
  '@whoa/server createChatHandler',
  '@whoa/server createAgUiHandler',
  '@whoa/server createTaskApi',
  '@whoa/server/client useStoppableChat',
  '@whoa/server/task-client createTaskClient',
  'whoa defineConfig',
]);

/** A call of one of these throws for its caller. */
const THROWING_CALL = /^(?:readSettings|throwIfCancelled|check[A-Z]\w*)$/;
const RETURNS_NOTHING = /\): (?:Promise<void>|void);$/;
const NESTED: ReadonlySet<string> = new Set([
  'FunctionExpression',
  'FunctionDeclaration',
  'ArrowFunctionExpression',
  'ClassDeclaration',
  'ClassExpression',
]);

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** Returns one line for each fault. */
export function lintDocs(entries: readonly Entry[]): string[] {
  const known = new Set<string>();
  const problems = entries.flatMap(({ specifier, names }) =>
    names.flatMap(({ name, declaration }) => {
      known.add(`${specifier} ${name}`);
      if (declaration === undefined) return [];
      const faults = [...faultsOf(declaration)];
      if (ENTRY_POINTS.has(`${specifier} ${name}`) && !declaration.doc.includes('@example')) faults.push('an @example');
      return faults.map(
        (fault) => `${placeOf(declaration)}: ${name} of ${specifier} needs ${fault} in its doc comment`,
      );
    }),
  );
  const gone = [...ENTRY_POINTS].filter((entryPoint) => !known.has(entryPoint));
  return [...problems, ...gone.map((entryPoint) => `scripts/api/doc-lint.ts: ${entryPoint} is not exported`)];
}

function* faultsOf(declaration: Declaration): Generator<string> {
  const { kind, doc, text } = declaration;
  if (doc.replace(/^@.*/s, '').trim() === '') yield 'a sentence';
  if (kind !== 'function') return;
  if (!RETURNS_NOTHING.test(text) && !doc.includes('@returns')) yield 'what it returns (@returns)';
  if (!doc.includes('@throws') && throws(declaration)) yield 'what it throws (@throws)';
}

/** Whether the function itself throws, as far as its own body shows. */
function throws(declaration: Declaration): boolean {
  const file = sourceOf(declaration);
  for (const statement of parseAst(readFileSync(file, 'utf8'), { lang: 'ts' }, file).body as unknown as Node[]) {
    const declared = (statement['declaration'] as Node | null | undefined) ?? statement;
    const isIt = (declared['id'] as { name?: string } | null | undefined)?.name === declaration.name;
    if (isIt && declared['body'] && throwsIn(declared['body'])) return true;
  }
  return false;
}

function throwsIn(node: unknown): boolean {
  if (Array.isArray(node)) return node.some(throwsIn);
  if (typeof node !== 'object' || node === null) return false;
  const { type, callee } = node as Node;
  if (type === 'ThrowStatement') return true;
  if (NESTED.has(type)) return false;
  const { name, property } = (callee ?? {}) as { name?: string; property?: { name?: string } };
  if (type === 'CallExpression' && THROWING_CALL.test(name ?? property?.name ?? '')) return true;
  return Object.values(node).some(throwsIn);
}

function sourceOf({ file }: Declaration): string {
  return file.replace('/dist/', '/src/').replace(/\.d\.ts$/, '.ts');
}

function placeOf(declaration: Declaration): string {
  return sourceOf(declaration).slice(ROOT.length + 1);
}
