// Checks names in pages: a name in backticks must be in an API report, in the page's own code, or known from outside.
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const WORD = /[A-Za-z_$][\w$]*/g;
/** Names of the language, of other libraries and formats, and of variables in one-line examples. */
const OUTSIDE = new Set(
  `AbortController EventSource HttpOnly SameSite await new return controller engine registration search increase CI skipLibCheck
  streamText generateText sendMessage addToolApprovalResponse hasToolCall ignoreIncompleteToolCalls waitUntil updateState
  addToolOutput sendAutomaticallyWhen toolCall onStepEnd onEnd consumeSseStream prepareSendMessagesRequest validateUIMessages dataSchemas toolApproval hooksPath AsyncLocalStorage
  HttpAgent RunAgentInput abortRun threadId agentCapabilities rawOutput CancelTask DefaultRequestHandler InMemoryTaskStore
  MockActivityEnvironment abortTimeout expireInSeconds inactivityTimeout groupConcurrency lockDuration cancelJob queueName UnrecoverableError
  terminationGracePeriodSeconds createX findX getX hasX isX maxX readX toX waitForX waitUntilX xMax xOf`.split(/\s+/),
);

export interface ApiReports {
  /** Every word of every report. */
  readonly words: ReadonlySet<string>;
  /** The exports of each entry, such as `@whoa/core/model`. */
  readonly entries: ReadonlyMap<string, ReadonlySet<string>>;
}

export function readApiReports(): ApiReports {
  const reports = readdirSync(join(root, 'api')).filter((file) => file.endsWith('.api.md'));
  const texts = reports.map((file) => readFileSync(join(root, 'api', file), 'utf8'));
  const entries = texts.map((text) => [/^# `(.+?)`/.exec(text)![1]!, toWords(text.split('\n## ')[0]!)] as const);
  return { words: toWords(texts.join('\n')), entries: new Map(entries) };
}

/** Lists the names in a page's prose that exist nowhere, or not in the entry that the page names. */
export function findUnknownNames(page: string, text: string, { words, entries }: ApiReports): string[] {
  const own = toWords(Array.from(text.matchAll(/^```(?:ts|js).*\n([\s\S]*?)^```/gm), ([, code]) => code).join('\n'));
  const prose = text.replace(/^```[\s\S]*?^```/gm, '');
  const found = new Set<string>();
  for (const [, span = ''] of prose.matchAll(/`([^`\n]+)`/g)) {
    const isCode = /^[\w.]+\(|\{ .*\}/.test(span);
    for (const [word] of span.replace(/'[^']*'|"[^"]*"|\b\d\w*/g, '').matchAll(WORD)) {
      const isName = isCode || /[a-z][A-Z]/.test(word);
      if (isName && ![words, own, OUTSIDE].some((known) => known.has(word)))
        found.add(`${page}: \`${word}\` is in no API report`);
    }
  }
  for (const [, name = '', entry = ''] of prose.matchAll(
    /`(\w+)(?:\([^`\n]*)?`\s+(?:from|of)\s+`(@whoa\/[a-z/-]+|whoa)`/g,
  )) {
    if (entries.get(entry)?.has(name) === false) found.add(`${page}: \`${name}\` is not exported by \`${entry}\``);
  }
  return [...found];
}

function toWords(text: string): ReadonlySet<string> {
  return new Set(text.match(WORD));
}

if (import.meta.main) {
  const reports = readApiReports();
  const pages = globSync(['README.md', 'docs/**/*.md', 'packages/*/README.md'], {
    cwd: root,
    exclude: ['docs/reference/api'],
  });
  const found = pages.flatMap((page) => findUnknownNames(page, readFileSync(join(root, page), 'utf8'), reports));
  for (const line of found) console.error(line);
  process.exitCode = pages.length > 20 && found.length === 0 ? 0 : 1;
}
