import type { CheckReport, CheckResult } from '../run-checks.ts';

/**
 * Writes a report in JUnit's form, which CI services read.
 *
 * @returns The report as XML.
 */
export function toJunit({ agent, protocol, results, counts }: CheckReport): string {
  const seconds = results.reduce((sum, { ms }) => sum + ms, 0) / 1_000;
  const suite = [
    attribute('name', `${agent} (${protocol})`),
    attribute('tests', String(results.length)),
    attribute('failures', String(counts.failed)),
    attribute('errors', String(counts.unclear)),
    attribute('skipped', String(counts['not-applicable'])),
    attribute('time', seconds.toFixed(3)),
  ].join('');
  const cases = results.map(testCase).join('\n');
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n<testsuite${suite}>\n${cases}\n</testsuite>\n</testsuites>\n`;
}

const ELEMENTS = { failed: 'failure', unclear: 'error', 'not-applicable': 'skipped' } as const;

function testCase({ id, group, title, rule, status, detail, ms }: CheckResult): string {
  const about = [attribute('classname', `check.${group}`), attribute('name', `${id}: ${title}`)].join('');
  const time = attribute('time', (ms / 1_000).toFixed(3));
  if (status === 'passed') return `<testcase${about}${time}/>`;
  const element = ELEMENTS[status];
  const why = status === 'failed' ? `${rule.from} (${rule.level}): ${rule.text}` : '';
  return `<testcase${about}${time}><${element}${attribute('message', detail)}>${escaped(why)}</${element}></testcase>`;
}

function attribute(name: string, value: string): string {
  return ` ${name}="${escaped(value)}"`;
}

/** What XML cannot hold is left out: agents say anything. */
function escaped(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll('\n', '&#10;');
}
