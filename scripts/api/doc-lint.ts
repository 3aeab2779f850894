// Finds public names whose doc comment is incomplete: it must describe the name, its result, its errors and, for the
// entry points, its use. Methods need a sentence, too.
import { readFileSync } from 'node:fs';
import { parseAst } from 'rolldown/parseAst';
import { type Declaration, type Entry, ROOT } from './surface.ts';

/** Where people begin. Each has an example, which is compiled with the docs. */
const ENTRY_POINTS: ReadonlySet<string> = new Set([
  '@whoa/core CancellationToken',
  '@whoa/core guard',
  '@whoa/core/embed shield',
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
  readonly start: number;
  readonly [key: string]: unknown;
}

/** Returns one line for each fault. */
export function lintDocs(entries: readonly Entry[]): string[] {
  const known = new Set<string>();
  const problems = entries.flatMap(({ specifier, names }) =>
    names.flatMap(({ name, declaration }) => {
      known.add(`${specifier} ${name}`);
      if (declaration === undefined) return [];
      const faults = [...findFaults(declaration)];
      if (!specifier.endsWith('/internal')) faults.push(...findSilentMethods(declaration));
      if (ENTRY_POINTS.has(`${specifier} ${name}`) && !declaration.doc.includes('@example')) faults.push('an @example');
      return faults.map(
        (fault) => `${describePlace(declaration)}: ${name} of ${specifier} needs ${fault} in its doc comment`,
      );
    }),
  );
  const gone = [...ENTRY_POINTS].filter((entryPoint) => !known.has(entryPoint));
  return [...problems, ...gone.map((entryPoint) => `scripts/api/doc-lint.ts: ${entryPoint} is not exported`)];
}

function* findFaults(declaration: Declaration): Generator<string> {
  const { kind, doc, text } = declaration;
  if (doc.replace(/^@.*/s, '').trim() === '') yield 'a sentence';
  if (kind !== 'function') return;
  if (!RETURNS_NOTHING.test(text) && !doc.includes('@returns')) yield 'what it returns (@returns)';
  if (!doc.includes('@throws') && throws(declaration)) yield 'what it throws (@throws)';
}

/** Finds the methods of an interface or a class that have no doc comment. */
function findSilentMethods({ name, kind, ...rest }: Declaration): string[] {
  if (kind !== 'interface' && kind !== 'class') return [];
  const file = readSource({ name, kind, ...rest });
  const source = readFileSync(file, 'utf8');
  const members = readStatements(file, source).flatMap((declared) => {
    const isIt = (declared['id'] as { name?: string } | null | undefined)?.name === name;
    return isIt ? ((declared['body'] as { body?: Node[] }).body ?? []) : [];
  });
  return members.flatMap((member) => {
    const key = member['key'] as Node | undefined;
    const isDocumented = source
      .slice(0, member.start)
      .replace(/(?:\s*\/\/.*)*\s*$/, '')
      .endsWith('*/');
    return isMethod(member) && key?.type === 'Identifier' && !isDocumented
      ? [`a sentence for ${key['name'] as string}`]
      : [];
  });
}

function isMethod({ type, kind, typeAnnotation }: Node): boolean {
  const annotation = (typeAnnotation as { typeAnnotation?: Node } | null | undefined)?.typeAnnotation;
  return (
    type === 'TSMethodSignature' ||
    (type === 'MethodDefinition' && kind === 'method') ||
    (type === 'TSPropertySignature' && annotation?.type === 'TSFunctionType')
  );
}

/** The declarations of a file, exported or not. */
function readStatements(file: string, source: string): Node[] {
  const statements = parseAst(source, { lang: 'ts' }, file).body as unknown as Node[];
  return statements.map((statement) => (statement['declaration'] as Node | null | undefined) ?? statement);
}

/** Whether the function's own body throws. */
function throws(declaration: Declaration): boolean {
  const file = readSource(declaration);
  for (const declared of readStatements(file, readFileSync(file, 'utf8'))) {
    const isIt = (declared['id'] as { name?: string } | null | undefined)?.name === declaration.name;
    if (isIt && declared['body'] && hasThrow(declared['body'])) return true;
  }
  return false;
}

function hasThrow(node: unknown): boolean {
  if (Array.isArray(node)) return node.some(hasThrow);
  if (typeof node !== 'object' || node === null) return false;
  const { type, callee } = node as Node;
  if (type === 'ThrowStatement') return true;
  if (NESTED.has(type)) return false;
  const { name, property } = (callee ?? {}) as { name?: string; property?: { name?: string } };
  if (type === 'CallExpression' && THROWING_CALL.test(name ?? property?.name ?? '')) return true;
  return Object.values(node).some(hasThrow);
}

function readSource({ file }: Declaration): string {
  return file.replace('/dist/', '/src/').replace(/\.d\.ts$/, '.ts');
}

function describePlace(declaration: Declaration): string {
  return readSource(declaration).slice(ROOT.length + 1);
}
