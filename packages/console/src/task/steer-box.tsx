import type { TaskClient } from '@whoa/server/task-client';
import type { TaskRecord } from '@whoa/tasks';
import { type ReactNode, type SubmitEvent, useState } from 'react';
import { describeError } from '../api/session.ts';

/** Says something to a run while it works. */
export function SteerBox({ task, client }: { readonly task: TaskRecord; readonly client: TaskClient }): ReactNode {
  const [words, setWords] = useState('');
  const [answer, setAnswer] = useState('');
  const send = (event: SubmitEvent): void => {
    event.preventDefault();
    client.steer(task.id, words).then(
      (receipt) => {
        if (receipt.result === 'accepted') setWords('');
        setAnswer(
          receipt.result === 'accepted' ? 'Sent: it is read at the next boundary.' : `Not sent: ${receipt.result}`,
        );
      },
      (error: unknown) => setAnswer(describeError(error).message),
    );
  };
  return (
    <section className="card">
      <header>
        <h2>Steer</h2>
      </header>
      <form className="pad stack2" onSubmit={send}>
        <textarea
          rows={2}
          aria-label="Message to the run"
          placeholder="Say something while it works"
          required
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
        <div className="row">
          <span className="sm soft" role="status">
            {answer}
          </span>
          <button type="submit" className="btn ink push" disabled={words.trim() === ''}>
            Send
          </button>
        </div>
      </form>
    </section>
  );
}
