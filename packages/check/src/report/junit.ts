import type { CheckReport, CheckResult } from '../run-checks.ts';

/**
 * Writes a report in JUnit's form, which CI services read.
 *
 * @returns The report as XML.
 */
export function toJunit({ agent, protocol, results, counts }: CheckReport): string {
  const seconds = results.reduce((sum, { ms }) => sum + ms, 0) / 1_000;
  const suite = toAttributes({
    name: `${agent} (${protocol})`,
    tests: results.length,
    failures: counts.failed,
    errors: counts.unclear,
    skipped: counts['not-applicable'],
    time: seconds.toFixed(3),
  });
  const cases = results.map(testCase).join('\n');
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n<testsuite${suite}>\n${cases}\n</testsuite>\n</testsuites>\n`;
}

const ELEMENTS = { failed: 'failure', unclear: 'error', 'not-applicable': 'skipped' } as const;

function testCase({ id, group, title, rule, status, detail, ms }: CheckResult): string {
  const about = toAttributes({ classname: `check.${group}`, name: `${id}: ${title}`, time: (ms / 1_000).toFixed(3) });
  if (status === 'passed') return `<testcase${about}/>`;
  const element = ELEMENTS[status];
  const why = status === 'failed' ? `${rule.from} (${rule.level}): ${rule.text}` : '';
  return `<testcase${about}><${element}${toAttributes({ message: detail })}>${escaped(why)}</${element}></testcase>`;
}

function toAttributes(values: Readonly<Record<string, string | number>>): string {
  const attributes = Object.entries(values).map(([name, value]) => ` ${name}="${escaped(String(value))}"`);
  return attributes.join('');
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
