import type { Policy } from '@whoa/core';
import type { TaskClient } from '@whoa/server/task-client';
import { type ReactNode, type SubmitEvent, useState } from 'react';
import { describeError, type Me } from '../api/session.ts';
import { Button, TextBox } from '../page/parts.tsx';

const POLICIES: readonly { readonly policy: Policy; readonly words: string }[] = [
  { policy: 'replace', words: 'The running task is stopped, and this message is answered instead.' },
  { policy: 'queue', words: 'The message waits until the running task has ended.' },
  { policy: 'steer', words: 'The run reads it at the next boundary; if it ends first, the message is next.' },
];

interface ComposerProps {
  readonly me: Me;
  readonly tenant: string | undefined;
  readonly id: string;
  readonly client: TaskClient;
  readonly isRunning: boolean;
  /** The agent of the conversation, once it has one. */
  readonly agent: string | undefined;
  readonly onSent: () => void;
  readonly onStop: () => void;
}

/** Sends messages to a conversation. What one does to the running task stands where it is typed. */
export function Composer({ me, tenant, id, client, onSent, isRunning, agent, onStop }: ComposerProps): ReactNode {
  const [policy, setPolicy] = useState<Policy>('steer');
  const [words, setWords] = useState('');
  const [problem, setProblem] = useState('');
  const [chosen, setChosen] = useState(me.agents?.[0] ?? '');
  if (tenant !== undefined || !me.rights.includes('start')) {
    return <ReadOnly canStop={isRunning && me.rights.includes('cancel')} onStop={onStop} />;
  }
  const send = (event: SubmitEvent): void => {
    event.preventDefault();
    setProblem('');
    client.create({ agent: agent ?? chosen, input: words, conversation: id, policy }).then(
      (receipt) => {
        if ('task' in receipt) setWords('');
        else setProblem(receipt.result === 'rejected' ? 'Another task is running.' : 'Too many messages are waiting.');
        onSent();
      },
      (error: unknown) => setProblem(describeError(error).message),
    );
  };
  return (
    <footer>
      <form className="col stack2" onSubmit={send}>
        <div className="row">
          <PolicyChoice policy={policy} onChange={setPolicy} />
          {agent === undefined && <AgentChoice agents={me.agents} agent={chosen} onChange={setChosen} />}
        </div>
        <div className="row send">
          <MessageBox words={words} onChange={setWords} isRunning={isRunning} />
          {isRunning && <StopConversation onStop={onStop} />}
          <button type="submit" className="btn ink" disabled={words.trim() === '' || (agent ?? chosen) === ''}>
            Send
          </button>
        </div>
        {problem !== '' && (
          <p className="sm red" role="alert">
            {problem}
          </p>
        )}
      </form>
    </footer>
  );
}

function ReadOnly({ canStop, onStop }: { readonly canStop: boolean; readonly onStop: () => void }): ReactNode {
  return (
    <footer>
      <p className="col sm soft">
        You can read this conversation{canStop ? ' and stop it. ' : '.'}
        {canStop && <StopConversation onStop={onStop} />}
      </p>
    </footer>
  );
}

function StopConversation({ onStop }: { readonly onStop: () => void }): ReactNode {
  return (
    <Button look="stop" onClick={onStop}>
      Stop
    </Button>
  );
}

function PolicyChoice({
  policy,
  onChange,
}: {
  readonly policy: Policy;
  readonly onChange: (policy: Policy) => void;
}): ReactNode {
  return (
    <>
      <span className="seg" role="radiogroup" aria-label="What a new message does">
        {POLICIES.map(({ policy: one }) => (
          <label key={one}>
            <input type="radio" name="policy" checked={policy === one} onChange={() => onChange(one)} />
            {one}
          </label>
        ))}
      </span>
      <span className="sm mute grow">{POLICIES.find((one) => one.policy === policy)?.words}</span>
    </>
  );
}

interface AgentChoiceProps {
  /** Left out where any name is accepted. */
  readonly agents: readonly string[] | undefined;
  readonly agent: string;
  readonly onChange: (agent: string) => void;
}

function AgentChoice({ agents, agent, onChange }: AgentChoiceProps): ReactNode {
  if (agents === undefined)
    return <TextBox required aria-label="Agent" placeholder="Agent" value={agent} onChange={onChange} />;
  return (
    <select aria-label="Agent" value={agent} onChange={(event) => onChange(event.target.value)}>
      {agents.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

interface MessageBoxProps {
  readonly words: string;
  readonly onChange: (words: string) => void;
  readonly isRunning: boolean;
}

/** Enter sends, Shift-Enter begins a line. */
function MessageBox({ words, onChange, isRunning }: MessageBoxProps): ReactNode {
  return (
    <textarea
      rows={2}
      aria-label="Message"
      placeholder={isRunning ? 'Say something while it works' : 'Say something'}
      required
      value={words}
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
          event.preventDefault();
          event.currentTarget.form?.requestSubmit();
        }
      }}
    />
  );
}
