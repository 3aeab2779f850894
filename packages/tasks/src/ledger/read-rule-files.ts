import { readdirSync, readFileSync } from 'node:fs';

/** Texts by the names of their files. */
export type RuleFiles = Readonly<Record<string, string>>;

/**
 * Reads the SQL files next to a module. Only modules named `rule-files.ts` may call it: `scripts/inline-rules.ts`
 * replaces those in the build with what they read, so that a bundle has the texts.
 */
export function readRuleFiles(module: string): RuleFiles {
  const names = readdirSync(new URL('.', module)).filter((name) => name.endsWith('.sql'));
  if (names.length === 0) throw new Error(`There are no rules next to ${module}; run: npm run build`);
  return Object.fromEntries(names.sort().map((name) => [name, readFileSync(new URL(name, module), 'utf8')]));
}
