// Random histories of file changes by tools, of foreign changes in between, of crashes, and of undos.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CancellationToken, type Tool, type ToolContext, type ToolResult } from '@whoa/core';
import { createVirtualWorld } from '@whoa/core/testing';
import { createFileTools } from '@whoa/tools';

export interface HistoriesReport {
  readonly histories: number;
  readonly undone: number;
  readonly changedSince: number;
  readonly unavailable: number;
  readonly crashes: number;
  readonly problems: readonly string[];
}

interface Options {
  readonly histories: number;
  readonly seed: number;
  readonly root: string;
  readonly undoFolder: string;
}

interface Change {
  readonly callId: string;
  readonly workId: string;
  readonly tool: string;
  readonly path: string;
  readonly input: { readonly path: string };
  readonly before: string | undefined;
  readonly after: string;
  readonly result: ToolResult;
}

const NAMES = ['a', 'b', 'c'];
const TEXTS = ['', 'one\n', 'two\n', 'one\ntwo\n', 'ä\r\n💥'];

/** Runs them one at a time in the same folder. */
export async function runHistories({ histories, seed, root, undoFolder }: Options): Promise<HistoriesReport> {
  const world = createVirtualWorld({ seed });
  const below = (limit: number): number => Math.floor(world.random() * limit);
  const pick = <Thing>(things: readonly Thing[]): Thing => things[below(things.length)]!;
  const report = { histories: 0, undone: 0, changedSince: 0, unavailable: 0, crashes: 0, problems: [] as string[] };
  for (; report.histories < histories && report.problems.length === 0; report.histories++) {
    rmSync(root, { recursive: true, force: true });
    mkdirSync(root);
    const content = (name: string): string | undefined => {
      const path = join(root, name);
      return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
    };
    for (const name of NAMES) if (below(2) === 0) writeFileSync(join(root, name), pick(TEXTS));
    let tools = createFileTools({ root, undoFolder });
    const changes: Change[] = [];
    /** A crash loses what the process knows; the folder and the journal stay. */
    const crash = (): void => {
      report.crashes++;
      tools = createFileTools({ root, undoFolder });
    };
    const interfere = (): void => {
      const name = pick(NAMES);
      if (below(3) === 0) rmSync(join(root, name), { force: true });
      else writeFileSync(join(root, name), pick(TEXTS));
    };
    for (let step = below(6); step >= 0; step--) {
      // Ids of calls come from models, so they repeat.
      const callId = below(10) === 0 ? 'again' : `${report.histories}-${step}`;
      const change = await makeChange(tools, {
        callId,
        workId: `${report.histories}`,
        path: pick(NAMES),
        text: pick(TEXTS),
        content,
        isEdit: below(2) === 0,
      });
      if (change !== undefined) {
        changes.push(change);
        // The worker dies after the write and before the journal has its end: a write runs again.
        if (change.tool === 'write' && below(6) === 0) {
          crash();
          const result = await callTool(tools, change);
          if (result !== undefined) changes[changes.length - 1] = { ...change, result };
        }
      }
      if (below(4) === 0) interfere();
      if (below(5) === 0) crash();
    }
    if (below(8) === 0) rmSync(undoFolder, { recursive: true, force: true });
    for (const change of changes.toReversed()) {
      const seen = content(change.path);
      const tool = tools.find(({ name }) => name === change.tool)!;
      const undo = async (): Promise<string> => {
        try {
          const within = { callId: change.callId, workId: change.workId, signal: new AbortController().signal };
          await tool.undo!({ ...change.result, input: change.input }, within);
          return 'undone';
        } catch (error) {
          return (error as Error).message;
        }
      };
      const said = await undo();
      const now = content(change.path);
      const about = JSON.stringify({ said, change, seen, now });
      if (said === 'undone') {
        report.undone++;
        if (now !== change.before) report.problems.push(`said to be undone, and is not: ${about}`);
        if (seen !== change.after && seen !== change.before) report.problems.push(`foreign work was undone: ${about}`);
        // Twice is once.
        if ((await undo()) !== 'undone' || content(change.path) !== now) report.problems.push(`not twice: ${about}`);
      } else {
        if (said.startsWith('changed since')) report.changedSince++;
        else if (said.startsWith('undo unavailable')) report.unavailable++;
        else report.problems.push(`odd: ${about}`);
        if (now !== seen) report.problems.push(`touched, and said to be not: ${about}`);
      }
    }
  }
  return report;
}

interface Wanted {
  readonly callId: string;
  readonly workId: string;
  readonly path: string;
  readonly text: string;
  readonly isEdit: boolean;
  readonly content: (name: string) => string | undefined;
}

async function makeChange(tools: readonly Tool[], wanted: Wanted): Promise<Change | undefined> {
  const { callId, workId, path, text, content, isEdit } = wanted;
  const before = content(path);
  const tool = isEdit ? 'edit' : 'write';
  const edits = [{ oldText: before?.slice(0, 3) ?? '', newText: text }];
  const input = isEdit ? { path, edits } : { path, content: text };
  const change = { callId, workId, tool, path, input, before };
  const result = await callTool(tools, change);
  return result === undefined ? undefined : { ...change, after: content(path)!, result };
}

/** `undefined` if the tool refuses. */
async function callTool(
  tools: readonly Tool[],
  { tool, input, ...call }: Pick<Change, 'callId' | 'workId' | 'tool' | 'input'>,
): Promise<ToolResult | undefined> {
  const token = new CancellationToken({ name: 'call' });
  const context = { ...call, token, signal: token.signal, defer: () => {}, update: () => {} } as unknown as ToolContext;
  try {
    return (await tools.find(({ name }) => name === tool)!.execute(input, context)) as ToolResult;
  } catch {
    return undefined;
  } finally {
    token[Symbol.dispose]();
  }
}
