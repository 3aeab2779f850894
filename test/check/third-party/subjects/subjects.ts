import type { Subject } from '../subject.ts';
import { a2aSdk } from './a2a-sdk.ts';
import { aiSdkChat } from './ai-sdk-chat.ts';
import { claudeAgent } from './claude-agent.ts';
import { cline } from './cline.ts';
import { codex } from './codex.ts';
import { copilot } from './copilot.ts';
import { kilo } from './kilo.ts';
import { opencode } from './opencode.ts';
import { pi } from './pi.ts';
import { qwenCode } from './qwen-code.ts';
import { whoa } from './whoa.ts';

/** Everything that is checked, in the order of the page. */
export const SUBJECTS: readonly Subject[] = [
  whoa,
  claudeAgent,
  cline,
  codex,
  copilot,
  kilo,
  opencode,
  pi,
  qwenCode,
  aiSdkChat,
  a2aSdk,
];
