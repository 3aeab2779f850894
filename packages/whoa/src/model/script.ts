import { readFile } from 'node:fs/promises';
import type { Model } from '@whoa/core/model';
import { createScriptedModel, type ScriptedStep } from '@whoa/core/testing';
import { UsageError } from '../command.ts';

/** Opens a model that follows a script file: `[["Let me see. ", { "call": "bash", "input": {…} }], ["Done."]]`. */
export async function openScript(file: string): Promise<Model> {
  const wrong = (what: string): UsageError =>
    new UsageError(
      `--model: ${file} ${what}; write a list of replies, each a list of texts, calls and { "waitMs": … }`,
    );
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new UsageError(`--model: cannot read the script: ${(error as Error).message}`);
  });
  let script: unknown;
  try {
    script = JSON.parse(text);
  } catch (error) {
    throw wrong(`is not valid JSON (${(error as Error).message})`);
  }
  const { replies, wordMs = 0 } = (Array.isArray(script) ? { replies: script } : script) as Record<string, unknown>;
  if (!Array.isArray(replies) || replies.length === 0) throw wrong('has no replies');
  if (typeof wordMs !== 'number') throw wrong('has a wordMs that is not a number');
  const steps = replies.map((reply) => {
    if (!Array.isArray(reply)) throw wrong('has a reply that is not a list');
    return reply.map((step) => parseStep(step, wrong));
  });
  return createScriptedModel(steps, { wordMs });
}

function parseStep(step: unknown, wrong: (what: string) => UsageError): ScriptedStep {
  if (typeof step === 'string') return step;
  const { call, input = {}, waitMs, fail } = (step ?? {}) as Record<string, unknown>;
  if (typeof call === 'string') return { call, input };
  if (typeof waitMs === 'number') return { waitMs };
  if (typeof fail === 'string') return { fail: new Error(fail) };
  throw wrong(`has an invalid step: ${JSON.stringify(step)}`);
}
