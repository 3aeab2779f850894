import { type RuleFiles, readRuleFiles } from '../../read-rule-files.ts';

export const RULE_FILES: RuleFiles = readRuleFiles(import.meta.url);
