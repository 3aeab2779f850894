// Approval questions of a task, asked and answered through its MCP host.
import type { InputRequests } from '@modelcontextprotocol/server';
import { type ApprovalQuestion, formatQuestion } from '@whoa/core/approval';
import { describeLocation, parseAnswer } from '@whoa/core/internal';
import { z } from 'zod';
import type { AnswerBody } from '../tasks/answering.ts';
import type { AskedQuestion } from '../tasks/read-questions.ts';

/** What `always` covers when it covers nothing else. */
const THIS_CALL_ONLY = 'this call only';
const DISMISSED = 'the user dismissed the question';
const DECLINED = 'the user declined to answer';
const PRIMITIVES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean']);

/** Converts questions to the requests of a task. Their keys are random: who has not read a question cannot answer it. */
export function toInputRequests(questions: readonly AskedQuestion[]): InputRequests {
  return Object.fromEntries(
    questions.map((asked) => {
      const { id, kind, question } = asked;
      const isApproval = kind === 'approve';
      const message = isApproval
        ? describeQuestion(question)
        : [`${question.tool} asks:`, ...formatQuestion(question)].join('\n');
      const requestedSchema = isApproval ? toApprovalSchema(question) : toAnswerSchema(asked);
      return [
        id,
        { method: 'elicitation/create' as const, params: { mode: 'form' as const, message, requestedSchema } },
      ];
    }),
  );
}

/** Everything that would run, because a host shows its user nothing else. */
function describeQuestion(question: ApprovalQuestion): string {
  const { tool, effects, why } = question;
  const where = describeLocation(question);
  const title = `${tool} wants to ${effects}${where === undefined ? '' : ` ${where}`}:`;
  const lines = formatQuestion(question).map((line) => `  ${line}`);
  return [title, ...lines, ...(why === undefined ? [] : [`Asked because ${why}`]), 'Allow it?'].join('\n');
}

function toApprovalSchema({ alwaysScope }: ApprovalQuestion) {
  const remember = {
    type: 'boolean' as const,
    title: 'Always',
    description: `Also allow ${alwaysScope}`,
    default: false,
  };
  const properties: Record<string, typeof remember> = alwaysScope === THIS_CALL_ONLY ? {} : { remember };
  return { type: 'object' as const, properties };
}

const ANSWER = z.discriminatedUnion('action', [
  z.object({ action: z.literal('accept'), content: z.object({ remember: z.boolean().optional() }).optional() }),
  z.object({ action: z.enum(['decline', 'cancel']) }),
]);

/** Hosts show forms with simple fields only. Any other answer is one field of such a form. */
function toAnswerSchema(asked: AskedQuestion): FormSchema {
  if (isForm(asked)) return asked.schema as unknown as FormSchema;
  const { schema = {} } = asked;
  const answer = PRIMITIVES.has(schema['type']) ? schema : { type: 'string', description: JSON.stringify(schema) };
  return { type: 'object', properties: { answer }, required: ['answer'] } as unknown as FormSchema;
}

function isForm({ schema = {} }: AskedQuestion): boolean {
  const fields = Object.values((schema['properties'] ?? {}) as Record<string, { readonly type?: unknown }>);
  return schema['type'] === 'object' && fields.length > 0 && fields.every(({ type }) => PRIMITIVES.has(type));
}

type FormSchema = ReturnType<typeof toApprovalSchema>;

const FORM = z.object({
  action: z.enum(['accept', 'decline', 'cancel']),
  content: z.record(z.string(), z.json()).optional(),
});

/** Reads a host's response to a question. Returns `undefined` if it is none. */
export function readAnswer(asked: AskedQuestion, response: unknown): AnswerBody | undefined {
  return asked.kind === 'approve' ? readDecision(response) : readForm(asked, response);
}

function readForm(asked: AskedQuestion, response: unknown): AnswerBody | undefined {
  const { data } = FORM.safeParse(response);
  if (data === undefined) return undefined;
  const { action, content = {} } = data;
  if (action !== 'accept') return { error: action === 'cancel' ? DISMISSED : DECLINED };
  if (isForm(asked)) return { answer: content };
  const { answer = '' } = content;
  return { answer: typeof answer === 'string' ? parseAnswer(answer, asked.schema) : answer };
}

function readDecision(response: unknown): AnswerBody | undefined {
  const { data } = ANSWER.safeParse(response);
  if (data === undefined) return undefined;
  if (data.action === 'accept') return { decision: data.content?.remember === true ? 'always' : 'yes' };
  return { decision: 'no', ...(data.action === 'cancel' && { why: DISMISSED }) };
}
