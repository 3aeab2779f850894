import { type SubmitEvent, useState } from 'react';
import { upload } from './upload';

interface ComposerProps {
  readonly send: (message: { text: string; files: Awaited<ReturnType<typeof upload>> }) => Promise<void>;
  /** Something can be stopped. */
  readonly canStop: boolean;
  readonly stop: () => void;
  readonly isBusy: boolean;
  readonly report: (error: unknown) => void;
}

export function Composer({ send, canStop, stop, isBusy, report }: ComposerProps) {
  const [isUploading, setUploading] = useState(false);
  const submit = async (form: HTMLFormElement) => {
    const text = String(new FormData(form).get('text'));
    const files = await upload(form.querySelector<HTMLInputElement>('[type=file]')!.files);
    form.reset();
    setUploading(false);
    await send({ text, files });
  };
  const onSubmit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isBusy || isUploading) return;
    setUploading(true);
    submit(event.currentTarget)
      .catch(report)
      .finally(() => setUploading(false));
  };
  return (
    <form className="composer" onSubmit={onSubmit}>
      <input name="text" placeholder="Ask about your orders" aria-label="Message" autoComplete="off" required />
      <input
        name="files"
        type="file"
        aria-label="Pictures"
        accept="image/png,image/jpeg,image/webp"
        multiple
        disabled={isUploading}
      />
      {canStop && (
        <button className="stop" type="button" onClick={stop}>
          Stop
        </button>
      )}
      <button className="main" type="submit" disabled={isBusy || isUploading}>
        {isUploading ? 'Sending…' : 'Send'}
      </button>
    </form>
  );
}
