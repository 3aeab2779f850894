// Finds every error code in the sources of the packages: those of error classes, and those of objects such as HTTP responses.
import { parseAst } from 'rolldown/parseAst';

/** A code in the place where the sources write it. */
export interface FoundCode {
  readonly code: string;
  readonly file: string;
  /** The error class that has it. */
  readonly errorClass?: string;
  /** The HTTP status next to it. */
  readonly status?: number;
}

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** The context of a node: the innermost class, and the HTTP status if it is an argument of a call with one. */
interface Around {
  readonly file: string;
  readonly errorClass?: string | undefined;
  readonly status?: number | undefined;
}

const CONSTANT = /^[A-Z][A-Z_]+$/;
/** Codes of the operating system, which Node documents. */
const SYSTEM_CODE = /^E[A-Z]+$/;
/** These make HTTP responses. The code they get must be a literal, or this script would not see it. */
const RESPONSE_MAKERS: ReadonlySet<string> = new Set(['HttpError', 'refuse', 'refuseTemporarily']);

/** Returns the codes in a file, in order. Throws if a response has a code that is not a string literal. */
export function findCodes(file: string, text: string): FoundCode[] {
  const found = visit(parseAst(text, { lang: 'ts' }) as unknown as Node, { file });
  return found.filter(({ code }) => code !== '' && !SYSTEM_CODE.test(code));
}

function visit(node: Node, around: Around): FoundCode[] {
  const inside = enter(node, around);
  return [
    ...readCodes(node, inside),
    ...getChildren(node).flatMap((child) => visit(child, leave(node, child, inside))),
  ];
}

function enter(node: Node, around: Around): Around {
  if (node.type !== 'ClassDeclaration') return around;
  return { ...around, errorClass: (node['id'] as Node)['name'] as string };
}

/** A status belongs to the object next to it, not to deeper ones. */
function leave(node: Node, child: Node, around: Around): Around {
  if (node.type === 'ObjectExpression') return around;
  const [first] = isCall(node) && child.type === 'ObjectExpression' ? (node['arguments'] as Node[]) : [];
  const status = first?.['value'];
  return { ...around, status: typeof status === 'number' ? status : undefined };
}

function readCodes(node: Node, around: Around): FoundCode[] {
  switch (node.type) {
    case 'Property':
    case 'PropertyDefinition':
      return getName(node['key']) === 'code' ? readValues(node).map((code) => toFound(code, node, around)) : [];
    case 'AssignmentPattern':
      return getName(node['left']) === 'code'
        ? readTexts(node['right']).map((code) => toFound(code, node, around))
        : [];
    case 'NewExpression':
    case 'CallExpression':
      requireLiteral(node, around);
      return readConstants(node).map((code) => ({ code, file: around.file, ...findClass(node, around) }));
    default:
      return [];
  }
}

function toFound(code: string, { type }: Node, { file, errorClass, status }: Around): FoundCode {
  const isOfClass = type !== 'Property' && errorClass !== undefined;
  return { code, file, ...(isOfClass && { errorClass }), ...(status !== undefined && { status }) };
}

/** `new UsageError(message, 'CONFIG')`, or `super(message, 'AUTH_REQUIRED')` in a subclass. */
function readConstants(node: Node): string[] {
  const callee = node['callee'] as Node;
  if (callee.type !== 'Super' && !(getName(callee) ?? '').endsWith('Error')) return [];
  return (node['arguments'] as Node[]).flatMap(readTexts).filter((text) => CONSTANT.test(text));
}

function findClass(node: Node, { errorClass }: Around): { errorClass?: string } {
  const callee = node['callee'] as Node;
  const made = callee.type === 'Super' ? errorClass : getName(callee);
  return made === undefined ? {} : { errorClass: made };
}

function requireLiteral(node: Node, { file }: Around): void {
  if (!RESPONSE_MAKERS.has(getName(node['callee']) ?? '')) return;
  for (const given of node['arguments'] as Node[]) {
    const properties = given.type === 'ObjectExpression' ? (given['properties'] as Node[]) : [];
    const code = properties.find(({ key }) => getName(key) === 'code');
    if (code !== undefined && readTexts(code['value']).length === 0)
      throw new Error(`${file}: write the code of a response as a literal, so that the error reference can list it`);
  }
}

/** The literal after `code:`, or each literal of its type: `code: 'A' | 'B'`. */
function readValues(node: Node): string[] {
  const annotation = (node['typeAnnotation'] as Node | undefined)?.['typeAnnotation'] as Node | undefined;
  return [...readTexts(node['value']), ...readTexts(annotation)];
}

function readTexts(value: unknown): string[] {
  const node = value as Node | null | undefined;
  if (node?.type === 'TSUnionType') return (node['types'] as Node[]).flatMap(readTexts);
  if (node?.type === 'TSLiteralType') return readTexts(node['literal']);
  if (node?.type === 'ConditionalExpression') return [node['consequent'], node['alternate']].flatMap(readTexts);
  return node?.type === 'Literal' && typeof node['value'] === 'string' ? [node['value']] : [];
}

function isCall({ type }: Node): boolean {
  return type === 'CallExpression' || type === 'NewExpression';
}

function getName(node: unknown): string | undefined {
  return (node as Node | undefined)?.['name'] as string | undefined;
}

function getChildren(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((value): value is Node => typeof value === 'object' && value !== null && 'type' in value);
}
