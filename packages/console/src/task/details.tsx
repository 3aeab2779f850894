import { type DetailsView, parseAnsi } from '@whoa/core/view';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { plural } from '../model/format.ts';
import { Button } from '../page/parts.tsx';

/** More lines than this are folded. */
const MAX_LINES = 200;

interface DetailsProps {
  readonly view: DetailsView;
  /** The call was interrupted, so its output ends early. */
  readonly isCut: boolean;
}

/** What people see of a call. Everything is a text node: nothing that a tool returns can become markup. */
export function Details({ view, isCut }: DetailsProps): ReactNode {
  switch (view.kind) {
    case 'diff':
      return <Diff view={view} />;
    case 'matches':
      return <Matches view={view} />;
    case 'output':
      return <Output view={view} isCut={isCut} />;
    case 'files':
      return <Lines lines={view.paths} />;
    case 'plan':
      return <Plan view={view} />;
    case 'images':
      return <Images view={view} />;
    case 'json':
      return <Lines lines={JSON.stringify(view.value, undefined, 2).split('\n')} />;
    case 'file':
    case 'text':
      return <Lines lines={view.text === '' ? ['(no output)'] : view.text.split('\n')} />;
  }
}

type ViewByKind<Kind extends DetailsView['kind']> = Extract<DetailsView, { readonly kind: Kind }>;

/** Lines of text; many are folded. */
function Lines({ lines }: { readonly lines: readonly string[] }): ReactNode {
  const [isWhole, setWhole] = useState(lines.length <= MAX_LINES);
  const shown = isWhole ? lines : lines.slice(0, MAX_LINES);
  return (
    <>
      <pre className="out wrap" tabIndex={0}>
        {shown.join('\n')}
      </pre>
      {!isWhole && <More count={lines.length - MAX_LINES} onClick={() => setWhole(true)} />}
    </>
  );
}

function More({ count, onClick }: { readonly count: number; readonly onClick: () => void }): ReactNode {
  return (
    <p className="foot">
      <Button look="tiny" onClick={onClick}>
        Show {plural(count, 'more line')}
      </Button>
    </p>
  );
}

function Diff({ view: { path, isNew, hunks } }: { readonly view: ViewByKind<'diff'> }): ReactNode {
  const [isWhole, setWhole] = useState(false);
  const total = hunks.reduce((sum, { lines }) => sum + lines.length, 0);
  let left = isWhole ? Infinity : MAX_LINES;
  if (hunks.length === 0) return <pre className="out mute">{path}: too large to compare</pre>;
  return (
    <>
      <pre className="out diff" tabIndex={0}>
        {hunks.map(({ newStart, lines }) => {
          const shown = lines.slice(0, Math.max(0, left));
          left -= lines.length;
          if (shown.length === 0) return null;
          return (
            <span key={newStart}>
              <span className="at">
                @@ {path}, {isNew ? 'new' : `line ${newStart}`} @@
              </span>
              {shown.map(({ kind, text, oldLine, newLine }) => (
                <span
                  key={`${oldLine} ${newLine}`}
                  className={kind === 'add' ? 'add' : kind === 'remove' ? 'del' : undefined}
                >
                  {kind === 'add' ? '+' : kind === 'remove' ? '-' : ' '} {text}
                </span>
              ))}
            </span>
          );
        })}
      </pre>
      {!isWhole && total > MAX_LINES && <More count={total - MAX_LINES} onClick={() => setWhole(true)} />}
    </>
  );
}

function Matches({ view: { pattern, matches } }: { readonly view: ViewByKind<'matches'> }): ReactNode {
  const byFile = [...Map.groupBy(matches.slice(0, MAX_LINES), ({ path }) => path)];
  if (byFile.length === 0) return <pre className="out mute">no match</pre>;
  return (
    <pre className="out" tabIndex={0}>
      {byFile.map(([path, found]) => (
        <span key={path} className="file">
          <span className="a5">{path}</span>
          {found.map((match) => (
            <span key={`${match.line} ${match.column}`} className="hit">
              <span className="mute">{String(match.line).padStart(5)}</span> <Marked {...match} pattern={pattern} />
            </span>
          ))}
        </span>
      ))}
    </pre>
  );
}

type Match = ViewByKind<'matches'>['matches'][number];

/** Marks the match where the pattern stands for itself. */
function Marked({ text, pattern, column }: Pick<Match, 'text' | 'column'> & { readonly pattern: string }): ReactNode {
  const at = column === undefined ? -1 : column - 1;
  if (pattern === '' || at < 0 || !text.startsWith(pattern, at)) return text;
  return (
    <>
      {text.slice(0, at)}
      <mark>{pattern}</mark>
      {text.slice(at + pattern.length)}
    </>
  );
}

function Output({ view, isCut }: { readonly view: ViewByKind<'output'>; readonly isCut: boolean }): ReactNode {
  const { command, head, tail, omittedBytes } = view;
  const box = useRef<HTMLPreElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the end is what people look for, even when there is more of it.
  useEffect(() => {
    if (box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [tail]);
  const isEmpty = head === '' && tail.trim() === '';
  return (
    <pre ref={box} className="out tall" tabIndex={0}>
      {command !== undefined && (
        <>
          <span className="mute">$</span> {command}
          {'\n'}
        </>
      )}
      {head !== '' && <Ansi output={head} />}
      {omittedBytes > 0 && <span className="mute">{`\n… ${plural(omittedBytes, 'byte')} left out …\n`}</span>}
      {isEmpty ? <span className="mute">(no output)</span> : <Ansi output={tail.trimEnd()} />}
      {isCut && <span className="cut" role="img" aria-label="interrupted here" />}
    </pre>
  );
}

function Ansi({ output }: { readonly output: string }): ReactNode {
  return parseAnsi(output).map(({ text, color, bold, dim, underline }, index) => {
    const className = [bold && 'ab', dim && 'mute', underline && 'au'].filter(Boolean).join(' ');
    const isColor = color !== undefined && color > 0 && color < 7;
    if (className === '' && !isColor) return text;
    return (
      <span key={index} className={className} style={isColor ? { color: `var(--a${color})` } : undefined}>
        {text}
      </span>
    );
  });
}

function Plan({ view: { entries } }: { readonly view: ViewByKind<'plan'> }): ReactNode {
  const statuses = {
    pending: 'not-started',
    in_progress: 'running',
    completed: 'finished',
    cancelled: 'cancelled',
  } as const;
  return (
    <ol className="pad stack2">
      {entries.map(({ content, status }, index) => (
        <li key={index}>
          <span className={`st ${statuses[status]}`}>
            <i aria-hidden="true" />
            <span className="ink">{content}</span>
            <span className="sm mute">{status.replace('_', ' ')}</span>
          </span>
        </li>
      ))}
    </ol>
  );
}

function Images({ view: { images, text } }: { readonly view: ViewByKind<'images'> }): ReactNode {
  return (
    <div className="pad stack2">
      {text !== '' && <p className="soft">{text}</p>}
      {images.map(({ mediaType, data }, index) => (
        <Picture key={index} mediaType={mediaType} data={data} />
      ))}
    </div>
  );
}

/** Draws an image on a canvas: the content security policy allows no data: addresses, and SVG is not decoded this way. */
function Picture({ mediaType, data }: { readonly mediaType: string; readonly data: string }): ReactNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    let isCurrent = true;
    const draw = async (): Promise<void> => {
      const bitmap = await createImageBitmap(new Blob([decodeBytes(data)], { type: mediaType }));
      if (!isCurrent || canvas.current === null) return;
      Object.assign(canvas.current, { width: bitmap.width, height: bitmap.height });
      canvas.current.getContext('2d')?.drawImage(bitmap, 0, 0);
      bitmap.close();
    };
    draw().catch(() => isCurrent && setProblem('it cannot be shown'));
    return () => {
      isCurrent = false;
    };
  }, [data, mediaType]);
  return (
    <>
      <canvas ref={canvas} className="picture" role="img" aria-label={`Image, ${mediaType}`} hidden={problem !== ''} />
      {problem !== '' && <p className="soft">{`${mediaType}: ${problem}`}</p>}
    </>
  );
}

function decodeBytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
