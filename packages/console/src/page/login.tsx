import { type ReactNode, type SubmitEvent, useState } from 'react';
import { logIn } from '../api/session.ts';
import { useTitle } from './parts.tsx';

/** Asks for a token. It is exchanged for a cookie and kept nowhere in the page. */
export function Login({ onDone, problem }: { readonly onDone: () => void; readonly problem: string }): ReactNode {
  useTitle('Log in');
  const [token, setToken] = useState('');
  const [refused, setRefused] = useState(problem);
  const [isBusy, setBusy] = useState(false);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setBusy(true);
    logIn({ token: token.trim() })
      .then(onDone, (error: unknown) => setRefused(error instanceof Error ? error.message : String(error)))
      .finally(() => {
        setToken('');
        setBusy(false);
      });
  };
  return (
    <main id="main" className="login">
      <form className="card pad stack" onSubmit={submit}>
        <h1>
          <span className="brand">Whoa</span>
        </h1>
        <p className="soft">
          Log in with a token of this server. <code>whoa serve</code> shows one when it starts;{' '}
          <code>whoa console</code> shows an address that needs none.
        </p>
        <label className="field">
          Token
          <input
            type="password"
            autoComplete="off"
            required
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        {refused !== '' && (
          <p className="red" role="alert">
            {refused}
          </p>
        )}
        <button type="submit" className="btn ink block" disabled={isBusy}>
          Log in
        </button>
      </form>
    </main>
  );
}
