// Sends a server the same request over and over, `concurrency` at a time, between `start` and `stop`. argv: an address,
// headers, concurrency.
const [url = '', headers = '{}', concurrency = '1'] = process.argv.slice(2);
let isOn = false;
let asked = 0;

async function ask(): Promise<void> {
  const init = { method: 'POST', headers: JSON.parse(headers) as Record<string, string> };
  while (isOn) {
    const response = await fetch(url, { ...init, body: JSON.stringify({ agent: 'waits', input: 'x' }) });
    await response.arrayBuffer();
    asked++;
  }
}

process.on('disconnect', () => process.exit());
process.on('message', (message: 'start' | 'stop') => {
  isOn = message === 'start';
  if (isOn) {
    for (let i = 0; i < Number(concurrency); i++) ask().catch((error: unknown) => process.emitWarning(error as Error));
  } else {
    process.send?.(asked);
    asked = 0;
  }
});
process.send?.('ready');
