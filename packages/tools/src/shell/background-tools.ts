import { defineTool, type Tool } from '@whoa/core';
import { z } from 'zod';
import { conciseText } from '../process/output/capture.ts';
import { strictInput } from '../strict-input.ts';
import type { BackgroundProcess, BackgroundProcesses } from './background.ts';
import { cleanupDetails, MAX_CHARACTERS } from './result.ts';

const ONE = strictInput({ id: z.string().describe('Which one, as bash or background_list named it') });

/**
 * Creates the tools with which a model lists, reads and stops its background processes. `createBashTool` starts them.
 *
 * @returns The three tools.
 */
export function createBackgroundTools(
  background: BackgroundProcesses,
): readonly [Tool, Tool<{ id: string }>, Tool<{ id: string }>] {
  return [listTool(background), outputTool(background), stopTool(background)];
}

function listTool(background: BackgroundProcesses): Tool {
  return defineTool<unknown>({
    name: 'background_list',
    description: 'Lists background processes: those that run, and the last ones that ended.',
    inputSchema: strictInput({}),
    effects: 'read',
    replay: 'safe',
    execute() {
      const all = background.list();
      const lines = all.map((process) => `${process.id}  ${describe(process)}  ${process.command}`);
      const details = all.map(({ id, pid, command, state }) => ({ id, pid, command, state }));
      return { content: lines.join('\n') || 'There are none.', details };
    },
  });
}

function outputTool(background: BackgroundProcesses): Tool<{ id: string }> {
  return defineTool<{ id: string }>({
    name: 'background_output',
    description: 'Shows what a background process has printed so far.',
    inputSchema: ONE,
    effects: 'read',
    replay: 'safe',
    execute({ id }) {
      const found = background.get(id);
      if (found === undefined) return unknownId(id);
      const text = conciseText(found.output, MAX_CHARACTERS) || '(no output)';
      return { content: `${describe(found)}\n${text}`, details: { id, state: found.state, output: found.output } };
    },
  });
}

function stopTool(background: BackgroundProcesses): Tool<{ id: string }> {
  return defineTool<{ id: string }>({
    name: 'background_stop',
    description: 'Stops a background process and everything it started.',
    inputSchema: ONE,
    effects: 'execute',
    replay: 'never',
    async execute({ id }) {
      const end = await background.stop(id);
      if (end === undefined) return unknownId(id);
      const { cleanup } = end;
      const left = cleanup.survivors > 0 ? ` ${cleanup.survivors} could not be ended.` : '';
      return {
        content: `${id} has ended, with ${cleanup.ended} processes.${left}`,
        details: { id, exitCode: end.exit.code, signal: end.exit.signal, cleanup: cleanupDetails(cleanup) },
      };
    },
  });
}

function unknownId(id: string): { content: string; isError: true } {
  return { content: `There is no background process '${id}'; background_list shows them.`, isError: true };
}

function describe({ state, pid, end }: BackgroundProcess): string {
  if (state === 'running') return `running (pid ${pid})`;
  const { code, signal } = end!.exit;
  return signal === null ? `ended with exit code ${code ?? 'unknown'}` : `ended by ${signal}`;
}
