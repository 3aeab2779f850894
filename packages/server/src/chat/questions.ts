import type { JournalEvent, TaskRef, TaskStore } from '@whoa/tasks';

/** A question about a call. */
export interface AskedQuestion {
  readonly callId: string;
  isAnswered: boolean;
}

/** Returns the questions of a reply so far, by id. */
export async function readQuestions(store: TaskStore, ref: TaskRef): Promise<ReadonlyMap<string, AskedQuestion>> {
  const questions = new Map<string, AskedQuestion>();
  for (let after: number | undefined = 0; after !== undefined; ) {
    const entries = await store.read(ref, { after });
    for (const { event } of entries as unknown as readonly { event: JournalEvent }[]) {
      if (event.type === 'approval-question')
        questions.set(event.id, { callId: event.question.callId, isAnswered: false });
      if (event.type === 'approval-answer')
        for (const one of questions.values()) if (one.callId === event.callId) one.isAnswered = true;
    }
    after = entries.at(-1)?.position;
  }
  return questions;
}
