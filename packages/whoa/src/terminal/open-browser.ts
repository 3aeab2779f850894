import { spawn } from 'node:child_process';

/** Opens a page. Failing is fine: the address is printed as well. */
export function openBrowser(address: string): void {
  const [file, args] =
    process.platform === 'darwin'
      ? ['open', [address]]
      : process.platform === 'win32'
        ? ['rundll32', ['url.dll,FileProtocolHandler', address]]
        : ['xdg-open', [address]];
  const browser = spawn(file as string, args as string[], { detached: true, stdio: 'ignore' });
  browser.on('error', () => {});
  browser.unref();
}
