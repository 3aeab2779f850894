import { expect, test } from 'vitest';
import { OURS } from '../checks/rules.ts';
import type { CheckReport, CheckResult } from '../run-checks.ts';
import { toBadge } from './badge.ts';
import { toJunit } from './junit.ts';

function report(statuses: readonly CheckResult['status'][], detail = ''): CheckReport {
  const counts = { passed: 0, failed: 0, unclear: 0, 'not-applicable': 0 };
  const results = statuses.map((status, at): CheckResult => {
    counts[status]++;
    return { id: `check-${at}`, group: 'end', title: 'It ends', rule: OURS, status, detail, ms: 1_500 };
  });
  return { agent: 'Agent <1>', protocol: 'acp', results, counts };
}

test('a report for CI lists every check with its observation', () => {
  const xml = toJunit(report(['passed', 'failed', 'unclear', 'not-applicable'], 'it said "no" & left\u0000'));
  expect(xml).toContain(
    '<testsuite name="Agent &lt;1&gt; (acp)" tests="4" failures="1" errors="1" skipped="1" time="6.000">',
  );
  expect(xml).toContain('<failure message="it said &quot;no&quot; &amp; left">Whoa (ours):');
  expect(xml.match(/<testcase/g)).toHaveLength(4);
  expect(xml).not.toContain('\u0000');
});

test('a badge is green only if all checks that apply were passed', () => {
  const green = toBadge(report(['passed', 'not-applicable']));
  expect(green).toContain('stops when told: 1 of 1');
  const findColor = (svg: string): string | undefined => /fill="(#[0-9a-f]{6})"\/>\n<g/.exec(svg)?.[1];
  const colors = [['passed'], ['passed', 'passed', 'passed', 'passed', 'unclear'], ['failed'], []].map((statuses) =>
    findColor(toBadge(report(statuses as CheckResult['status'][]))),
  );
  expect(colors[0]).toBe(findColor(green));
  expect(new Set(colors.slice(0, 3)).size).toBe(3);
  expect(colors[3]).not.toBe(colors[0]);
});
