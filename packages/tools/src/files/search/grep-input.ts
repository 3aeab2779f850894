import { z } from 'zod';
import { strictInput } from '../../strict-input.ts';

const MAX_MATCHES = 1_000;
const MAX_CONTEXT = 10;

export interface GrepInput {
  readonly pattern: string;
  readonly path: string;
  readonly glob?: string | undefined;
  readonly ignoreCase: boolean;
  readonly literal: boolean;
  readonly context: number;
  readonly limit: number;
}

export const grepInput: z.ZodType<GrepInput> = strictInput({
  pattern: z.string().min(1).describe('Regular expression (Rust syntax), or plain text with literal'),
  path: z.string().default('.').describe('File or folder to search, relative to the root'),
  glob: z.string().min(1).optional().describe('Only these files, as in .gitignore: *.ts, !*.test.ts'),
  ignoreCase: z.boolean().default(false),
  literal: z.boolean().default(false).describe('Take the pattern as plain text'),
  context: z.int().min(0).max(MAX_CONTEXT).default(0).describe('Lines to show around each match'),
  limit: z.int().min(1).max(MAX_MATCHES).default(100).describe('How many matching lines to show'),
});
