import { expect, test } from 'vitest';
import { z } from 'zod';
import { CancellationToken } from '../stop/token/token.ts';
import { createVirtualWorld } from '../testing/virtual-world.ts';
import { createRuntime } from './runtime.ts';
import { createInterruptedError, defineTool, type Tool, toolsRule } from './tool.ts';

const definition = { name: 'x', description: '', inputSchema: z.unknown(), execute: () => 'x' };

test('a tool from defineTool is used unchanged; another is copied', () => {
  const defined = defineTool(definition);
  const copy = { ...defined };
  expect(createRuntime({ tools: [defined] }).tools.get('x')).toBe(defined);
  expect(createRuntime({ tools: [copy] }).tools.get('x')).not.toBe(copy);
});

test('the methods of a tool that is an object of a class stay its own', () => {
  class Editor {
    readonly name = 'edit';
    readonly description = '';
    readonly inputSchema = z.unknown();
    readonly file = 'notes';
    exclusive() {
      return [this.file];
    }
    execute() {
      return this.file;
    }
    preview() {
      return { cwd: this.file };
    }
    undo() {
      expect(this.file).toBe('notes');
    }
  }
  const [edit] = toolsRule([new Editor()], 'tools') as readonly [Required<Tool>];
  const { exclusive, execute, preview, undo } = edit;
  expect(exclusive({})).toEqual(['notes']);
  expect(execute({}, {} as never)).toBe('notes');
  expect(preview({}, {} as never)).toEqual({ cwd: 'notes' });
  expect(undo({ content: '', input: {} }, {} as never)).toBeUndefined();
  expect(edit).toMatchObject({
    effects: 'execute',
    replay: 'never',
    whenCancelled: 'interrupt',
    undoRepeatable: false,
  });
});

test('a name is a text, even if it looks like one', () => {
  expect(() => defineTool({ ...definition, name: ['abc'] as never })).toThrow('name: expected 1 to 64 of');
});

test('a tool that stops hands over why it was stopped, or, if it was not, that a user wished it', () => {
  const { clock } = createVirtualWorld();
  const token = new CancellationToken({ clock });
  const partial = { content: 'half' };
  expect(createInterruptedError(token, partial)).toMatchObject({ reason: { kind: 'user', at: clock.now() }, partial });
  token.cancel({ kind: 'shutdown' });
  expect(createInterruptedError(token, partial, { effect: 'none' })).toMatchObject({
    reason: token.reason,
    effect: 'none',
  });
});
