import { openEditor } from '../../command/editor.ts';
import { until } from '../fixture.ts';
import { LOCAL, openLocal } from './command.ts';
import type { Surface } from './surface.ts';
import { followTask } from './task.ts';

/** A prompt in an editor that started `whoa acp`; its prompts are tasks of the same home. */
export const editorSurface: Surface = {
  name: 'an editor',
  async open(fixture) {
    const store = openLocal(fixture);
    let kill = (): Promise<void> => Promise.resolve();
    const editor = await openEditor(fixture.home, {}, (cleanup) => (kill = cleanup));
    return {
      async start(prompt) {
        const known = new Set((await store.list({ tenant: LOCAL })).tasks.map(({ id }) => id));
        const answer = editor.prompt(prompt);
        let id: string | undefined;
        await until(async () => {
          id = (await store.list({ tenant: LOCAL })).tasks.find((task) => !known.has(task.id))?.id;
          return id !== undefined;
        });
        const followed = followTask(store, { tenant: LOCAL, id: id! }, fixture);
        return {
          ...followed,
          readText: () => Promise.resolve(joinWords(editor.shown)),
          async cancel() {
            await editor.cancel();
            return { result: 'sent' };
          },
          end: async () => {
            const { stopReason } = await answer;
            const end = await followed.end();
            if ((stopReason === 'cancelled') !== (end.status === 'cancelled'))
              throw new Error(`the editor was told ${stopReason}, the store ${end.status}`);
            return end;
          },
        };
      },
      async [Symbol.asyncDispose]() {
        await editor.close();
        await kill();
        await store[Symbol.asyncDispose]();
      },
    };
  },
};

function joinWords(updates: Awaited<ReturnType<typeof openEditor>>['shown']): string {
  return updates
    .map((update) =>
      update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text' ? update.content.text : '',
    )
    .join('');
}
