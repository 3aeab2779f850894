// A turn on the wire: as the AI SDK's UI message stream, and as AG-UI.

export interface Stream {
  readonly text: (text: string) => void;
  readonly call: (call: { readonly id: string; readonly isOpen: boolean }) => void;
  readonly end: (isCancelled: boolean) => void;
}

type Send = (event: object) => unknown;

export function toChat(send: Send): Stream {
  send({ type: 'start' });
  const text = createText((is, id, delta) => send({ type: `text-${is}`, id, ...(is === 'delta' && { delta }) }));
  return {
    text: text.add,
    call({ id: toolCallId, isOpen }) {
      text.close();
      const call = { toolCallId, dynamic: true };
      if (isOpen) send({ type: 'tool-input-available', ...call, toolName: 'bash', input: {} });
      else send({ type: 'tool-output-available', ...call, output: '' });
    },
    end(isCancelled) {
      text.close();
      send(isCancelled ? { type: 'abort' } : { type: 'finish' });
    },
  };
}

export function toAgUi(send: Send, run: { readonly threadId: string; readonly runId: string }): Stream {
  send({ type: 'RUN_STARTED', ...run });
  const names = { start: 'START', delta: 'CONTENT', end: 'END' };
  const text = createText((is, messageId, delta) =>
    send({
      type: `TEXT_MESSAGE_${names[is]}`,
      messageId,
      ...(is === 'start' && { role: 'assistant' }),
      ...(is === 'delta' && { delta }),
    }),
  );
  return {
    text: text.add,
    call({ id: toolCallId, isOpen }) {
      text.close();
      if (isOpen) send({ type: 'TOOL_CALL_START', toolCallId, toolCallName: 'bash' });
      if (isOpen) send({ type: 'TOOL_CALL_END', toolCallId });
      else send({ type: 'TOOL_CALL_RESULT', messageId: `${toolCallId}-result`, toolCallId, role: 'tool', content: '' });
    },
    end(isCancelled) {
      text.close();
      send({ type: 'RUN_FINISHED', ...run, outcome: { type: isCancelled ? 'cancelled' : 'success' } });
    },
  };
}

/** Text that its first chunk opens and the next part closes. */
function createText(tell: (is: 'start' | 'delta' | 'end', id: string, delta: string) => void) {
  let count = 0;
  let isOpen = false;
  return {
    add: (delta: string): void => {
      if (!isOpen) tell('start', `text-${++count}`, '');
      isOpen = true;
      tell('delta', `text-${count}`, delta);
    },
    close: (): void => {
      if (isOpen) tell('end', `text-${count}`, '');
      isOpen = false;
    },
  };
}
